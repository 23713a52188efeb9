//! What the world says to a run, and how the engine says no.

use baton_model::event::{DrainPolicy, RemoteRun, RunSettings};
use baton_model::{Fault, ModelReply, NodeId, Owner, RunId, RunStatus, ToolOutcome, Usage, UsageSummary};
use serde_json::{Map, Value};

use crate::budget::{Shortage, Spent, Unaffordable};
use crate::node_request::{Answer, NodeRequest, Written};
use crate::step_work::StepAsked;

/// Something the world says.
#[derive(Clone, Debug)]
pub enum Command {
    Start(Box<Start>),
    /// Go on: run what is ready, fire what is due.
    Advance,
    /// The child exists (again, perhaps: a restart may say so twice).
    ChildStarted {
        child: RunId,
    },
    /// The child exists on another host, under that host's name for it.
    RemoteStarted {
        remote: RemoteRun,
    },
    /// The child could not be created.
    ChildRefused {
        child: RunId,
        fault: Fault,
    },
    /// The child started or stopped waiting for somebody.
    ChildStatus {
        child: RunId,
        status: RunStatus,
    },
    ChildEnded {
        child: RunId,
        outcome: ChildOutcome,
    },
    /// A model has answered this attempt of a node, or could not be reached.
    ModelReplied {
        node: NodeId,
        visit: u32,
        attempt: u32,
        /// Which call of that attempt, from 0.
        call: u32,
        reply: Result<ModelReply, Fault>,
        /// What the call cost, where that is known.
        cost_usd: Option<f64>,
        made: Box<Made>,
    },
    /// An answer had begun, and broke off. `usage` is what the vendor had said by then, where it had said anything.
    ModelBroke {
        node: NodeId,
        visit: u32,
        attempt: u32,
        call: u32,
        fault: Fault,
        /// The same call may do better.
        again: bool,
        usage: Option<Usage>,
        cost_usd: Option<f64>,
        made: Box<Made>,
    },
    /// What a model that has not answered yet is thinking, in pieces. `sequence` is the place of the first of them.
    ModelThinks {
        node: NodeId,
        visit: u32,
        attempt: u32,
        call: u32,
        sequence: u32,
        pieces: Vec<String>,
    },
    /// The tree this run belongs to has used this much; this node was the last to use some.
    Spent {
        node: NodeId,
        spent: Vec<Spent>,
    },
    /// The tree's budget has nothing left for this.
    OutOfBudget {
        what: Box<Unaffordable>,
        short: Box<Shortage>,
    },
    /// Another run of the tree asked about the budget too, and was answered.
    BudgetDecided {
        node: NodeId,
        extended: bool,
    },
    /// A tool has returned, or nobody knows whether it was called.
    ToolReturned {
        node: NodeId,
        call_id: String,
        returned: Returned,
    },
    /// No runner has taken this call yet.
    RunnerAwaited {
        node: NodeId,
        call_id: String,
        wait_for_runner_ms: u64,
    },
    /// How far a call is, as its tool says.
    ToolProgressed {
        node: NodeId,
        call_id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    /// The program that has a call in hand has asked a model.
    StepAsked {
        node: NodeId,
        call_id: String,
        asked: Box<StepAsked>,
    },
    /// The program that has a call in hand keeps a value.
    StepKept {
        node: NodeId,
        call_id: String,
        key: String,
        value: Value,
    },
    /// The shell's answer to a node that asked before it starts.
    RequestAnswered {
        node_request: Box<NodeRequest>,
        answer: Answer,
    },
    /// Variables changed from outside the graph; test seams only.
    SetVariables {
        variables: Map<String, Value>,
    },
    Resolve {
        node: NodeId,
        /// The question that is meant; see [`crate::Interrupt::interrupt_id`].
        interrupt: Option<String>,
        value: Value,
        actor: Actor,
    },
    Cancel {
        reason: Option<String>,
        by: Option<String>,
        parent: Option<RunId>,
    },
    Pause {
        reason: Option<String>,
        drain: DrainPolicy,
    },
    Resume {
        reason: Option<String>,
    },
}

impl Command {
    /// Whether somebody outside wants it, who is told what comes of it and may ask for something else. Without them the run
    /// stays as it is.
    pub fn is_callers(&self) -> bool {
        match self {
            Self::Resolve { .. } | Self::Pause { .. } | Self::Resume { .. } | Self::SetVariables { .. } => true,
            Self::Cancel { parent, .. } => parent.is_none(),
            _ => false,
        }
    }
}

/// How a call of a model was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made {
    /// The most the answer might take, where a budget said so.
    pub cap: Option<u64>,
    /// Why it was asked again before an answer began, each time.
    pub retried: Vec<Fault>,
}

/// What the shell knows of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    /// It is over. `written` becomes durable with the record of it.
    Outcome { outcome: ToolOutcome, written: Vec<Written> },
    /// It may or may not have taken place.
    Unknown { reason: String },
    /// It was looked up, and did not take place.
    NotDone,
}

/// A run's beginning.
#[derive(Clone, Debug)]
pub struct Start {
    pub inputs: Map<String, Value>,
    /// Laid over the defaults after the inputs (a parent's mapping).
    pub variables: Map<String, Value>,
    pub owner: Owner,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    /// Whoever asked has taken it back: the run is cancelled before it does anything.
    pub withdrawn: bool,
    /// What the run is pinned to, as it is recorded. Limits are already the smaller of what was asked and what the host
    /// allows. The workflow's digest, the first variables, the hidden inputs and the rule are filled in by the decision.
    pub settings: Box<RunSettings>,
}

/// How a child ended.
#[derive(Clone, Debug)]
pub struct ChildOutcome {
    pub status: RunStatus,
    pub variables: Map<String, Value>,
    pub error: Option<Fault>,
    /// How far the memory it shares with its parent had been written; 0 if they share none.
    pub memory: u64,
    /// What its models have used, and those of runs below it. Nothing is decided by it: it is added up beside the log.
    pub usage: Option<UsageSummary>,
}

/// Who answers an interrupt.
#[derive(Clone, Debug, Default)]
pub struct Actor {
    /// The credential's opaque id; absent for a signed link.
    pub subject: Option<String>,
}

/// Why a command changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    Invalid,
    Forbidden,
    NotFound,
    Conflict,
    Gone,
    Unprocessable,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, code: &str, message: impl Into<String>) -> Self {
        Self { kind, fault: Fault::new(code, message) }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, baton_model::code::VALIDATION_ERROR, message)
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.fault = self.fault.with(key, value);
        self
    }
}
