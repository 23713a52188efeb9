//! When there is nothing left to do. A host in memory on one thread works through whatever is ready, and the thread parks
//! when nothing is: then every run waits for a person, or for time.

use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Idle {
    parked: Notify,
}

impl Idle {
    /// The thread is about to park.
    pub(crate) fn nothing_to_do(&self) {
        // Nothing is kept for later: who begins to wait afterwards waits for the next time.
        self.parked.notify_waiters();
    }

    /// Resolves once nothing else can be done.
    pub(crate) async fn wait(&self) {
        self.parked.notified().await;
    }
}
