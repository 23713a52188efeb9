use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Fault, FileMeta, ForkMode, MapProgress, NodeId, NodeStatus, RunId, RunStatus, Timestamp, WorkflowId};
use crate::{Origin, Owner, SideEffects, UsageSummary};

/// An agent, as a definition pins it and a snapshot names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentRef {
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub model_class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub memory_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub channel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub source_manifest_id: Option<String>,
}

impl AgentRef {
    pub fn new(agent_id: impl Into<String>) -> Self {
        Self { agent_id: agent_id.into(), ..Self::default() }
    }

    /// The reference in a node's `agent`, if it names one.
    pub fn read(pin: &Value) -> Option<Self> {
        serde_json::from_value(pin.clone()).ok()
    }
}

/// What a run has used up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RunMetrics))]
pub struct Metrics {
    /// What its own models have used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub openwop_cost: Option<Cost>,
    /// The same, and what the runs below it have used that have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub tree_cost: Option<TreeCost>,
}

impl Metrics {
    /// What was used in all; of a host that does not count what is below its runs, what the run itself used.
    pub fn used(&self) -> Option<UsageSummary> {
        let own = || self.openwop_cost.as_ref().map(|cost| TreeCost { tokens: cost.tokens, usd: cost.usd });
        let TreeCost { tokens, usd } = self.tree_cost.or_else(own)?;
        Some(UsageSummary { input_tokens: tokens.input, output_tokens: tokens.output, cost_usd: usd })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeCost {
    pub tokens: Tokens,
    /// Where there was a price for a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub usd: Option<f64>,
}

impl From<UsageSummary> for TreeCost {
    fn from(usage: UsageSummary) -> Self {
        Self { tokens: Tokens { input: usage.input_tokens, output: usage.output_tokens }, usd: usage.cost_usd }
    }
}

/// All calls of models together; the model and its provider are those of the latest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ModelCost))]
pub struct Cost {
    pub tokens: Tokens,
    pub model: String,
    pub provider: String,
    /// Where there was a price for a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub usd: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

/// Why a tree of runs is in quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Quarantine))]
pub struct QuarantineView {
    /// The top of the tree.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub root_run_id: RunId,
    /// The run that failed.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// The sequence that its next event would have had.
    pub seq: u64,
    /// `process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`.
    pub cause: String,
    pub detail: String,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
}

/// The public view of a run: its log up to `atSeq`, folded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunSnapshot {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub workflow_id: WorkflowId,
    pub status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub current_node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub completed_at: Option<Timestamp>,
    pub at_seq: u64,
    pub inputs: Map<String, Value>,
    pub variables: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub channels: Map<String, Value>,
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, NodeStateView>))]
    pub node_states: BTreeMap<NodeId, NodeStateView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub outputs: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub error: Option<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub interrupt: Option<InterruptView>,
    /// Set while the run's tree is in quarantine (host extension): nobody steps it until it is released or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub quarantine: Option<QuarantineView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_runs: Vec<ChildRun>,
    /// Who works, or worked last: the agent of a node, not the one that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub agent: Option<AgentRef>,
    /// Who decides in this run, once somebody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub run_orchestrator: Option<AgentRef>,
    /// Set once a model has been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub metrics: Option<Metrics>,
    /// The files the run sees, as they were when it started or, in a loop, when its latest turn did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<FileMeta>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub parent_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub parent_node_id: Option<NodeId>,
    pub owner: Owner,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    /// The registered version of the workflow this run is pinned to.
    pub workflow_digest: String,
    pub event_log_schema_version: u32,
    /// Set once retention has taken what the run's memory and workspace looked like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub retention: Option<Retention>,
    /// Set on a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub forked_from: Option<ForkedFrom>,
}

/// Where a fork comes from, and what it has otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ForkedFrom {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub from_seq: u64,
    /// The point that was asked for, where a branch begins before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub requested_from_seq: Option<u64>,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mode: ForkMode,
    /// What a branch does about calls that would change the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub side_effects: Option<SideEffects>,
    /// Names of the inputs, variables and settings that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaid: Vec<String>,
}

impl From<&Origin> for ForkedFrom {
    fn from(origin: &Origin) -> Self {
        let branch = origin.mode == ForkMode::Branch;
        let named = |kind: &'static str, map: &Map<String, Value>| -> Vec<String> {
            map.keys().map(|name| format!("{kind}.{name}")).collect()
        };
        let overlay = &origin.overlay;
        let mut overlaid = named("inputs", &overlay.inputs);
        overlaid.extend(named("variables", &overlay.variables));
        overlaid.extend(named("configurable", &overlay.configurable));
        Self {
            run_id: origin.source.clone(),
            from_seq: origin.seq,
            requested_from_seq: origin.requested,
            mode: origin.mode,
            side_effects: branch.then_some(origin.side_effects),
            overlaid,
        }
    }
}

/// What is no longer kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Retention {
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub pruned_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = NodeState))]
pub struct NodeStateView {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub status: NodeStatus,
    /// 1 on the first visit; loops visit a node again.
    pub visit: u32,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub error: Option<Fault>,
    /// How far a map has come, while it is under way (host extension).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub progress: Option<MapProgress>,
}

/// The interrupt a suspended run waits on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RunInterrupt))]
pub struct InterruptView {
    pub kind: String,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub node_id: NodeId,
    pub interrupt_id: String,
    pub key: String,
    pub data: Value,
    /// Same as `data`; older clients read this name.
    pub payload: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub resume_schema: Option<Value>,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub interrupt_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub callback_url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChildRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub workflow_id: WorkflowId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub node_id: NodeId,
    pub status: RunStatus,
    /// Set when the child is on another host: its name, if it gave one, and where the run is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub host_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub url: Option<String>,
}
