//! What calls in flight may yet spend. Calls outlive a failed commit, and so does what is set aside for them: an account
//! is read anew then, but whoever reads it finds the same calls in flight.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use baton_model::RunId;
use baton_model::budget::Dimension;
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::services::budgets::counts::Counts;

/// What the calls of one tree may yet spend.
#[derive(Default)]
pub(crate) struct InFlight {
    pub(super) set_aside: Mutex<Counts>,
    /// Something may be possible now that was not before.
    pub(super) changed: Notify,
}

/// What is set aside for a call in flight. Given back when the call is over, however it ended.
pub(crate) struct Reservation {
    all: Arc<InFlight>,
    own: Counts,
    cap: Option<u64>,
}

impl Reservation {
    /// Of what was added to `all` already.
    pub(super) fn new(all: Arc<InFlight>, own: Counts, cap: Option<u64>) -> Self {
        Self { all, own, cap }
    }

    /// The most that the answer may take, where the budget bounds it.
    pub(crate) fn cap(&self) -> Option<u64> {
        self.cap
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut set_aside = self.all.set_aside.lock();
        for dimension in Dimension::ALL {
            set_aside.take(dimension, self.own.get(dimension));
        }
        drop(set_aside);
        self.all.changed.notify_waiters();
    }
}

/// By the tree's first run, for as long as an account or a call of the tree is there.
#[derive(Default)]
pub(crate) struct AllInFlight {
    trees: DashMap<RunId, Weak<InFlight>>,
    /// How many there may be before those that are gone are swept out.
    sweep_at: AtomicUsize,
}

/// Sweeping fewer is not worth it.
const FEW: usize = 256;

impl AllInFlight {
    pub(crate) fn of(&self, root: &RunId) -> Arc<InFlight> {
        if self.trees.len() > self.sweep_at.load(Ordering::Relaxed).max(FEW) {
            self.trees.retain(|_, one| one.strong_count() > 0);
            self.sweep_at.store(2 * self.trees.len(), Ordering::Relaxed);
        }
        let mut entry = self.trees.entry(root.clone()).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let fresh = Arc::new(InFlight::default());
            *entry = Arc::downgrade(&fresh);
            fresh
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_may_spend_is_known_to_the_next_account_of_its_tree() {
        let all = AllInFlight::default();
        let root = RunId::new("r");
        let mut own = Counts::default();
        own.add(Dimension::Tokens, 7);
        let first = all.of(&root);
        *first.set_aside.lock() = own;
        let hold = Reservation::new(first, own, None);
        assert_eq!(all.of(&root).set_aside.lock().get(Dimension::Tokens), 7);
        drop(hold);
        assert_eq!(all.of(&root).set_aside.lock().get(Dimension::Tokens), 0);
    }

    #[test]
    fn trees_that_are_gone_are_swept_out() {
        let all = AllInFlight::default();
        for run in 0..10 * FEW {
            all.of(&RunId::new(format!("r{run}")));
        }
        assert!(all.trees.len() <= FEW + 1, "{}", all.trees.len());
    }
}
