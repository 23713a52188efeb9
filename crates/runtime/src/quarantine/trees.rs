//! Which trees are left alone, and which have failed once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_model::{QuarantineView, RunId, Timestamp};
use baton_store::Quarantine;
use dashmap::DashMap;
use parking_lot::Mutex;

use crate::quarantine::suspects::Suspects;

/// What this process knows of trees that misbehave.
#[derive(Default)]
pub(crate) struct QuarantinedTrees {
    pub(crate) trees: DashMap<RunId, QuarantineEntry>,
    /// Nearly always none, which every step may then find out without a lock.
    count: AtomicUsize,
    strikes: Mutex<BTreeMap<RunId, u32>>,
    /// Trees whose writes the store refused, and how often.
    pub(crate) refused: Mutex<BTreeMap<RunId, Refusals>>,
    pub(crate) suspects: Suspects,
}

/// How often the store refused what one tree wrote, one time after the other.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    pub(crate) times: u32,
    /// Whose write it was the last time, how many of its records were on disk by then, and when that was.
    pub(crate) run: RunId,
    pub(crate) durable: u64,
    pub(crate) at: Timestamp,
}

impl QuarantinedTrees {
    pub(crate) fn of(&self, root: &RunId) -> Option<Arc<Quarantine>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.trees.get(root).map(|held| Arc::clone(&held.quarantine))
    }

    pub(crate) fn put(&self, quarantine: Quarantine, durable: bool) {
        let new =
            self.trees.insert(quarantine.root.clone(), QuarantineEntry { quarantine: Arc::new(quarantine), durable });
        self.count.fetch_add(usize::from(new.is_none()), Ordering::AcqRel);
    }

    pub(crate) fn remove(&self, root: &RunId) {
        let known = self.trees.remove(root);
        self.count.fetch_sub(usize::from(known.is_some()), Ordering::AcqRel);
        self.strikes.lock().remove(root);
        self.suspects.acquit(root);
    }

    /// The same for a tree that may go on, on a store that hosts share. One more death is one too many, so whoever drives it
    /// steps it singly.
    pub(crate) fn released(&self, root: &RunId) {
        self.suspects.mark(root.clone());
        self.remove(root);
    }

    /// How many trees this process leaves alone.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn held_for(&self, cause: Cause) -> Vec<RunId> {
        let held = self.trees.iter().filter(|held| held.quarantine.cause == cause.as_str());
        in_order(held.map(|held| held.key().clone()), Clone::clone)
    }

    pub(crate) fn not_durable(&self) -> Vec<Quarantine> {
        let held = self.trees.iter().filter(|held| !held.durable);
        in_order(held.map(|held| held.quarantine.as_ref().clone()), |held| held.root.clone())
    }

    /// Those that the store knew of, and that are not among these.
    pub(crate) fn durable_but(&self, found: &BTreeSet<RunId>) -> Vec<RunId> {
        let gone = self.trees.iter().filter(|held| held.durable && !found.contains(held.key()));
        in_order(gone.map(|held| held.key().clone()), Clone::clone)
    }

    /// Counts one more failure of a tree.
    pub(crate) fn strike(&self, root: &RunId) -> u32 {
        let mut strikes = self.strikes.lock();
        if strikes.len() >= MOST_STRIKES && !strikes.contains_key(root) {
            strikes.pop_first();
        }
        let count = strikes.entry(root.clone()).or_insert(0);
        *count += 1;
        *count
    }
}

#[derive(Clone)]
pub(crate) struct QuarantineEntry {
    pub(crate) quarantine: Arc<Quarantine>,
    /// The store knows of it too.
    pub(crate) durable: bool,
}

/// What a tree did. The words are stored and shown, and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    ProcessDied,
    /// The same after it was let go on once.
    ProcessDiedAgain,
    StepFailed,
    DoesNotFold,
    CommitRefused,
    Stuck,
    /// What is stored of it is not what was written.
    StorageDamaged,
}

impl Cause {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessDied => "process_died",
            Self::ProcessDiedAgain => "process_died_again",
            Self::StepFailed => "step_panicked",
            Self::DoesNotFold => "does_not_fold",
            Self::CommitRefused => "commit_refused",
            Self::Stuck => "stuck",
            Self::StorageDamaged => "storage_damaged",
        }
    }
}

/// Whether the log of a tree in quarantine may be folded. If that is what the process died of, or what never ended,
/// whoever looks at the run must not make it happen again.
pub(crate) fn may_be_loaded(held: &Quarantine) -> bool {
    held.cause == Cause::StepFailed.as_str() || held.cause == Cause::CommitRefused.as_str()
}

/// As clients see it.
pub(crate) fn shown(held: &Quarantine) -> QuarantineView {
    QuarantineView {
        root_run_id: held.root.clone(),
        run_id: held.run.clone(),
        seq: held.seq,
        cause: held.cause.clone(),
        detail: held.detail.clone(),
        since: held.at,
    }
}

/// How many trees with a first strike are remembered. More only means that one of them gets a further try.
pub(crate) const MOST_STRIKES: usize = 4096;

/// How long a reason may be.
pub(crate) const DETAIL_BYTES: usize = 1000;

/// How often a tree may fail before it is left alone: once may have been the host's fault, and is tried again from what
/// is durable.
pub(crate) const STRIKES: u32 = 2;

/// In the order of the trees' names, whatever the order of the map.
fn in_order<T>(found: impl Iterator<Item = T>, name: impl Fn(&T) -> RunId) -> Vec<T> {
    let mut found: Vec<T> = found.collect();
    found.sort_by_cached_key(name);
    found
}
