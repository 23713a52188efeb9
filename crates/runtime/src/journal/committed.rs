//! What happens after a commit: waiters and subscribers are told at once, on the writer's thread. The order is a contract:
//! observers read a run's old position, so they come before the run hears of it.

use std::sync::{Arc, Weak};

use baton_store::{CommitError, Committed, LostPart, Observer, VersionedStoreCommitted};

use crate::journal::failed_commit::Outage;
use crate::journal::storage::Storage;
use crate::run::eviction_queue::EvictionQueue;
use crate::services::notifications::Notifications;
use crate::services::observers::Observing;
use crate::services::webhooks::Webhooks;

/// Hears of every commit, on the writer's thread.
pub(crate) struct CommitWatch {
    /// The store keeps this, and must keep neither itself nor the host alive by it.
    pub(crate) storage: Weak<Storage>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) observing: Option<Arc<Observing>>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) outage: Weak<Outage>,
}

impl Observer for CommitWatch {
    fn committed(&self, runs: &[Committed], ledgers: &[VersionedStoreCommitted]) {
        let Some(live) = self.storage.upgrade().map(|storage| storage.current()) else { return };
        for committed in ledgers {
            if let Some(ledger) = live.ledgers.get(&committed.ledger) {
                ledger.on_disk(committed.version);
            }
        }
        for committed in runs {
            if let Some(observing) = &self.observing {
                observing.grew(&live, committed);
            }
            live.committed(&committed.run, committed.next_seq);
            self.notifications.committed(&committed.run, committed.next_seq);
            self.webhooks.committed(&committed.run, committed.next_seq);
        }
        self.eviction_queue.visit(runs.iter().map(|committed| committed.run.clone()));
    }

    fn lost(&self, parts: &[LostPart]) {
        if let Some(outage) = self.outage.upgrade() {
            outage.lost_parts(parts);
        }
    }

    fn failed(&self, generation: u64, error: &CommitError) {
        if let Some(outage) = self.outage.upgrade() {
            outage.lost(generation, error);
        }
    }
}
