//! Wake-ups. Only those due soon are kept in memory; the rest lie in the store as `wake_at` and are fetched when their
//! time comes near, so a million runs that wait for next week cost nothing here.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::{RunId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How far ahead timers are held in memory.
pub(crate) const HORIZON_MS: u64 = 60_000;
/// How often the store is asked for timers that have come near; well inside the horizon.
pub(crate) const REFILL_MS: u64 = 20_000;

#[derive(Default)]
pub(crate) struct Timers {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    by_time: BTreeSet<(Timestamp, RunId)>,
    by_run: BTreeMap<RunId, Timestamp>,
}

impl Timers {
    /// Wakes `run` at `at`, replacing what was set before.
    pub(crate) fn set(&self, run: &RunId, at: Timestamp) {
        let mut inner = self.inner.lock();
        if inner.by_run.get(run) == Some(&at) {
            return;
        }
        if let Some(old) = inner.by_run.insert(run.clone(), at) {
            inner.by_time.remove(&(old, run.clone()));
        }
        let earliest = inner.by_time.first().is_none_or(|(first, _)| at < *first);
        inner.by_time.insert((at, run.clone()));
        drop(inner);
        if earliest {
            self.changed.notify_one();
        }
    }

    pub(crate) fn clear(&self, run: &RunId) {
        let mut inner = self.inner.lock();
        if let Some(at) = inner.by_run.remove(run) {
            inner.by_time.remove(&(at, run.clone()));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().by_run.len()
    }

    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.inner.lock().by_run.contains_key(run)
    }

    pub(crate) fn earliest(&self) -> Option<Timestamp> {
        self.inner.lock().by_time.first().map(|(at, _)| *at)
    }

    /// Takes everything due at `now`.
    pub(crate) fn take_due(&self, now: Timestamp) -> Vec<RunId> {
        let mut inner = self.inner.lock();
        let mut due = Vec::new();
        while let Some((at, _)) = inner.by_time.first()
            && *at <= now
            && let Some((_, run)) = inner.by_time.pop_first()
        {
            inner.by_run.remove(&run);
            due.push(run);
        }
        due
    }

    /// Resolves when the earliest timer may have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_counts() {
        let timers = Timers::default();
        let (a, b) = (RunId::new("a"), RunId::new("b"));
        timers.set(&a, Timestamp::from_millis(5));
        timers.set(&b, Timestamp::from_millis(3));
        timers.set(&a, Timestamp::from_millis(1));
        assert_eq!(timers.earliest(), Some(Timestamp::from_millis(1)));
        assert_eq!(timers.take_due(Timestamp::from_millis(3)), [a, b.clone()]);
        assert_eq!(timers.earliest(), None);
        timers.set(&b, Timestamp::from_millis(9));
        timers.clear(&b);
        assert!(timers.take_due(Timestamp::from_millis(100)).is_empty());
    }
}
