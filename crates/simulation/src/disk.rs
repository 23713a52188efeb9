//! What is durable, read directly: past every host and every fault.

use std::sync::Arc;

use baton_model::{Event, Record, RunId};
use baton_store::reads::*;
use baton_store::{
    Change, InterruptFilter, InterruptRow, MemoryStore, RunFilter, RunRow, StoredRecord, VersionedStoreId,
};
use futures_util::FutureExt as _;

/// Sees the disk as it is.
#[derive(Clone, Debug)]
pub(crate) struct Observer(Arc<MemoryStore>);

/// Reads of a store in memory do not wait.
pub(crate) fn at_once<T>(read: impl Future<Output = Result<T, baton_store::Error>>) -> T {
    read.now_or_never().expect("the disk answers at once").expect("the disk answers")
}

impl Observer {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self(Arc::new(store))
    }

    pub(crate) fn store(&self) -> &MemoryStore {
        &self.0
    }

    pub(crate) fn run(&self, run: &RunId) -> Option<RunRow> {
        at_once(self.0.run(run))
    }

    /// Every run, oldest first.
    pub(crate) fn runs(&self) -> Vec<RunRow> {
        let mut rows = at_once(self.0.runs(&RunFilter { limit: usize::MAX, ..RunFilter::default() })).items;
        rows.reverse();
        rows
    }

    pub(crate) fn records(&self, run: &RunId) -> Vec<StoredRecord> {
        at_once(self.0.records(run, 0, usize::MAX))
    }

    pub(crate) fn decoded(&self, run: &RunId) -> Vec<Record> {
        self.records(run).iter().map(|stored| stored.decode(run).expect("a record reads back")).collect()
    }

    /// What a run has behind it: a fork begins with a part of its source's log.
    pub(crate) fn history(&self, run: &RunId) -> Vec<Event> {
        let origin = self.run(run).and_then(|row| row.origin);
        let inherited = origin.map(|origin| {
            let mut events = self.history(&origin.source);
            events.truncate(usize::try_from(origin.seq).unwrap_or(usize::MAX));
            events
        });
        inherited.into_iter().flatten().chain(self.events(run)).collect()
    }

    pub(crate) fn events(&self, run: &RunId) -> Vec<Event> {
        self.decoded(run).into_iter().map(|record| record.event).collect()
    }

    pub(crate) fn questions(&self) -> Vec<InterruptRow> {
        at_once(self.0.interrupts(&InterruptFilter { limit: 10_000, ..InterruptFilter::default() }))
    }

    /// What was written to a memory scope or a workspace, newest first.
    pub(crate) fn changes(&self, store: &VersionedStoreId) -> Vec<Change> {
        at_once(self.0.versioned_changes(store, None, None, usize::MAX))
    }

    /// Everything that hosts wrote down, in an order that only depends on what they did.
    pub(crate) fn journal(&self) -> String {
        let mut text = String::new();
        for row in self.runs() {
            text.push_str(&format!("{row:?}\n"));
            for record in self.records(&row.id) {
                text.push_str(&format!("{record:?}\n"));
            }
        }
        text
    }
}
