//! Whether a generation has ended.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Default)]
pub(crate) struct Ending {
    dead: AtomicBool,
    bell: Notify,
}

impl Ending {
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// The disk failed: nothing that was derived since the last commit will become durable, and whoever waits for that is
    /// woken.
    pub(crate) fn end(&self) {
        self.dead.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }

    /// Ends with the generation, if that is after this was first polled or enabled.
    pub(crate) fn ends(&self) -> Notified<'_> {
        self.bell.notified()
    }
}
