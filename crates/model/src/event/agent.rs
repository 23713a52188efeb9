//! An agent at work: what it was asked with, what it thought, called and decided. The bracket around it says who and
//! how, never what; prompts and full replies stay private.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::NodePlace;
use crate::agent::{InvocationContext, InvocationSource, ModelClass, PromptLayer};
use crate::tool::{FoundTool, OutcomePolicy, ToolFault, ToolOutcome, ToolStatus, ToolUse, Transport};
use crate::{Digest, NodeId};

/// An agent begins. The first of its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInvocationStarted {
    pub invocation_id: String,
    pub agent_id: String,
    pub source: InvocationSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_class: Option<ModelClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_agent_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_surface_count: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bound: Option<bool>,
    #[serde(skip)]
    pub private: InvocationFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvocationFacts {
    pub place: NodePlace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Box<InvocationContext>>,
}

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvocationOutcome {
    Completed,
    HandedOff,
    Escalated,
    Refused,
    Failed,
}

/// The agent is done. The last of its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInvocationCompleted {
    pub invocation_id: String,
    pub agent_id: String,
    pub outcome: InvocationOutcome,
    /// True only if the answer was held against a return schema and fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_validated: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip)]
    pub private: NodePlace,
}

/// Where a prompt came from: every layer that was tried, and the one that had it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPromptResolved {
    pub node_id: NodeId,
    pub kind: String,
    pub chain: Vec<PromptLayer>,
    /// Null where no layer had one.
    pub resolved: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// A prompt was put together. Its hash stands for the text with secrets as markers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptComposed {
    pub node_id: NodeId,
    pub refs: Vec<String>,
    pub kind: String,
    pub hash: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variable_hashes: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_trust: Option<String>,
    /// Only where the operator wants prompts on the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable_bindings: Option<Value>,
}

/// How much of a model's thinking goes on the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verbosity {
    #[default]
    Summary,
    Full,
    Off,
}

/// A piece of thinking, as it comes. What counts is the [`AgentReasoned`] that closes the block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReasoningDelta {
    pub agent_id: String,
    pub delta: String,
    /// From 0 within a block.
    pub sequence: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    #[serde(skip)]
    pub private: NodePlace,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReasoned {
    pub agent_id: String,
    pub reasoning: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    #[serde(skip)]
    pub private: NodePlace,
}

/// A tool is about to be called: the intent, recorded before anything leaves the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentToolCalled {
    pub agent_id: String,
    pub tool_name: String,
    pub call_id: String,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_hash: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    #[serde(skip)]
    pub private: ToolFacts,
}

/// What came of it. Caused by the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentToolReturned {
    pub agent_id: String,
    pub tool_name: String,
    pub call_id: String,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// As it was measured; a replay does not measure again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip)]
    pub private: ToolFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFacts {
    pub place: NodePlace,
    /// What was asked for, in full: on the call, and on the return of one that was never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<ToolUse>>,
    /// What really came back, where the public face hides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Box<ToolOutcome>>,
    /// The tool, where a node looked it up to call it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<FoundTool>>,
    /// Which item of a map the call is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentHandoff {
    pub from_agent_id: String,
    pub to_agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    #[serde(skip)]
    pub private: NodePlace,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDecided {
    pub agent_id: String,
    pub decision: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip)]
    pub private: NodePlace,
}

/// An agent goes to work without tools that its manifest names: nothing on this host answers to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsMissing {
    pub node_id: NodeId,
    pub agent_id: String,
    pub invocation_id: String,
    /// As the manifest names them.
    pub tools: Vec<String>,
}

/// A call was begun, and nobody knows whether it took place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectUnknown {
    pub node_id: NodeId,
    pub call_id: String,
    pub tool_name: String,
    /// What is done about it.
    pub policy: OutcomePolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A call of unknown outcome is made once more, under the same key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectRetried {
    pub node_id: NodeId,
    pub call_id: String,
    pub tool_name: String,
    /// Whether it is only looked up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
}

/// No runner has taken a call yet. Said once for a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerWaiting {
    pub node_id: NodeId,
    pub call_id: String,
    pub tool_name: String,
    /// How long it waits before it counts as failed.
    pub wait_for_runner_ms: u64,
}

/// How far a call is that has not returned, as its tool says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    pub node_id: NodeId,
    pub call_id: String,
    pub tool_name: String,
    pub progress: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
