//! In which lane writes wait for the writer, and how they get there. Every write but those of steps is handed over here.

use baton_model::TenantId;
use baton_store::{Commit, CommitReceipt, Write};

use crate::journal::storage::Storage;

/// Among whose writes something keeps its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane<'a> {
    /// Among those of this tenant, and in turns with those of others.
    Of(&'a TenantId),
    /// The host's own, which may come before or after those of any tenant.
    Host,
    /// Everybody's: whatever is queued comes first, and whatever is queued later comes after it. One tenant's backlog holds
    /// up all others behind such a write, so nothing that happens all the time is one.
    All,
}

/// Nobody's tenant. It takes its turn like anybody.
const HOST: &str = "*host";

impl Storage {
    /// Hands writes to the writer that are one part and belong to no chain.
    pub(crate) fn write(&self, generation: u64, lane: Lane<'_>, writes: Vec<Write>) -> CommitReceipt {
        self.submit(lane, Commit::new(generation, writes))
    }

    /// The same for several parts, or for what belongs to chains.
    pub(crate) fn submit(&self, lane: Lane<'_>, commit: Commit) -> CommitReceipt {
        if let Lane::Of(tenant) = lane {
            self.written.add(tenant, commit.writes());
        }
        self.store.submit(match lane {
            Lane::Of(tenant) => commit.of_tenant(tenant.clone()),
            Lane::Host => commit.of_tenant(TenantId::new(HOST)),
            Lane::All => commit,
        })
    }
}
