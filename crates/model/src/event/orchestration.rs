//! The supervisor loop on the log: decisions, the handoff of each worker, fan-out and join, escalation.

use serde::{Deserialize, Serialize};

use super::ChildPlan;
use crate::{Decision, Fault, NodeId, RunId, WorkflowId};

/// One turn's decision. `iteration` counts turns from 1 without a gap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrchestratorDecided {
    pub agent_id: String,
    pub decision: Decision,
    pub iteration: u64,
    #[serde(skip)]
    pub private: NodePlace,
}

/// The node an event belongs to, where its public payload has no room for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePlace {
    pub node_id: NodeId,
    /// The event says what a model or a tool said, for which nobody vouches. Older logs do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl NodePlace {
    pub const fn at(node_id: NodeId) -> Self {
        Self { node_id, untrusted: false }
    }
}

impl Default for NodePlace {
    fn default() -> Self {
        Self::at(NodeId::new(""))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChainPhase {
    #[serde(rename = "dispatch.began")]
    DispatchBegan,
    #[serde(rename = "dispatch.succeeded")]
    DispatchSucceeded,
    #[serde(rename = "dispatch.failed")]
    DispatchFailed,
    #[serde(rename = "child.completed")]
    ChildCompleted,
    #[serde(rename = "child.failed")]
    ChildFailed,
    #[serde(rename = "child.cancelled")]
    ChildCancelled,
    #[serde(rename = "output.harvested")]
    OutputHarvested,
}

/// One step of one worker's handoff. Each is caused by the step before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainEvent {
    pub phase: ChainPhase,
    pub worker_id: WorkflowId,
    pub parent_run_id: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harvested_keys: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Attestation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    #[serde(skip)]
    pub private: ChainFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainFacts {
    pub node_id: NodeId,
    /// Position of the worker in the decision.
    pub ordinal: u32,
    /// With `dispatch.began`: the child to be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildPlan>,
    /// With `child.completed`: what the child produced, kept until it may be harvested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<serde_json::Map<String, serde_json::Value>>,
    /// With `child.completed`: the attestation of everything the child produced, before any mapping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Attestation>,
}

impl Default for ChainFacts {
    fn default() -> Self {
        Self { node_id: NodeId::new(""), ordinal: 0, child: None, outputs: None, attestation: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attestation {
    pub checksum: String,
    pub algorithm: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EscalationKind {
    Clarify,
    Escalate,
}

/// A decision the supervisor was not sure enough about; it is held until a human ratifies it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidenceEscalated {
    pub confidence: f64,
    pub floor: f64,
    pub escalation_kind: EscalationKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkflowId>,
    pub parent_run_id: RunId,
    pub original_decision: Decision,
    #[serde(skip)]
    pub private: NodePlace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinMode {
    #[default]
    WaitAll,
    Quorum,
    First,
    Race,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FanOut {
    pub fan_out_policy: String,
    pub child_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_mode: Option<JoinMode>,
    #[serde(skip)]
    pub private: NodePlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinOutcome {
    Satisfied,
    Partial,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Join {
    pub join_outcome: JoinOutcome,
    pub completed_count: u32,
    pub failed_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_count: Option<u32>,
    /// Child runs in the order their ends were observed; outputs are merged in this order.
    pub merge_order: Vec<RunId>,
    #[serde(skip)]
    pub private: NodePlace,
}
