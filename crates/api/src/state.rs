//! A run as of one of its records, with the memory and the files it had then.

use std::collections::BTreeMap;

use baton_model::{ChildRun, FileMeta, InterruptView, MemoryEntry, NodeId, NodeStateView, RunId, RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RunState))]
pub struct StateAt {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub seq: u64,
    /// When that record was written.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    pub status: RunStatus,
    pub variables: Map<String, Value>,
    pub channels: Map<String, Value>,
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, NodeStateView>))]
    pub node_states: BTreeMap<NodeId, NodeStateView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub interrupt: Option<InterruptView>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub child_runs: Vec<ChildRun>,
    #[serde(flatten)]
    pub around: Surroundings,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunSurroundings {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub seq: u64,
    #[serde(flatten)]
    pub around: Surroundings,
}

/// What was around a run: memory and files.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Around))]
pub struct Surroundings {
    pub memory_scope: String,
    pub memory_version: u64,
    pub workspace_version: u64,
    /// Newest first; only with `memory:read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub memory: Option<Vec<MemoryEntry>>,
    /// By path, without the contents; only with `workspace:read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub workspace: Option<Vec<FileMeta>>,
    /// What was left out because the key lacks its scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}
