use std::sync::atomic::{AtomicU64, Ordering};

use baton_store::{CommitError, WriteChain};
use tokio::sync::Notify;

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

    /// Waits until this much is on disk, as a link of this chain.
    pub(crate) async fn durable(&self, ending: &Ending, chain: &WriteChain, count: u64) -> Result<(), CommitError> {
        loop {
            let (bell, breaks, ends) = (self.bell.notified(), chain.breaks(), ending.ends());
            tokio::pin!(bell, breaks, ends);
            // Registered before the check, so that a commit in between is not missed, and no loss either.
            bell.as_mut().enable();
            breaks.as_mut().enable();
            ends.as_mut().enable();
            if self.committed() >= count {
                return Ok(());
            }
            if ending.is_dead() {
                return Err(CommitError::Stale);
            }
            if let Some(error) = chain.lost_for() {
                // What was written before it broke is told before that.
                return if self.committed() >= count { Ok(()) } else { Err(error.clone()) };
            }
            tokio::select! {
                biased;
                () = bell => {}
                () = breaks => {}
                () = ends => {}
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Whoever waits is told by the chain itself: what it belongs to may have been replaced wherever others look for it.
    #[tokio::test]
    async fn whoever_waits_for_a_chain_is_woken_when_it_breaks() {
        let (progress, chain) = (Arc::new(Progress::new(3)), Arc::new(WriteChain::of_store()));
        let waits = tokio::spawn({
            let (progress, chain) = (Arc::clone(&progress), Arc::clone(&chain));
            async move { progress.durable(&Ending::default(), &chain, 4).await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        chain.break_off(&CommitError::Stale);
        assert_eq!(waits.await.unwrap(), Err(CommitError::Stale));
        assert_eq!(progress.durable(&Ending::default(), &chain, 3).await, Ok(()), "that much is on disk");
    }
}
