//! One generation of live runs. When the disk fails it ends with everything in it, and what is needed is loaded again from
//! what is durable. When only some writes are lost, only the trees end that they belong to: their chains break.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use baton_model::{RunId, Timestamp};
use baton_store::{CommitError, LostPart, VersionedStoreId, WriteChain};
use dashmap::{DashMap, DashSet};
use parking_lot::Mutex;

use crate::journal::ending::Ending;
use crate::journal::live_runs::LiveRuns;
use crate::journal::outbox::Outbox;
use crate::journal::written::WrittenBytes;
use crate::run::live::RunHandle;
use crate::services::budgets::open_accounts::Budgets;
use crate::services::versioned::{OpenStores, VersionedStore};

/// The live runs between two failed commits, with everything that was derived for them.
pub(crate) struct Generation {
    pub(crate) generation: u64,
    pub(crate) began: Timestamp,
    pub(crate) runs: LiveRuns,
    /// The chains of trees that have a run in memory.
    chains: DashMap<RunId, TreeChain>,
    /// Chains of runs that were given up when somebody asked for them, until what is lost with them is looked at.
    given_up: Mutex<Vec<Arc<WriteChain>>>,
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

/// What the writes of a tree are links of.
#[derive(Default)]
struct TreeChain {
    chain: Weak<WriteChain>,
    /// The one before it, if that broke and nobody has waited since for what was written of it.
    before: Weak<WriteChain>,
}

impl Generation {
    pub(crate) fn new(generation: u64, shared: bool, began: Timestamp, written: Arc<WrittenBytes>) -> Self {
        Self {
            generation,
            began,
            runs: LiveRuns::default(),
            chains: DashMap::new(),
            given_up: Mutex::default(),
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
        self.runs.get(run).filter(|handle| !handle.is_lost())
    }

    /// Whoever asks for the run next gets another handle.
    pub(crate) fn drop_run(&self, run: &RunId, handle: &Arc<RunHandle>) {
        self.runs.remove_this(run, handle);
    }

    /// What the writes of a tree are links of, from its first run in memory to its last.
    pub(crate) fn chain(&self, root: &RunId) -> Arc<WriteChain> {
        if self.chains.len() > self.sweep_at.load(Ordering::Relaxed) {
            self.chains.retain(|_, tree| tree.chain.strong_count() > 0 || tree.before.strong_count() > 0);
            self.sweep_at.store((2 * self.chains.len()).max(FEW_CHAINS), Ordering::Relaxed);
        }
        let mut entry = self.chains.entry(root.clone()).or_default();
        match entry.chain.upgrade() {
            Some(chain) if !chain.is_broken() => return chain,
            Some(broken) => entry.before = Arc::downgrade(&broken),
            None => {}
        }
        let chain = Arc::new(WriteChain::of_tree(root.clone()));
        entry.chain = Arc::downgrade(&chain);
        drop(entry);
        if self.is_dead() {
            // Whoever killed it may not have seen this one.
            chain.break_off(&CommitError::Stale);
        }
        chain
    }

    /// Whether something that was written for a tree before its chain broke may still be on its way to the disk: what is
    /// read until then is not what the tree goes on from.
    pub(crate) fn is_unsettled(&self, root: &RunId) -> bool {
        self.chains.get(root).is_some_and(|tree| tree.before.strong_count() > 0)
    }

    /// It is on the disk by now, or dropped. `chain` is what the tree had when that was waited for.
    pub(crate) fn settled(&self, root: &RunId, chain: &Arc<WriteChain>) {
        if let Some(mut tree) = self.chains.get_mut(root)
            && std::ptr::eq(tree.chain.as_ptr(), Arc::as_ptr(chain))
        {
            tree.before = Weak::new();
        }
    }

    /// Nobody relies any more on a run that is lost. Others of its tree are given up when it is known what was written.
    pub(crate) fn give_up(&self, handle: &RunHandle) {
        // Listed before it breaks: whoever looks meanwhile finds it broken, or looks again.
        self.given_up.lock().push(Arc::clone(&handle.chain));
        handle.give_up();
    }

    /// Whether a tree has at most this one run in memory.
    pub(crate) fn is_alone(&self, root: &RunId) -> bool {
        let chain = self.chains.get(root).and_then(|tree| tree.chain.upgrade());
        chain.is_none_or(|chain| self.runs.of(&chain).len() <= 1)
    }

    /// Some chains are broken, and so are those of trees that hold a versioned store of a broken one. Says which runs are
    /// lost, and their trees. Called when it is known what was written.
    pub(crate) fn break_lost(&self, parts: &[LostPart]) -> Vec<(RunId, RunId)> {
        let mut broken: Vec<_> = std::mem::take(&mut *self.given_up.lock());
        broken.extend(parts.iter().flat_map(|part| part.chains.iter().cloned()));
        let (mut seen, mut lost) = (HashSet::new(), BTreeMap::new());
        while let Some(chain) = broken.pop() {
            if !seen.insert(Arc::as_ptr(&chain)) {
                continue;
            }
            for (run, handle) in self.runs.of(&chain) {
                // Giving one up breaks the chain of its tree, and the others of that tree are lost with it.
                handle.give_up();
                handle.chain.tell();
                broken.push(Arc::clone(&handle.chain));
                lost.insert(run, handle.root.clone());
            }
        }
        lost.into_iter().collect()
    }

    /// The disk failed: nobody may rely on these live runs any more.
    pub(crate) fn kill(&self) {
        self.ending.end();
        let mut chains: Vec<_> = self.chains.iter().filter_map(|tree| tree.chain.upgrade()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads a tree waits as long as something of its broken chain may be on its way, however often that is asked.
    #[test]
    fn a_tree_is_unsettled_until_somebody_has_waited_for_what_was_on_its_way() {
        let live = Generation::new(1, false, Timestamp::default(), Arc::default());
        let root = RunId::new("r");
        let on_its_way = live.chain(&root);
        assert!(!live.is_unsettled(&root));
        on_its_way.break_untold(&CommitError::Stale);
        let given_up = live.chain(&root);
        assert!(live.is_unsettled(&root));
        drop(given_up);
        let next = live.chain(&root);
        assert!(live.is_unsettled(&root), "whoever gave up waiting has not waited");
        live.settled(&root, &on_its_way);
        assert!(live.is_unsettled(&root), "that was another chain");
        live.settled(&root, &next);
        assert!(!live.is_unsettled(&root));
        next.break_untold(&CommitError::Stale);
        let last = live.chain(&root);
        assert!(live.is_unsettled(&root));
        drop(next);
        assert!(!live.is_unsettled(&root), "nothing holds it any more");
        drop(last);
    }
}
