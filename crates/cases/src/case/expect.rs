//! What must come of a run.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::bound::Bound;

/// Values are held against what is there by [`crate::compare`]: of an object, the names that are given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Expect {
    /// `completed` unless said otherwise.
    pub status: Option<String>,
    pub outputs: Option<Value>,
    pub variables: Option<Value>,
    pub error: Option<Value>,
    /// By node id.
    pub nodes: Option<Value>,
    /// In this order; others may be between them.
    pub events: Vec<EventDef>,
    /// None of these.
    pub no_events: Vec<EventDef>,
    /// Calls of stubbed tools, all of them, in their order.
    pub tools: Option<Vec<ToolCallDef>>,
    /// Runs that the run started, directly or not.
    pub children: Vec<ChildDef>,
    pub usage: Option<UsageDef>,
    /// Seconds of simulated time.
    pub seconds: Option<Bound>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct EventDef {
    #[serde(rename = "type")]
    pub kind: String,
    pub node: Option<String>,
    pub payload: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ToolCallDef {
    pub tool: String,
    pub arguments: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ChildDef {
    pub workflow: String,
    pub status: Option<String>,
    pub outputs: Option<Value>,
    pub variables: Option<Value>,
}

/// Of the whole tree of runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct UsageDef {
    pub input_tokens: Option<Bound>,
    pub output_tokens: Option<Bound>,
    pub cost_usd: Option<Bound>,
    pub model_calls: Option<Bound>,
    pub tool_calls: Option<Bound>,
}

/// By name, for messages.
pub(crate) fn named(usage: &UsageDef) -> BTreeMap<&'static str, Bound> {
    let all = [
        ("inputTokens", usage.input_tokens),
        ("outputTokens", usage.output_tokens),
        ("costUsd", usage.cost_usd),
        ("modelCalls", usage.model_calls),
        ("toolCalls", usage.tool_calls),
    ];
    all.into_iter().filter_map(|(name, bound)| Some((name, bound?))).collect()
}
