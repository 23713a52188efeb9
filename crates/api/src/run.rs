//! Starting, stopping and pruning one run.

use baton_model::event::DrainPolicy;
use baton_model::{RunId, RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A run to start: of a workflow, or of one agent. Unknown members are refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = CreateRun))]
pub struct StartRun {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// In the place of `workflowId`: the run is this agent, and `inputs` are its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The conversation that the run is the next turn of; it is the memory scope, too, so not together with `scopeId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub residency: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub eval_suite_ref: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = CreatedRun))]
pub struct StartedRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// Never a terminal status, even if the run has already ended.
    pub status: RunStatus,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub events_url: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub status_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reason {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CancelledRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub status: RunStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Pause))]
pub struct PauseRun {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `immediate` or `drain-current-node` (the default).
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub drain_policy: DrainPolicy,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Paused))]
pub struct PausedRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub status: RunStatus,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub paused_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Resumed))]
pub struct ResumedRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub status: RunStatus,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub resumed_at: Timestamp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Prune))]
pub struct PruneRun {
    /// Take the events as well.
    #[serde(default)]
    pub log: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Pruned))]
pub struct PrunedRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// Runs of the tree that lost something they had.
    pub pruned_runs: usize,
    pub log: bool,
}
