//! What was read for a node that asks, before it is answered.

use baton_engine::{Answer, Found, ReadVersion, Written};
use baton_model::{Fault, RunId, Timestamp, memory_ref};
use baton_store::{Change, ReadView};

use crate::services::versioned::store::VersionedStore;

/// What had to be read before a node could be answered.
pub(crate) enum Prepared {
    Found(Found),
    /// There is nothing to be found, and this is why.
    Failed(Fault),
    /// Whether the item was there at this version.
    Exists {
        there: bool,
        version: u64,
    },
    /// A write can see what it has to know.
    Indexed,
    /// What a probe of a foreign handle gave.
    Foreign(Vec<Change>),
}

/// Whether a node that asks was answered.
pub(crate) enum Ready {
    /// Nobody asks anything.
    Quiet,
    Answered,
    /// Something has to be read first.
    NotYet,
}

/// How many entries a list gives when nobody says.
pub(crate) const LIST_LIMIT: usize = 100;

pub(crate) fn entry_written(memory: &VersionedStore, change: &Change) -> Written {
    Written::Entry {
        memory_ref: memory_ref(&memory.id.scope),
        id: change.key.clone(),
        tags: change.item.as_ref().map(|item| item.meta.tags.clone()).unwrap_or_default(),
        version: change.version,
    }
}

pub(crate) fn entries(changes: &[Change]) -> Vec<baton_model::MemoryEntry> {
    changes.iter().filter_map(Change::entry).collect()
}

pub(crate) fn read_view_of(
    run: &RunId,
    read_version: ReadVersion,
    tag: Option<String>,
    limit: Option<usize>,
    at: Timestamp,
) -> ReadView {
    ReadView {
        own: Some((run.clone(), read_version.own)),
        tag,
        limit: Some(limit.unwrap_or(LIST_LIMIT)),
        ..ReadView::at(read_version.version, at)
    }
}

/// For answers that can only be failures.
pub(crate) fn failed(message: &str) -> Answer {
    Answer::failed(Fault::new(baton_model::code::VALIDATION_ERROR, message))
}
