//! Trees that a process may have died of. Each is stepped singly, so that a further death says which it was; one that has
//! made progress is acquitted, and one that was there at a second death is put in quarantine.
//!
//! A folder keeps the notes of [`crate::StepNotes`]; a store that hosts share keeps marks of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_model::RunId;
use dashmap::DashSet;

/// How long after the start suspects are stepped. Those that were there by chance wait a moment longer.
const BEFORE_TRIALS: Duration = Duration::from_secs(1);

pub(crate) struct Suspects {
    /// Trees that were being stepped when a process died; [`crate::StepNotes`] knows at which deaths.
    pub(crate) noted: DashSet<RunId>,
    /// The same for a store that is shared: the store says which they are, and is told when one is stepped.
    pub(super) marked: DashSet<RunId>,
    /// Nearly always none, which every step may then find out without a lock.
    count: AtomicUsize,
    /// Held by whoever steps a suspect: should the process die, it is clear of which.
    pub(crate) singly: tokio::sync::Mutex<()>,
    /// From when on suspects are stepped.
    pub(crate) trials_at: tokio::time::Instant,
}

impl Default for Suspects {
    fn default() -> Self {
        Self {
            noted: DashSet::new(),
            marked: DashSet::new(),
            count: AtomicUsize::new(0),
            singly: tokio::sync::Mutex::new(()),
            trials_at: tokio::time::Instant::now() + BEFORE_TRIALS,
        }
    }
}

impl Suspects {
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    pub(crate) fn contains(&self, root: &RunId) -> bool {
        self.any() && (self.noted.contains(root) || self.marked.contains(root))
    }

    pub(crate) fn note(&self, root: RunId) {
        self.count.fetch_add(usize::from(self.noted.insert(root)), Ordering::AcqRel);
    }

    pub(super) fn acquit(&self, root: &RunId) {
        self.count.fetch_sub(usize::from(self.noted.remove(root).is_some()), Ordering::AcqRel);
    }

    pub(super) fn mark(&self, root: RunId) {
        self.count.fetch_add(usize::from(self.marked.insert(root)), Ordering::AcqRel);
    }

    pub(crate) fn unmark(&self, root: &RunId) {
        self.count.fetch_sub(usize::from(self.marked.remove(root).is_some()), Ordering::AcqRel);
    }
}

/// Leave to step a suspect.
pub(crate) struct Singly<'a> {
    pub(super) _alone: tokio::sync::MutexGuard<'a, ()>,
}
