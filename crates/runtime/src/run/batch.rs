//! Records of one step on their way to the outbox.

use std::collections::BTreeSet;

use baton_model::Record;
use baton_store::StoredRecord;

/// Records of one step that are not queued yet.
pub(crate) struct Batch {
    /// The sequence of the first of them.
    pub(crate) expected: u64,
    pub(crate) records: Vec<Record>,
    /// The same as they will lie on disk.
    pub(crate) stored: Vec<StoredRecord>,
    /// How many the step has made in all, and how many bytes they have.
    pub(super) made: usize,
    pub(super) bytes: usize,
    /// Tool calls that the step has announced, by their ids.
    pub(super) intents: BTreeSet<String>,
    /// A caller asked for the step, and is told what comes of it.
    pub(super) asked: bool,
}

impl Batch {
    pub(super) fn new(expected: u64) -> Self {
        Self {
            expected,
            records: Vec::new(),
            stored: Vec::new(),
            made: 0,
            bytes: 0,
            intents: BTreeSet::new(),
            asked: false,
        }
    }

    /// What is to be queued now, and where it begins.
    pub(crate) fn take(&mut self) -> (u64, Vec<Record>, Vec<StoredRecord>) {
        let (expected, records) = (self.expected, std::mem::take(&mut self.records));
        self.expected += records.len() as u64;
        (expected, records, std::mem::take(&mut self.stored))
    }
}
