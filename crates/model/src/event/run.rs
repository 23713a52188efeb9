use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::TraceContext;
use crate::agent::{AgentPin, ConversationTurn, InvocationSource};
use crate::{
    Budget, ContextBounds, Digest, EventId, Fault, ForeignCause, ModelPins, NodeId, Owner, RunId, TenantId,
    ValueBounds, Versions, WorkerVersions, WorkflowId,
};

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
    /// The host the run was asked for from, where its cause is an event over there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_host_id: Option<Box<str>>,
    #[serde(skip)]
    pub private: RunSettings,
}

/// What a run is pinned to for its whole life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSettings {
    /// The registered version of the workflow; later registrations never reach this run.
    pub workflow: Option<Digest>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    /// The memory scope, where it is neither `scope_id` nor the tree's own: below an isolated child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_scope: Option<String>,
    /// What the run sees of memory and workspace from its first record on.
    #[serde(default, skip_serializing_if = "Versions::is_zero")]
    pub versions: Versions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    /// The event on another host that asked for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<ForeignCause>>,
    /// The trace of whoever started the tree, handed on to whoever is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceContext>>,
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
    pub escalation: Box<Escalation>,
    /// Which version of each agent the run works with, and with which model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentPin>,
    /// What stands for a class of models, and what models can do, where a node asks for either.
    #[serde(default, skip_serializing_if = "ModelPins::is_empty")]
    pub models: Box<ModelPins>,
    /// Through which door the agent was called, where the run is nothing but that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<InvocationSource>,
    /// The conversation it is a turn of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Box<ConversationTurn>>,
    /// The tools that agents of this run and of the runs below it may have at most; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_grant: Option<Vec<String>>,
    /// The scopes of whoever started the tree, for tools that ask for one; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_scopes: Option<Vec<String>>,
    /// A branch that only simulates calls is among its ancestors, so it does too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// What the tree may spend. Every run of it knows, so that a branch of any of them is bound by it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    /// Bounds on values. Older logs do not say: the usual ones apply to what such a run still does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<ValueBounds>>,
    /// Which versions of other workflows its children are, below a branch; the newest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Box<WorkerVersions>>,
    /// How much of what happened before is told to a supervisor. Older logs do not say, and tell nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextBounds>,
    /// Numbered behaviour this log was written under. Readers branch on it, never on the binary's version.
    pub engine_rule: u32,
}

impl RunSettings {
    /// What a run hands down to those below it. The rest each of them has of its own.
    #[must_use]
    pub fn handed_down(&self) -> Self {
        Self {
            scope_id: self.scope_id.clone(),
            memory_scope: self.memory_scope.clone(),
            trace: self.trace.clone(),
            tool_grant: self.tool_grant.clone(),
            tool_scopes: self.tool_scopes.clone(),
            simulated: self.simulated,
            budget: self.budget.clone(),
            workers: self.workers.clone(),
            ..Self::default()
        }
    }

    /// The bounds on its values: the usual ones where an older log does not say.
    pub fn value_bounds(&self) -> ValueBounds {
        self.values.as_deref().copied().unwrap_or_default()
    }
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
    /// The parent's workflow. Older logs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Box<WorkflowId>>,
    /// The parent's event that asked for the child. Runs before engine rule 4 do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Box<EventId>>,
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
