//! Calling an agent, and filling a prompt template.

use baton_model::Trust;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
