//! Workflow definitions as the wire spells them. Shape only: whether a definition can *run* is the engine's judgement
//! when it compiles one into a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{NodeId, WorkflowId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = WorkflowDefinition))]
pub struct Definition {
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[a-z][a-z0-9_-]*$", max_length = 128))]
    pub id: WorkflowId,
    pub name: String,
    pub version: String,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>, min_items = 1))]
    pub nodes: Vec<Node>,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub edges: Vec<Edge>,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub triggers: Vec<Trigger>,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub variables: Vec<Variable>,
    pub metadata: Map<String, Value>,
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub settings: Settings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub description: Option<String>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub is_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub scope_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub slug: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub channels: BTreeMap<String, Channel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurable_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts_inherited_artifacts: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Value>,
}

impl Definition {
    /// The prompts that nodes without one of their own use, by kind.
    pub fn prompt_defaults(&self) -> Option<Value> {
        self.defaults.as_ref()?.get("promptRefs").cloned()
    }

    /// What its runs may spend, as its author wrote it.
    pub fn budget(&self) -> Option<&Value> {
        self.settings.other.get("budget")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    pub id: NodeId,
    pub type_id: String,
    pub name: String,
    pub position: Position,
    pub config: Map<String, Value>,
    pub inputs: BTreeMap<String, PortValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<NodeSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_role: Option<OutputRole>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope_contract: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_type: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_sensitivity: Option<BTreeMap<String, bool>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputRole {
    Primary,
    Secondary,
}

/// Per-node overrides. `timeout` and `maxRetries` here win over the workflow's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSettings {
    /// Milliseconds one attempt may take; 0 or absent = no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// First back-off in milliseconds; it doubles with every attempt, up to one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Where a node's input port takes its value from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum PortValue {
    Static {
        value: Value,
    },
    Expression {
        expression: String,
    },
    Connection {
        node_id: NodeId,
        output_key: String,
        #[serde(default)]
        optional: bool,
    },
    Variable {
        variable_name: String,
        #[serde(default)]
        optional: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edge {
    pub id: String,
    pub source_node_id: NodeId,
    pub target_node_id: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<EdgeCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default)]
    pub trigger_rule: TriggerRule,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    #[default]
    AllSuccess,
    AnySuccess,
    AllComplete,
    NoneFailed,
    AnyFailed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeCondition {
    #[serde(rename = "type")]
    pub kind: ConditionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConditionKind {
    Expression,
    Equals,
    NotEquals,
    Contains,
    Regex,
    Truthy,
    Falsy,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: VariableKind,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableKind {
    String,
    Number,
    Boolean,
    Object,
    Array,
}

/// Workflow-wide settings. `timeout` 0 means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_loopback_iterations: Option<u32>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    #[serde(default)]
    pub reducer: Reducer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatible_with: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reducer {
    #[default]
    Replace,
    Append,
    Merge,
    Counter,
    Votes,
    Feedback,
    Message,
}

/// Who may touch a channel: everybody, only the run itself, or the nodes and types listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Access {
    Named(AccessName),
    Listed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        readers: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writers: Option<Vec<String>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessName {
    Public,
    Private,
}
