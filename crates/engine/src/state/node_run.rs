//! What one node and one edge are at one point of the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_model::event::BudgetHeld;
use baton_model::tool::FoundTool;
use baton_model::{Decision, Fault, ModelReply, NodeStatus, SemanticRequest, Timestamp, TurnSnapshot};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::map_run::MapRun;
use crate::envelope::Asked;
use crate::invocation::{Call, Invocation};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NodeRun {
    pub(crate) status: Option<NodeStatus>,
    pub(crate) visit: u32,
    pub(crate) attempt: u32,
    pub(crate) outputs: Map<String, Value>,
    pub(crate) error: Option<Fault>,
    pub(crate) started_at: Timestamp,
    pub(crate) started_seq: u64,
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) deadline: Option<Timestamp>,
    /// Position in [`RunState::children`] of the child this visit waits for.
    pub(crate) child: Option<usize>,
    /// A decision that waits for a human, where the question itself has no room for it.
    pub(crate) held: Option<Decision>,
    /// What this turn sees.
    pub(crate) snapshot: Option<TurnSnapshot>,
    /// What this attempt asks a model, and what the model said.
    pub(crate) call: Option<Arc<SemanticRequest>>,
    pub(crate) reply: Option<Arc<ModelReply>>,
    /// Where its last answer stands.
    pub(crate) replied: Option<u64>,
    /// How often a model was asked for the answer under way, and what it is told this time.
    pub(crate) asked: Asked,
    /// Answers of models in this attempt.
    pub(crate) calls: u32,
    /// How often the answer under way has broken off, and when the same is asked again.
    pub(crate) broken: u32,
    pub(crate) not_before: Option<Timestamp>,
    /// The attempt in which what is under way was begun. Further attempts go on with it, and keys name this one.
    pub(crate) since: u32,
    /// What an attempt that failed leaves to the next: all that was said and called.
    pub(crate) left: Option<Box<Invocation>>,
    /// The agent at work in this attempt.
    pub(crate) invocation: Option<Box<Invocation>>,
    /// The agents that this one's answer handed over to.
    pub(crate) handed_to: BTreeSet<String>,
    /// The one call this node makes by itself.
    pub(crate) effect: Option<Box<Call>>,
    /// The tool of that call, where the node looked it up.
    pub(crate) tool: Option<Arc<FoundTool>>,
    /// The list it goes through, and how far it has come.
    pub(crate) map: Option<Box<MapRun>>,
    /// Its model came to be wanted while the run was paused, and is asked when the run goes on.
    pub(crate) waits: bool,
    /// What the budget had no room for, while a human is asked.
    pub(crate) over_budget: Option<Box<BudgetHeld>>,
    /// The turn is to be taken again, with this from a human.
    #[serde(with = "super::maybe")]
    pub(crate) refine: Option<Value>,
    /// A loop head whose body is under way.
    pub(crate) looping: bool,
    /// Visits made before the round of the loop around this node; a loop inside a loop counts from here.
    pub(crate) earlier_visits: u32,
    /// Chunks already emitted in this attempt.
    pub(crate) chunks: usize,
    /// The latest visit asked something and was answered.
    pub(crate) answered: bool,
}

impl NodeRun {
    pub(crate) fn status(&self) -> NodeStatus {
        self.status.unwrap_or(NodeStatus::Pending)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status() == NodeStatus::Running
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EdgeState {
    #[default]
    Pending,
    /// Its source completed and its condition held.
    Open,
    /// Its source was skipped, or its condition did not hold.
    Closed,
    /// Its source failed.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) node: usize,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Run,
    Skip,
    /// A loop head whose body is done; `broken` when no edge came back open.
    Again {
        broken: bool,
    },
}
