//! Writes on their way to the journal, in causal order. Pushing happens under a run's lock; flushing hands everything
//! pushed so far to the writer as one commit, so work that runs ahead shares its fsync. Whoever flushes, the order is
//! the order of pushing.

use baton_store::{Commit, Store, Write};
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Outbox {
    pending: Mutex<Vec<Write>>,
}

impl Outbox {
    /// Adds writes that must become durable together. Returns how many are waiting.
    pub(crate) fn push(&self, writes: impl IntoIterator<Item = Write>) -> usize {
        let mut pending = self.pending.lock();
        pending.extend(writes);
        pending.len()
    }

    /// Queues everything pushed so far.
    pub(crate) fn flush(&self, store: &dyn Store, generation: u64) {
        // The lock is held while submitting: two flushes must not overtake each other.
        let mut pending = self.pending.lock();
        if pending.is_empty() {
            return;
        }
        let writes = std::mem::take(&mut *pending);
        drop(store.submit(Commit::new(generation, writes)));
    }
}
