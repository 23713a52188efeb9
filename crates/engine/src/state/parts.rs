//! What a run's state is made of: its phase, its open questions, its children.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::event::{ApprovalAction, ChildPlan, Ending, RemoteRun, RunPaused, RunStarted};
use baton_model::{Fault, NodeId, RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) at: Timestamp,
    pub(crate) event: RunStarted,
}

/// The run's own life, apart from what its nodes are doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    New,
    Active,
    Paused {
        at: Timestamp,
        request: RunPaused,
    },
    /// The end (or a pause) is decided; children or a node must finish first.
    Ending(Ending),
    Ended {
        status: RunStatus,
        at: Timestamp,
    },
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    pub node: NodeId,
    pub kind: String,
    pub key: String,
    /// Derived from where it is asked, so a replay gives it the same. No two questions of one run have the same.
    pub interrupt_id: String,
    pub data: Value,
    #[serde(with = "super::maybe")]
    pub resume_schema: Option<Value>,
    pub timeout_ms: Option<u64>,
    pub requested_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub bearer_only: bool,
    /// What it is about, where the question itself may not show it.
    #[serde(with = "super::maybe")]
    pub(crate) hidden: Option<Value>,
    pub(crate) votes: BTreeMap<String, ApprovalAction>,
}

impl Interrupt {
    /// What a run is that waits for this.
    pub(super) fn waiting_status(&self) -> RunStatus {
        let held = self.data.get("contextType").is_some_and(|context| context == "orchestrator-decision");
        match self.kind.as_str() {
            "clarification" if held => RunStatus::WaitingClarification,
            "clarification" => RunStatus::WaitingInput,
            "external-event" => RunStatus::WaitingExternal,
            _ => RunStatus::WaitingApproval,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) plan: ChildPlan,
    pub(crate) node: usize,
    pub(crate) status: RunStatus,
    /// What it failed of, as much as is told of it.
    pub(crate) error: Option<Arc<Fault>>,
    /// The child is known to exist.
    pub(crate) dispatched: bool,
    /// Its node still waits for it.
    pub(crate) live: bool,
    /// The record that asked for it.
    pub(crate) planned: Planned,
    /// Where it is found, if it is on another host and known to exist.
    pub(crate) remote: Option<RemoteRun>,
    /// The turn that asked for it, and its place in that decision; 0 and none outside a supervisor loop.
    pub(crate) iteration: u64,
    pub(crate) worker: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
}

/// Who wrote a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Writer {
    Node(usize),
    /// Whoever answered what a supervisor asked through its dispatch.
    Answer(usize),
    /// Somebody, in a branch.
    Hand,
}
