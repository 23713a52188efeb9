//! Trees of runs in quarantine.

use baton_model::{RunId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuarantineList {
    pub trees: Vec<QuarantinedTree>,
    /// Give it back as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A top-level run and everything below it, which nobody steps for now.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuarantinedTree {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub root_run_id: RunId,
    /// The run that failed, which may be any of the tree.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// The sequence that its next event would have had.
    pub seq: u64,
    /// `process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`.
    pub cause: String,
    pub detail: String,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
}
