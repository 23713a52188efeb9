//! Agents, calling one, and filling a prompt template.

use baton_model::{MemoryShape, Trust};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Agents))]
pub struct AgentList {
    /// By agent id.
    pub agents: Vec<Agent>,
    pub total: usize,
}

/// An agent that may be called: who it is and what it may do, never what it is told.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AgentInventoryEntry))]
pub struct Agent {
    pub agent_id: String,
    pub persona: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub description: Option<String>,
    pub model_class: String,
    pub pack_name: String,
    pub pack_version: String,
    pub tool_allowlist: Vec<String>,
    pub has_handoff_schemas: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub memory_shape: Option<MemoryShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false, minimum = 0, maximum = 1))]
    pub confidence_threshold: Option<f64>,
    /// Capabilities it wants and does not have there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_degraded: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded_memory_dimensions: Vec<String>,
}

/// A message. Unknown members are refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChatMessage {
    /// Says whom it is for with `@`: an agent's id, its label, or the last part of its id.
    pub text: String,
    /// Messages of one conversation follow each other: an agent is told what was said before. The next one is refused
    /// with 409 while the last one has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
}

/// A template to be filled. Unknown members are refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RenderPrompt {
    /// `prompt:<id>[@<version>]`, or `{templateId, libraryId?, version?, variableOverrides?}`.
    #[serde(rename = "ref")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub reference: Value,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// How far the values are to be trusted: `untrusted` ones are put between marks.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub content_trust: Trust,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
}
