//! One generation of live runs. When the disk fails it ends with everything in it, and what is needed is loaded again from
//! what is durable. When only some writes are lost, only the trees end that they belong to: their chains break.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use baton_model::{RunId, Timestamp};
use baton_store::{CommitError, VersionedStoreId, WriteChain};
use dashmap::{DashMap, DashSet};
use parking_lot::Mutex;

use crate::journal::ending::Ending;
use crate::journal::outbox::Outbox;
use crate::journal::written::WrittenBytes;
use crate::run::live::RunHandle;
use crate::services::budgets::open_accounts::Budgets;
use crate::services::versioned::{OpenStores, VersionedStore};

/// The live runs between two failed commits, with everything that was derived for them.
pub(crate) struct Generation {
    pub(crate) generation: u64,
    pub(crate) began: Timestamp,
    pub(crate) runs: DashMap<RunId, Arc<RunHandle>>,
    /// The chains of trees that have a run in memory.
    chains: DashMap<RunId, Weak<WriteChain>>,
    /// How many chains there may be before those whose trees are gone are swept out.
    sweep_at: AtomicUsize,
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
    pub(crate) fn new(generation: u64, shared: bool, began: Timestamp, written: Arc<WrittenBytes>) -> Self {
        Self {
            generation,
            began,
            runs: DashMap::new(),
            chains: DashMap::new(),
            sweep_at: AtomicUsize::new(FEW_CHAINS),
            outbox: Outbox::new(written),
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

    /// The run, if it is in memory and nothing that it was derived from is lost.
    pub(crate) fn run(&self, run: &RunId) -> Option<Arc<RunHandle>> {
        self.runs.get(run).map(|handle| Arc::clone(&handle)).filter(|handle| !handle.is_lost())
    }

    /// Whoever asks for the run next gets another handle.
    pub(crate) fn drop_run(&self, run: &RunId, handle: &Arc<RunHandle>) {
        self.runs.remove_if(run, |_, current| Arc::ptr_eq(current, handle));
    }

    /// What the writes of a tree are links of, from its first run in memory to its last.
    pub(crate) fn chain(&self, root: &RunId) -> Arc<WriteChain> {
        if self.chains.len() > self.sweep_at.load(Ordering::Relaxed) {
            self.chains.retain(|_, chain| chain.strong_count() > 0);
            self.sweep_at.store((2 * self.chains.len()).max(FEW_CHAINS), Ordering::Relaxed);
        }
        let mut entry = self.chains.entry(root.clone()).or_default();
        if let Some(chain) = entry.upgrade().filter(|chain| !chain.is_broken()) {
            return chain;
        }
        let chain = Arc::new(WriteChain::of_tree(root.clone()));
        *entry = Arc::downgrade(&chain);
        drop(entry);
        if self.is_dead() {
            // Whoever killed it may not have seen this one.
            chain.break_off(&CommitError::Stale);
        }
        chain
    }

    /// Some chains are broken, and so are those of trees that hold a versioned store of a broken one. Says which runs are
    /// lost, and their trees. Called when it is known what was written.
    pub(crate) fn break_lost(&self) -> Vec<(RunId, RunId)> {
        let mut lost = BTreeMap::new();
        loop {
            let before = lost.len();
            // Giving one up breaks the chain of its tree, and the others of that tree are lost with it.
            let more = self.runs.iter().filter(|handle| handle.is_lost());
            // In the order of their names: who is woken first must not depend on how a map hashes.
            let more: BTreeMap<_, _> = more.map(|handle| (handle.key().clone(), Arc::clone(&handle))).collect();
            for (run, handle) in more {
                handle.give_up();
                handle.chain.tell();
                lost.insert(run, handle.root.clone());
            }
            if lost.len() == before {
                return lost.into_iter().collect();
            }
        }
    }

    /// The disk failed: nobody may rely on these live runs any more.
    pub(crate) fn kill(&self) {
        self.ending.end();
        let mut chains: Vec<_> = self.chains.iter().filter_map(|chain| chain.upgrade()).collect();
        // In the order of their names: who is woken first must not depend on how a map hashes.
        chains.sort_unstable_by(|a, b| a.root().cmp(&b.root()));
        chains.iter().for_each(|chain| chain.break_off(&CommitError::Stale));
        self.ledgers.kill();
    }

    pub(crate) fn committed(&self, run: &RunId, next_seq: u64) {
        if let Some(handle) = self.runs.get(run) {
            handle.progress.reached(next_seq);
        }
    }
}

/// Sweeping fewer chains is not worth it.
const FEW_CHAINS: usize = 1024;

/// How many versioned stores stay in memory after a caller wrote to them.
pub(crate) const KEPT_STORES: usize = 256;
