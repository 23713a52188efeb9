//! What is being read of a file and is not whole yet.

use baton_store::{Checksum, RunRow, StoredRecord, VersionedStoreId};

/// The versioned store whose changes are coming.
pub(crate) struct OpenStore {
    pub(crate) ledger: StagedStore,
    /// The version of the last change.
    pub(crate) reached: u64,
    /// The last version that was missing.
    pub(crate) gap: Option<u64>,
}

/// The run whose records are coming.
pub(crate) struct OpenRun {
    pub(crate) row: RunRow,
    /// The sequence of the next record.
    pub(crate) next: u64,
    /// Read, and not put away yet.
    pub(crate) records: Vec<StoredRecord>,
    /// The checksum of the record before, as the file has it. None where that is not known.
    pub(crate) before: Option<Option<Checksum>>,
}

#[derive(Clone)]
pub(crate) struct StagedStore {
    pub(super) id: VersionedStoreId,
    pub(super) version: u64,
    pub(super) base: Option<(VersionedStoreId, u64)>,
}
