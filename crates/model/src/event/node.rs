use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cache_key::SemanticRequest;
use crate::{Fault, NodeId, RunId, RunStatus, Timestamp, TurnSnapshot, WorkflowId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStarted {
    pub node_id: NodeId,
    pub type_id: String,
    /// 0 on the first attempt of a visit.
    pub attempt: u32,
    #[serde(skip)]
    pub private: NodeStartedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStartedFacts {
    pub visit: u32,
    /// When a waiting node (a delay, a paced stream) is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
    /// When the attempt is out of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The child this visit starts, with what it will be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildPlan>,
    /// Resolved inputs, kept only for nodes that finish later than they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Map<String, Value>>,
    /// What a supervisor's turn sees of memory and workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<TurnSnapshot>,
    /// What a supervisor's turn adds to what is told of the turns before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Box<TurnTranscript>>,
    /// What a model is asked in this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<SemanticRequest>>,
}

/// How a turn changes the transcript. Each turn records what is new only: what it sees is what this and earlier turns
/// added, from `first` on. So what a turn saw is read off the log and never told a second time in other words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnTranscript {
    /// The turn that sees it.
    pub iteration: u64,
    /// The oldest turn that is still told.
    pub first: u64,
    /// What happened in the turn before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<TranscriptEntry>,
}

/// One event, as a supervisor is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptEntry {
    /// The event's place on the log.
    pub seq: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub node_id: NodeId,
    /// The turn it belongs to.
    pub iteration: u64,
    pub text: String,
}

/// A child run to be created: everything the shell needs, so that a crash cannot change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildPlan {
    pub run: RunId,
    pub workflow: WorkflowId,
    pub cause: String,
    /// Run inputs of the child, shown on its snapshot.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// Variables laid over the child's defaults.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// The child gets a memory scope of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCompleted {
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub outputs: Map<String, Value>,
    #[serde(skip)]
    pub private: NodeCompletedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCompletedFacts {
    /// Positions, in the definition, of outgoing edges that are *not* taken. Recorded, so that folding a log never
    /// evaluates an expression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed_edges: Vec<u32>,
    /// A loop head that goes round again: its body is reset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The node's child has written memory up to here, and its parent sees it from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_memory: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFailed {
    pub node_id: NodeId,
    pub error: Fault,
    pub attempts: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRetried {
    pub node_id: NodeId,
    /// The attempt about to be made, 1 = first retry.
    pub attempt: u32,
    pub delay_ms: u64,
    pub last_error: Fault,
    #[serde(skip)]
    pub private: NodeRetriedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRetriedFacts {
    pub wake_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSkipped {
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCancelled {
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSuspended {
    pub node_id: NodeId,
    pub interrupt_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Set when the node waits because its child does: the status the parent mirrors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_status: Option<RunStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<RunId>,
    /// With reason `low-confidence`: who was not sure, how sure it had to be, and how sure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<f64>,
    #[serde(skip)]
    pub private: NodeSuspendedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSuspendedFacts {
    /// See [`NodeCompletedFacts::child_memory`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_memory: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResumed {
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<String>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub resume_value: Option<Value>,
    /// Set when it is a child that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<RunId>,
    #[serde(skip)]
    pub private: super::Words,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDispatched {
    pub child_run_id: RunId,
    pub child_workflow_id: WorkflowId,
    pub child_status: RunStatus,
    #[serde(skip)]
    pub private: NodeDispatchedFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDispatchedFacts {
    pub node_id: NodeId,
    /// Set when the child is on another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteRun>,
}

/// A child on another host. Its name over there is that host's to choose; here it was planned under another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteRun {
    /// The name it was planned under.
    pub place: RunId,
    pub run: RunId,
    /// How the other host calls itself, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// Where the run is found.
    pub url: String,
}

impl Default for NodeDispatchedFacts {
    fn default() -> Self {
        Self { node_id: NodeId::new(""), remote: None }
    }
}
