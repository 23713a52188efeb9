//! The threads that runs are stepped on.

use std::cell::Cell;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::{Builder, Handle, Runtime};

/// Enough for everything that is bounded in depth (expressions, values, definitions), several times over.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// One tenant may use half of the threads: two for each core keep every core busy with one tenant alone, and leave a
/// thread for the next.
const THREADS_PER_CORE: usize = 2;
/// Fewer would let one long step hold up everybody else's.
const LEAST_THREADS: usize = 4;

thread_local! {
    static STEPPING: Cell<bool> = const { Cell::new(false) };
}

/// The threads of one host. Cheap to clone; they end with the last clone.
#[derive(Clone)]
pub struct StepThreads {
    owned: Arc<Owned>,
    places: usize,
}

struct Owned {
    handle: Handle,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for StepThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StepThreads({})", self.places)
    }
}

impl StepThreads {
    /// As many as suit this machine.
    pub fn new() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with(THREADS_PER_CORE.saturating_mul(cores).max(LEAST_THREADS))
    }

    pub fn with(threads: usize) -> std::io::Result<Self> {
        let places = threads.max(1);
        baton_engine::on_pause(super::breather);
        baton_engine::on_use(super::evaluation::evaluated);
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(places).thread_name("baton-step").thread_stack_size(STACK_BYTES);
        let runtime = builder.on_thread_start(|| STEPPING.set(true)).enable_all().build()?;
        let owned = Arc::new(Owned { handle: runtime.handle().clone(), runtime: Some(runtime) });
        Ok(Self { owned, places })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.owned.handle
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// Whether the caller is on a step thread already.
    pub(crate) fn here() -> bool {
        STEPPING.get()
    }
}

/// Lets other tasks of this thread go first. Unlike `yield_now`, which leaves a task on a list of its thread's until
/// the thread has nothing else to do, this puts it back in the queue that idle threads take from: should whoever goes
/// first never end, another thread goes on with this.
pub(crate) async fn pass() {
    if !StepThreads::here() {
        // Nothing freezes here.
        return tokio::task::yield_now().await;
    }
    let mut passed = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Drop for Owned {
    fn drop(&mut self) {
        // The last clone may be dropped on one of these very threads, which cannot wait for itself.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Nothing here takes this long; whatever does, hangs.
    const TIMEOUT: Duration = Duration::from_secs(30);

    #[test]
    fn whoever_lets_others_pass_goes_on_though_they_never_end() {
        let threads = StepThreads::with(2).unwrap();
        let (going, frozen) = mpsc::sync_channel::<()>(1);
        let (done, ended) = mpsc::sync_channel(1);
        threads.handle().spawn(async move {
            // It takes the handle of this thread, and then the thread.
            drop(tokio::spawn(async move { frozen.recv_timeout(2 * TIMEOUT).ok() }));
            pass().await;
            drop(going);
            done.send(()).unwrap();
        });
        ended.recv_timeout(TIMEOUT).unwrap();
    }
}
