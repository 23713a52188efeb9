//! What goes over the wire, as the client sees it. Unknown fields are ignored, so an older client reads a newer host.

use baton_model::{QuarantineView, RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a run is a run of.
#[derive(Clone, Debug, Serialize)]
pub enum RunTarget {
    #[serde(rename = "workflowId")]
    Workflow(String),
    /// One agent and nothing else; the inputs are its task.
    #[serde(rename = "agentId")]
    Agent(String),
}

/// A run to be started.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartRun {
    #[serde(flatten)]
    pub target: RunTarget,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
}

impl StartRun {
    pub fn of(target: RunTarget) -> Self {
        Self {
            target,
            inputs: Map::new(),
            configurable: Map::new(),
            tags: Vec::new(),
            metadata: Map::new(),
            scope_id: None,
        }
    }

    pub fn of_workflow(id: impl Into<String>) -> Self {
        Self::of(RunTarget::Workflow(id.into()))
    }

    pub fn of_agent(id: impl Into<String>) -> Self {
        Self::of(RunTarget::Agent(id.into()))
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedRun {
    pub run_id: String,
    pub status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_url: Option<String>,
}

/// Which runs to list; empty fields do not filter.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub status: Vec<RunStatus>,
    pub workflow: Option<String>,
    pub tag: Option<String>,
    pub id_prefix: Option<String>,
    pub parent: Option<String>,
    /// Every descendant of this top-level run.
    pub root: Option<String>,
    pub created_from: Option<Timestamp>,
    pub created_until: Option<Timestamp>,
    /// Nothing happened since.
    pub updated_until: Option<Timestamp>,
    /// Whether somebody or something outside is waited for.
    pub waiting: Option<bool>,
    pub diverged: Option<bool>,
    pub over_budget: Option<bool>,
    /// The beginning of the run's id, or of its workflow's.
    pub text_prefix: Option<String>,
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

/// One line of a list of runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    pub run_id: String,
    pub workflow_id: String,
    pub status: RunStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SummaryError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_version: Option<u32>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<baton_model::RunSummary>,
    /// Additive fields of newer hosts, kept so that `--json` output loses nothing.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Why a run failed, in a list.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SummaryError {
    pub code: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunList {
    pub runs: Vec<RunSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Trees of runs in quarantine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuarantineList {
    pub trees: Vec<QuarantineView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    pub event_id: String,
    pub run_id: String,
    pub sequence: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    #[serde(default)]
    pub payload: Value,
    /// Additive fields of newer hosts, kept so that `--json` output loses nothing.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl RunEvent {
    /// Whether this is one of the three events that end a log.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind.as_str(), "run.completed" | "run.failed" | "run.cancelled")
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub events: Vec<RunEvent>,
    /// The run has ended and this page reaches its last event.
    pub is_complete: bool,
    pub run_status: RunStatus,
    #[serde(default)]
    pub last_event_seq: Option<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledRun {
    pub run_id: String,
    pub status: RunStatus,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PausedRun {
    pub run_id: String,
    pub status: RunStatus,
    pub paused_at: Timestamp,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumedRun {
    pub run_id: String,
    pub status: RunStatus,
    pub resumed_at: Timestamp,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedInterrupt {
    pub run_id: String,
    pub node_id: String,
    pub status: RunStatus,
}

/// An open question to a human or another system.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    pub run_id: String,
    pub workflow_id: String,
    pub node_id: String,
    /// What an answer names it by; hosts of earlier versions do not look at it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interrupt_id: String,
    pub kind: String,
    #[serde(default)]
    pub key: String,
    #[serde(default)]
    pub data: Value,
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Interrupts {
    pub interrupts: Vec<Interrupt>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSummary {
    pub workflow_id: String,
    pub version: u32,
    #[serde(default)]
    pub name: String,
    pub digest: String,
    /// False when this exact content was already the newest version.
    #[serde(default)]
    pub created: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WorkflowList {
    pub workflows: Vec<WorkflowSummary>,
}

/// Every version of a workflow, newest first.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowVersions {
    pub workflow_id: String,
    pub versions: Vec<WorkflowSummary>,
}

/// One thing wrong with a definition, and where.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Problem {
    #[serde(default)]
    pub pointer: String,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Readiness {
    pub ready: bool,
    /// Why not.
    pub reason: Option<String>,
}
