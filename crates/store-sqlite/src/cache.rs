//! What the writer remembers, so that an append needs no lookup.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use baton_model::{RunId, RunStatus, Timestamp};
use baton_store::{RunRow, VersionedStoreId};

/// Where a run is in the file and how it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) run: i64,
    pub(crate) next_seq: u64,
    pub(crate) status: RunStatus,
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) busy: bool,
    /// Stands for the run's summary, which is written only when it is another one.
    pub(crate) summary: u64,
}

impl Place {
    pub(crate) fn of(run: i64, row: &RunRow) -> Self {
        Self {
            run,
            next_seq: row.next_seq,
            status: row.status,
            wake_at: row.wake_at,
            busy: row.busy,
            summary: Self::mark(row.summary.as_deref()),
        }
    }

    pub(crate) fn mark(summary: Option<&str>) -> u64 {
        let mut hasher = DefaultHasher::new();
        summary.hash(&mut hasher);
        hasher.finish()
    }
}

/// Where a versioned store is in the file and how far it has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedVersion {
    pub(crate) ledger: i64,
    pub(crate) version: u64,
}

/// Places of recently written runs and versioned stores.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) runs: Recent<RunId, Place>,
    pub(crate) ledgers: Recent<VersionedStoreId, CachedVersion>,
}

impl Places {
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.ledgers.clear();
    }
}

/// About a megabyte of runs when both halves are full.
const HALF: usize = 4096;

/// What was used lately. Two halves instead of a list of uses: when the young half is full it becomes the old one, and
/// whatever is not asked for until the next turn is forgotten.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Eq + Hash, V: Copy> Recent<K, V> {
    pub(crate) fn get(&mut self, id: &K) -> Option<V> {
        if let Some(place) = self.young.get(id) {
            return Some(*place);
        }
        let (id, place) = self.old.remove_entry(id)?;
        self.put(id, place);
        Some(place)
    }

    pub(crate) fn put(&mut self, id: K, place: V) {
        self.old.remove(&id);
        self.young.insert(id, place);
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub(crate) fn forget(&mut self, id: &K) {
        self.young.remove(id);
        self.old.remove(id);
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> RunId {
        RunId::new(format!("run_{n}"))
    }

    fn place(run: i64, next_seq: u64) -> Place {
        Place { run, next_seq, status: RunStatus::Running, wake_at: None, busy: true, summary: 0 }
    }

    #[test]
    fn stays_small_and_keeps_what_is_used() {
        let mut places = Recent::default();
        for n in 0..10 * HALF {
            places.put(id(n), place(n.cast_signed() as i64, 0));
            assert_eq!(places.get(&id(0)).map(|place| place.run), Some(0), "asked for all the time");
        }
        assert!(places.young.len() + places.old.len() <= 2 * HALF);
        assert_eq!(places.get(&id(1)), None, "never asked for");
    }

    #[test]
    fn the_latest_place_counts() {
        let mut places = Recent::default();
        places.put(id(7), place(7, 1));
        for n in 100..100 + HALF {
            places.put(id(n), place(0, 0));
        }
        places.put(id(7), place(7, 2));
        assert_eq!(places.get(&id(7)), Some(place(7, 2)));
        places.forget(&id(7));
        assert_eq!(places.get(&id(7)), None);
    }
}
