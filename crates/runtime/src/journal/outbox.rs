//! Writes on their way to the journal, in causal order. Pushing happens under a run's lock; flushing hands everything
//! pushed so far to the writer, so work that runs ahead shares its fsync. Whoever flushes, the order is the order of
//! pushing, within each tenant.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_model::TenantId;
use baton_store::{Chains, Commit, QueueGauge, QueuedBytes, Store, Write};
use dashmap::DashMap;
use parking_lot::Mutex;

use crate::journal::written::WrittenBytes;

/// How many bytes share a commit at most, unless a single push has more: enough that a sync is shared widely, and little
/// enough that nobody waits long behind it.
pub(crate) const SHARED_BYTES: usize = 4 * 1024 * 1024;
/// How much all tenants together may have waiting for the disk before their runs wait for it: seconds of a fast disk's
/// work. It lies in memory.
pub(crate) const MOST_WAITING: usize = 256 * 1024 * 1024;
/// How much of that one tenant may have: whoever writes more than the disk takes waits for its own.
pub(crate) const MOST_OF_TENANT: usize = 64 * 1024 * 1024;
/// Sweeping fewer tenants is not worth it.
const FEW_TENANTS: usize = 256;

#[derive(Default)]
pub(crate) struct Outbox {
    pending: Mutex<Pending>,
    /// How much waits to be written: pushed, or queued at the writer.
    all: Arc<QueueGauge>,
    tenants: DashMap<TenantId, Arc<QueueGauge>>,
    sweep_at: AtomicUsize,
    /// What each tenant has written since this process began.
    written: Arc<WrittenBytes>,
}

#[derive(Default)]
struct Pending {
    parts: Vec<Pushed>,
    waiting: Waiting,
}

/// What was pushed at once.
struct Pushed {
    tenant: TenantId,
    writes: Vec<Write>,
    chains: Chains,
    bytes: usize,
    queued: Vec<QueuedBytes>,
}

/// How much has been pushed and not flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) writes: usize,
    pub(crate) bytes: usize,
}

/// A commit in the making.
struct Together {
    tenant: TenantId,
    parts: Vec<(Vec<Write>, Chains)>,
    bytes: usize,
    queued: Vec<QueuedBytes>,
}

impl Together {
    fn of(tenant: &TenantId) -> Self {
        Self { tenant: tenant.clone(), parts: Vec::new(), bytes: 0, queued: Vec::new() }
    }
}

impl Outbox {
    pub(crate) fn new(written: Arc<WrittenBytes>) -> Self {
        Self { written, ..Self::default() }
    }

    /// Adds writes of a tenant that must become durable together, and says what they belong to. Returns how much is
    /// waiting, and how many bytes were added.
    pub(crate) fn push(&self, tenant: &TenantId, writes: Vec<Write>, chains: Chains) -> (Waiting, usize) {
        let bytes = self.written.add(tenant, &writes);
        let queued = vec![self.of(tenant).add(bytes), self.all.add(bytes)];
        let mut pending = self.pending.lock();
        pending.waiting.writes += writes.len();
        pending.waiting.bytes += bytes;
        if !writes.is_empty() {
            pending.parts.push(Pushed { tenant: tenant.clone(), writes, chains, bytes, queued });
        }
        (pending.waiting, bytes)
    }

    /// Queues everything pushed so far, in as few commits as it fits into: one for each tenant, or several where that is
    /// too much. What was pushed at once stays together.
    pub(crate) fn flush(&self, store: &dyn Store, generation: u64) {
        // The lock is held while submitting: two flushes must not overtake each other.
        let mut pending = self.pending.lock();
        let Pending { parts, .. } = std::mem::take(&mut *pending);
        let submit = |together: Together| {
            let commit = Commit::of_parts(generation, together.parts).weighing(together.queued);
            drop(store.submit(commit.of_tenant(together.tenant)));
        };
        let mut open: Vec<Together> = Vec::new();
        for pushed in parts {
            let place = open.iter().position(|together| together.tenant == pushed.tenant);
            let place = place.unwrap_or_else(|| {
                open.push(Together::of(&pushed.tenant));
                open.len() - 1
            });
            let together = &mut open[place];
            if !together.parts.is_empty() && together.bytes + pushed.bytes > SHARED_BYTES {
                let next = Together::of(&pushed.tenant);
                submit(std::mem::replace(together, next));
            }
            together.bytes += pushed.bytes;
            together.queued.extend(pushed.queued);
            together.parts.push((pushed.writes, pushed.chains));
        }
        open.into_iter().for_each(submit);
    }

    /// Whether a tenant may write more right now.
    pub(crate) fn has_room(&self, tenant: &TenantId) -> bool {
        self.all.bytes() < MOST_WAITING && self.of(tenant).bytes() < MOST_OF_TENANT
    }

    /// Waits until a tenant may write more.
    pub(crate) async fn room(&self, tenant: &TenantId) {
        self.of(tenant).below(MOST_OF_TENANT).await;
        self.all.below(MOST_WAITING).await;
    }

    fn of(&self, tenant: &TenantId) -> Arc<QueueGauge> {
        if let Some(gauge) = self.tenants.get(tenant) {
            return Arc::clone(&gauge);
        }
        if self.tenants.len() > self.sweep_at.load(Ordering::Relaxed).max(FEW_TENANTS) {
            self.tenants.retain(|_, gauge| Arc::strong_count(gauge) > 1);
            self.sweep_at.store(2 * self.tenants.len(), Ordering::Relaxed);
        }
        Arc::clone(&self.tenants.entry(tenant.clone()).or_default())
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
        let (store, outbox, tenant) = (MemoryStore::new(), Outbox::default(), TenantId::new("a"));
        store.hold();
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 0, "nothing is no commit");
        for bytes in [SHARED_BYTES / 2, SHARED_BYTES / 2, 1, 1, SHARED_BYTES + 1, 1] {
            outbox.push(&tenant, blob(bytes), Chains::default());
        }
        let waiting = Waiting { writes: 6, bytes: 2 * SHARED_BYTES + 4 };
        assert_eq!(outbox.push(&tenant, Vec::new(), Chains::default()), (waiting, 0));
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 4, "two halves, two small ones, a large one by itself, and the rest");
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 4);
    }

    #[test]
    fn tenants_have_commits_of_their_own() {
        let (store, outbox) = (MemoryStore::new(), Outbox::default());
        let (a, b) = (TenantId::new("a"), TenantId::new("b"));
        store.hold();
        for tenant in [&a, &b, &a, &b, &b] {
            outbox.push(tenant, blob(1), Chains::default());
        }
        outbox.flush(&store, 1);
        assert_eq!(store.waiting(), 2, "one of a, one of b");
    }

    #[tokio::test]
    async fn whoever_has_too_much_waiting_waits_and_others_do_not() {
        let (store, outbox) = (MemoryStore::new(), Outbox::default());
        let (much, little) = (TenantId::new("much"), TenantId::new("little"));
        store.hold();
        outbox.push(&much, blob(MOST_OF_TENANT), Chains::default());
        assert!(!outbox.has_room(&much) && outbox.has_room(&little));
        outbox.room(&little).await;
        outbox.flush(&store, 1);
        assert!(!outbox.has_room(&much), "it is with the writer, and not on disk");
        store.release();
        outbox.room(&much).await;
        assert!(outbox.has_room(&much));
    }
}
