//! What people and programs say about a run, beside its log.

use baton_model::{RunId, Timestamp};

/// One remark. It is kept beside the log and never part of it: no replay sees it and no fork has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationRow {
    pub run: RunId,
    /// Later ones have greater ids.
    pub id: String,
    pub at: Timestamp,
    /// The whole of it as JSON, as callers see it.
    pub body: String,
}
