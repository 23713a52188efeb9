//! One host's tasks on a scheduler of its own, which only moves when the simulation says so. To drop it is to kill the
//! process: every task ends at the await it has come to.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// What came of letting a process run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    /// How many tasks were polled.
    pub(crate) polls: u64,
    /// Whether nobody had anything left to do.
    pub(crate) idle: bool,
}

/// The tasks of one process.
pub(crate) struct Executor {
    runtime: Runtime,
    /// A task of ours that was put at the end of the queue, and how many tasks were polled since: if it comes first, nobody
    /// else was there.
    marker: Cell<Option<u64>>,
    marker_came: Arc<AtomicBool>,
}

impl Executor {
    pub(crate) fn new() -> Self {
        let mut builder = Builder::new_current_thread();
        // After every single poll it is asked whether to go on.
        let runtime = builder.enable_time().start_paused(true).event_interval(1).build().unwrap();
        Self { runtime, marker: Cell::new(None), marker_came: Arc::default() }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(task));
    }

    /// Polls at most so many tasks, in the order in which they were woken.
    pub(crate) fn run(&self, most: u64) -> Ran {
        let (mut polls, mut idle) = (0_u64, false);
        let mut asked = false;
        self.runtime.block_on(std::future::poll_fn(|context| {
            // One task was polled since this was asked last.
            if std::mem::replace(&mut asked, true) {
                polls += 1;
                self.marker.set(self.marker.get().map(|since| since + 1));
            }
            if self.marker_came.swap(false, Ordering::Relaxed) {
                polls = polls.saturating_sub(1);
                let outside = self.runtime.metrics().global_queue_depth();
                if self.marker.take() == Some(1) && outside == 0 {
                    idle = true;
                    return Poll::Ready(());
                }
            }
            if polls >= most {
                return Poll::Ready(());
            }
            if self.marker.get().is_none() {
                let came = Arc::clone(&self.marker_came);
                drop(self.runtime.spawn(async move { came.store(true, Ordering::Relaxed) }));
                self.marker.set(Some(0));
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        Ran { polls, idle }
    }

    /// Lets time pass for tokio's own timers.
    pub(crate) fn advance(&self, micros: i64) {
        let passed = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        self.runtime.block_on(tokio::time::advance(passed));
    }
}
