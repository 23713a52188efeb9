//! Registered workflows and what is wrong with one that is not.

use baton_model::{Digest, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowVersion {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub workflow_id: WorkflowId,
    /// 1, 2, 3, …: grows whenever the content changes.
    pub version: u32,
    /// SHA-256 of the canonical definition.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub digest: Digest,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub name: String,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub registered_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowList {
    pub workflows: Vec<WorkflowVersion>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowVersions {
    pub workflow_id: String,
    /// Newest first.
    pub versions: Vec<WorkflowVersion>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// JSON pointer into the definition; empty for the whole.
    pub pointer: String,
    pub message: String,
    pub code: String,
    /// Where in the text that was sent, both counted from 1.
    pub line: usize,
    pub column: usize,
}
