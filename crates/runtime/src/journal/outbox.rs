//! Writes on their way to the journal, in causal order. Pushing happens under a run's lock; flushing hands everything
//! pushed so far to the writer, so work that runs ahead shares its fsync. Whoever flushes, the order is the order of
//! pushing.

use baton_store::{Commit, Store, Write};
use parking_lot::Mutex;

/// How many bytes share a commit at most, unless a single push has more: enough that a sync is shared widely, and little
/// enough that nobody waits long behind it.
pub(crate) const SHARED_BYTES: usize = 16 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct Outbox {
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// What was pushed at once, and how many bytes it has.
    parts: Vec<(Vec<Write>, usize)>,
    waiting: Waiting,
}

/// How much has been pushed and not flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) writes: usize,
    pub(crate) bytes: usize,
}

impl Outbox {
    /// Adds writes that must become durable together. Returns how much is waiting, and how many bytes were added.
    pub(crate) fn push(&self, writes: Vec<Write>) -> (Waiting, usize) {
        let bytes = writes.iter().map(Write::bytes).sum();
        let mut pending = self.pending.lock();
        pending.waiting.writes += writes.len();
        pending.waiting.bytes += bytes;
        if !writes.is_empty() {
            pending.parts.push((writes, bytes));
        }
        (pending.waiting, bytes)
    }

    /// Queues everything pushed so far, in as few commits as it fits into. What was pushed at once stays together.
    pub(crate) fn flush(&self, store: &dyn Store, generation: u64) {
        // The lock is held while submitting: two flushes must not overtake each other.
        let mut pending = self.pending.lock();
        let Pending { parts, .. } = std::mem::take(&mut *pending);
        let (mut together, mut bytes) = (Vec::new(), 0_usize);
        for (part, more) in parts {
            if !together.is_empty() && bytes + more > SHARED_BYTES {
                drop(store.submit(Commit::of_parts(generation, std::mem::take(&mut together))));
                bytes = 0;
            }
            bytes += more;
            together.push(part);
        }
        if !together.is_empty() {
            drop(store.submit(Commit::of_parts(generation, together)));
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_model::Digest;
    use baton_store::MemoryStore;

    use super::*;

    fn blob(bytes: usize) -> Vec<Write> {
        vec![Write::PutBlob { digest: Digest::of_bytes([0]), bytes: vec![0; bytes] }]
    }

    #[test]
    fn no_commit_has_more_than_it_must() {
        let (store, outbox) = (MemoryStore::new(), Outbox::default());
        store.hold();
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 0, "nothing is no commit");
        for bytes in [SHARED_BYTES / 2, SHARED_BYTES / 2, 1, 1, SHARED_BYTES + 1, 1] {
            outbox.push(blob(bytes));
        }
        assert_eq!(outbox.push(Vec::new()), (Waiting { writes: 6, bytes: 2 * SHARED_BYTES + 4 }, 0));
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 4, "two halves, two small ones, a large one by itself, and the rest");
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 4);
    }
}
