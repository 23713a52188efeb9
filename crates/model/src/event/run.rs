use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Digest, Fault, NodeId, Owner, RunId, TenantId, WorkflowId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    pub workflow_id: WorkflowId,
    pub inputs: Map<String, Value>,
    pub transport: String,
    pub owner: Owner,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(skip)]
    pub private: StartFacts,
}

/// What a run is pinned to for its whole life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartFacts {
    /// The registered version of the workflow; later registrations never reach this run.
    pub workflow: Option<Digest>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    /// How many ancestors this run has.
    #[serde(default)]
    pub depth: u32,
    /// Variables after defaults, inputs and mapping: the run's first state.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// Inputs whose variable is sensitive; the public payload shows them masked.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub hidden_inputs: Map<String, Value>,
    /// Effective bounds: the smaller of what the run asked for and what the host allows.
    pub max_node_executions: u64,
    pub max_duration_ms: u64,
    /// Turns a supervisor may take.
    #[serde(default)]
    pub max_loop_iterations: u64,
    /// Children one fan-out may have running at the same time.
    #[serde(default)]
    pub max_fan_out: u32,
    /// How sure a supervisor must be, and how a human is asked when it is not.
    #[serde(default)]
    pub escalation: Escalation,
    /// Numbered behaviour this log was written under. Readers branch on it, never on the binary's version.
    pub engine_rule: u32,
}

/// The rule for decisions that are not sure enough, pinned when the run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Escalation {
    /// Decisions strictly below this are held.
    pub floor: f64,
    /// Agents strictly below this are held; a separate rule with its own number.
    pub agent_threshold: f64,
    pub interrupt: EscalationInterrupt,
}

impl Default for Escalation {
    fn default() -> Self {
        Self { floor: 0.5, agent_threshold: 0.7, interrupt: EscalationInterrupt::Approval }
    }
}

/// The kind of interrupt a held decision opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EscalationInterrupt {
    #[default]
    #[serde(rename = "approval")]
    Approval,
    #[serde(rename = "clarification")]
    Clarification,
    #[serde(rename = "x-host-baton-low-confidence")]
    Vendor,
}

impl EscalationInterrupt {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Clarification => "clarification",
            Self::Vendor => "x-host-baton-low-confidence",
        }
    }
}

/// The node of another run that started this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentLink {
    pub run: RunId,
    pub node: NodeId,
    pub root: RunId,
    /// The primitive that created the child, e.g. `core.subWorkflow`.
    pub cause: String,
}

impl RunStarted {
    pub fn tenant(&self) -> &TenantId {
        &self.owner.tenant
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCompleted {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Value>,
    /// Why a supervisor ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFailed {
    pub error: Fault,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node_id: Option<NodeId>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCancelled {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// Set only when a parent's cancellation reached this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrainPolicy {
    Immediate,
    #[default]
    DrainCurrentNode,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPaused {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub drain_policy: DrainPolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResumed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The run's end is decided but something must happen first: children must end before their parent's terminal
/// event, or a node must finish before a pause. Recorded so that a crash in between cannot forget it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnding {
    #[serde(flatten)]
    pub ending: Ending,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Ending {
    Failed {
        error: Fault,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_node_id: Option<NodeId>,
    },
    Cancelled(RunCancelled),
    Paused(RunPaused),
    Completed(RunCompleted),
}

impl RunStarted {
    /// Inputs with the sensitive ones unmasked.
    pub fn full_inputs(&self) -> Map<String, Value> {
        let mut inputs = self.inputs.clone();
        inputs.extend(self.private.hidden_inputs.clone());
        inputs
    }
}
