//! One generation of live runs. When a commit fails it ends with everything in it, and what is needed is loaded again
//! from what is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_model::{RunId, Timestamp};
use baton_store::{CommitError, VersionedStoreId};
use dashmap::{DashMap, DashSet};
use parking_lot::Mutex;

use crate::Error;
use crate::journal::ending::Ending;
use crate::journal::outbox::Outbox;
use crate::run::live::RunHandle;
use crate::services::budgets::open_accounts::Budgets;
use crate::services::versioned::{OpenStores, VersionedStore};

/// The live runs between two failed commits, with everything that was derived for them.
pub(crate) struct Generation {
    pub(crate) generation: u64,
    pub(crate) began: Timestamp,
    pub(crate) runs: DashMap<RunId, Arc<RunHandle>>,
    pub(crate) outbox: Outbox,
    pub(crate) ledgers: OpenStores,
    /// What trees of runs may still spend.
    pub(crate) budgets: Budgets,
    /// Versioned stores that callers wrote to lately, oldest first: the next write finds them as they stand.
    kept: Mutex<VecDeque<Arc<VersionedStore>>>,
    /// Versioned stores that other hosts must ask for before they write, on a store that is shared.
    pub(crate) claimed: DashSet<VersionedStoreId>,
    pub(crate) ending: Ending,
}

impl Generation {
    pub(crate) fn new(generation: u64, shared: bool, began: Timestamp) -> Self {
        Self {
            generation,
            began,
            runs: DashMap::new(),
            outbox: Outbox::default(),
            ledgers: OpenStores::new(shared),
            claimed: DashSet::new(),
            budgets: Budgets::default(),
            kept: Mutex::new(VecDeque::new()),
            ending: Ending::default(),
        }
    }

    /// Keeps a versioned store in memory for a while, though nobody holds it.
    pub(crate) fn keep(&self, ledger: &Arc<VersionedStore>) {
        let mut kept = self.kept.lock();
        if !kept.iter().rev().take(8).any(|known| Arc::ptr_eq(known, ledger)) {
            kept.push_back(Arc::clone(ledger));
        }
        while kept.len() > KEPT_STORES {
            kept.pop_front();
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.ending.is_dead()
    }

    /// A commit of this generation failed: nobody may rely on these live runs any more.
    pub(crate) fn kill(&self, error: &CommitError) {
        self.ending.end(error);
        for handle in &self.runs {
            handle.progress.ring();
        }
        self.ledgers.kill();
    }

    /// Why this run will not become durable, if this generation ended because of what it wrote.
    pub(crate) fn refused(&self, run: &RunId) -> Option<Error> {
        self.ending.refused(run)
    }

    pub(crate) fn committed(&self, run: &RunId, next_seq: u64) {
        if let Some(handle) = self.runs.get(run) {
            handle.progress.reached(next_seq);
        }
    }
}

/// How many versioned stores stay in memory after a caller wrote to them.
pub(crate) const KEPT_STORES: usize = 256;
