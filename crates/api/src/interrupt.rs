//! Questions that runs wait on, and their answers.

use baton_model::{NodeId, RunId, RunStatus, Timestamp, WorkflowId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Answer {
    #[serde(deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub resume_value: Value,
    /// Which question is meant. Without it the answer counts for a node's first question only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<String>,
}

/// Null is an answer; absence is not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Answered))]
pub struct ResolvedInterrupt {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub node_id: NodeId,
    pub status: RunStatus,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = InterruptList))]
pub struct Interrupts {
    pub interrupts: Vec<Interrupt>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = InterruptItem))]
pub struct Interrupt {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub workflow_id: WorkflowId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub node_id: NodeId,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub interrupt_id: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub key: String,
    pub kind: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required, value_type = Object))]
    pub data: Value,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
}
