use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::Error;
use crate::journal::ending::Ending;

/// How much of something is on disk, and a bell for whoever waits for more.
pub(crate) struct Progress {
    committed: AtomicU64,
    bell: Notify,
}

impl Progress {
    pub(crate) fn new(committed: u64) -> Self {
        Self { committed: AtomicU64::new(committed), bell: Notify::new() }
    }

    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// The disk has this much. Told by the writer, so nothing here waits for a lock.
    pub(crate) fn reached(&self, count: u64) {
        self.committed.fetch_max(count, Ordering::AcqRel);
        self.bell.notify_waiters();
    }

    /// Wakes everybody, because the generation has ended.
    pub(crate) fn ring(&self) {
        self.bell.notify_waiters();
    }

    /// Waits until this much is on disk.
    pub(crate) async fn durable(&self, ending: &Ending, count: u64) -> Result<(), Error> {
        loop {
            let bell = self.bell.notified();
            tokio::pin!(bell);
            // Registered before the check, so that a commit in between is not missed.
            bell.as_mut().enable();
            if self.committed() >= count {
                return Ok(());
            }
            if ending.is_dead() {
                return Err(baton_store::CommitError::Stale.into());
            }
            bell.await;
        }
    }
}
