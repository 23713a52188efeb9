use std::collections::HashMap;

use baton_model::Timestamp;

use crate::{Change, VersionedStoreId};

/// The changes of one memory scope or workspace that have not been forgotten, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct VersionedStore {
    /// Goes on when changes are forgotten.
    pub(super) version: u64,
    pub(super) updated_at: Timestamp,
    pub(super) changes: Vec<Change>,
    /// What it was forked from, and up to where it sees that.
    pub(super) base: Option<(VersionedStoreId, u64)>,
}

impl VersionedStore {
    pub(super) fn append(&mut self, change: Change) {
        self.version = change.version;
        self.updated_at = change.at;
        self.changes.push(change);
    }

    /// Keeps, of every key, the newest change at or below the version and all that are newer; but a deletion that
    /// nothing followed has nothing left to hide, unless this versioned store sees another one.
    pub(super) fn forget(&mut self, below: u64) {
        let mut newest_below: HashMap<String, u64> = HashMap::new();
        let mut newest: HashMap<String, u64> = HashMap::new();
        for change in &self.changes {
            newest.insert(change.key.clone(), change.version);
            if change.version <= below {
                newest_below.insert(change.key.clone(), change.version);
            }
        }
        self.changes.retain(|change| {
            let replaced = newest_below.get(&change.key).is_some_and(|version| *version > change.version);
            let hides = self.base.is_some() || newest[&change.key] != change.version;
            let gone = change.item.is_none() && change.version <= below && !hides;
            !replaced && !gone
        });
    }
}
