//! Pruning many runs, and what the operator's rules would prune.

use baton_model::{RunId, RunStatus, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

/// Ended top-level runs to prune, each with everything below it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkPrune {
    /// 1 to 200 run ids.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub run_ids: Vec<RunId>,
    /// Take the events as well.
    #[serde(default)]
    pub log: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkPruned {
    /// One for each run.
    pub results: Vec<BulkPrunedRun>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkPrunedRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub ok: bool,
    /// Runs of the tree that lost something they had.
    #[serde(default)]
    pub pruned_runs: usize,
    /// Why it was not pruned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<BulkPruneError>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkPruneError {
    pub code: String,
    pub message: String,
}

/// What the host's rules would prune now.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetentionDue {
    /// Whether there are any rules. Without them nothing is pruned unless somebody asks.
    pub enabled: bool,
    /// How long a run is kept after its end, whatever the rules say.
    pub window_seconds: u64,
    /// Newest first.
    pub runs: Vec<RetentionDueRun>,
    /// There are more than these.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetentionDueRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub workflow_id: WorkflowId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub status: RunStatus,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub ended_at: Timestamp,
    /// Runs of the tree, with the top.
    pub runs: u64,
    /// Their records.
    pub records: u64,
    /// `age`, `count` or `size`.
    pub reason: String,
}
