//! The threads that runs are stepped on. There are two lanes of them: on a machine that has no core to spare, the slow
//! lane takes what the quick one leaves.

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

/// How soon the operating system lets a thread run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Quick,
    /// For tenants that compute much while others work; see [`super::Turns::lane_of`].
    Slow,
}

thread_local! {
    static STEPPING: Cell<Option<Lane>> = const { Cell::new(None) };
}

/// The threads of one host. Cheap to clone; they end with the last clone.
#[derive(Clone)]
pub struct StepThreads {
    quick: Arc<Owned>,
    slow: Arc<Owned>,
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
        let lane = |lane, name| {
            let mut builder = Builder::new_multi_thread();
            let builder = builder.worker_threads(places).thread_name(name).thread_stack_size(STACK_BYTES);
            let runtime = builder.on_thread_start(move || enter(lane)).enable_all().build()?;
            Ok::<_, std::io::Error>(Arc::new(Owned { handle: runtime.handle().clone(), runtime: Some(runtime) }))
        };
        Ok(Self { quick: lane(Lane::Quick, "baton-step")?, slow: lane(Lane::Slow, "baton-step-slow")?, places })
    }

    pub(crate) fn handle(&self, lane: Lane) -> &Handle {
        match lane {
            Lane::Quick => &self.quick.handle,
            Lane::Slow => &self.slow.handle,
        }
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// Whether the caller is on a step thread already.
    pub(crate) fn here() -> bool {
        Self::lane().is_some()
    }

    /// Which kind of step thread the caller is on, if it is on one.
    pub(crate) fn lane() -> Option<Lane> {
        STEPPING.get()
    }
}

fn enter(lane: Lane) {
    STEPPING.set(Some(lane));
    if lane == Lane::Slow
        && let Err(error) = give_way()
    {
        tracing::warn!(?error, "the slow lane is as quick as the other");
    }
}

/// Lets this thread run when no other wants the core. Less would not do: the scheduler lets whoever computes go on for
/// milliseconds before it looks at somebody who was just woken, unless it is of this kind.
#[cfg(target_os = "linux")]
fn give_way() -> Result<(), thread_priority::Error> {
    use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let me = thread_priority::thread_native_id();
    thread_priority::set_thread_priority_and_policy(me, ThreadPriority::Min, idle)
}

#[cfg(not(target_os = "linux"))]
fn give_way() -> Result<(), thread_priority::Error> {
    thread_priority::set_current_thread_priority(thread_priority::ThreadPriority::Min)
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
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn whoever_lets_others_pass_goes_on_though_they_never_end() {
        let threads = StepThreads::with(2).unwrap();
        let (going, frozen) = mpsc::sync_channel::<()>(1);
        let (done, ended) = mpsc::sync_channel(1);
        threads.handle(Lane::Quick).spawn(async move {
            // It takes the slot of this thread, and then the thread.
            drop(tokio::spawn(async move { frozen.recv_timeout(2 * PATIENCE).ok() }));
            pass().await;
            drop(going);
            done.send(()).unwrap();
        });
        ended.recv_timeout(PATIENCE).unwrap();
    }
}
