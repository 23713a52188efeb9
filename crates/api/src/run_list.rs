//! Runs in a list: what there is to say about each without opening it.

use baton_model::{Digest, ForkedFrom, NodeId, RunId, RunStatus, RunSummary, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::NewerFields;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunList {
    pub runs: Vec<RunListItem>,
    /// Give it back as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RunItem))]
pub struct RunListItem {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub workflow_id: WorkflowId,
    /// Which version of the workflow the run is pinned to; absent where that version is not registered here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(required, value_type = String))]
    pub workflow_digest: Option<Digest>,
    pub status: RunStatus,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub current_node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub parent_run_id: Option<RunId>,
    /// The top of the tree this run descends from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub root_run_id: Option<RunId>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunListError>,
    /// How many events the log has; the newest has the sequence before this.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub events: u64,
    /// Set on a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub forked_from: Option<ForkedFrom>,
    /// What else there is to say; absent where there is nothing.
    // As text: a host keeps it as JSON and sends it without reading it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = RunSummary))]
    pub summary: Option<Box<RawValue>>,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(ignore))]
    pub rest: NewerFields,
}

impl RunListItem {
    /// The summary, as far as this build can read it.
    pub fn summary(&self) -> Option<RunSummary> {
        self.summary.as_ref().and_then(|text| serde_json::from_str(text.get()).ok())
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RunItemError))]
pub struct RunListError {
    pub code: String,
}
