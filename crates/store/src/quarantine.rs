//! Trees of runs that nobody may step for now.

use baton_model::{RunId, TenantId, Timestamp};

/// A tree of runs that nobody may step until somebody releases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// The top of the tree; there is one row for each tree.
    pub root: RunId,
    pub tenant: TenantId,
    /// The run that failed, which may be any of the tree.
    pub run: RunId,
    /// The next sequence of that run when it failed.
    pub seq: u64,
    /// A stable word: `process_died`, `step_panicked`, `does_not_fold`, `commit_refused`, `stuck`.
    pub cause: String,
    /// For people. Whoever writes it bounds it.
    pub detail: String,
    pub at: Timestamp,
}
