//! How a visit goes on: what a node says of itself, before anything is recorded.

use baton_model::event::ChildPlan;
use baton_model::workflow::Reducer;
use baton_model::{Fault, SemanticRequest, ToolUse, code};
use serde_json::{Map, Value};

use super::conformance::Chunks;

/// How a visit goes on.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Done),
    Failed(Fault),
    /// Completes by itself after this long.
    Sleep {
        ms: u64,
    },
    /// Waits for an answer.
    Ask(Ask),
    /// Starts a child run and waits for its end.
    Child(ChildPlan),
    /// Asks a model and waits for its answer.
    Call(Box<SemanticRequest>),
    /// Looks a tool up, and calls it once it is found.
    Seek,
    /// Goes through a list.
    Items,
    /// Calls a tool and waits for what comes of it.
    Effect(Box<ToolUse>),
    /// Emits chunks, then completes.
    #[cfg_attr(not(feature = "conformance"), expect(dead_code, reason = "nothing streams"))]
    Stream(Chunks),
}

/// A finished visit.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) outputs: Map<String, Value>,
    pub(crate) variables: Vec<(String, Value)>,
    pub(crate) write: Option<Writing>,
    /// The output port taken. Edges that name another port of this node's kind stay closed.
    pub(crate) port: Option<&'static str>,
    /// A loop head going round again.
    pub(crate) again: bool,
    /// How far the child this node waited for had written the memory they share.
    pub(crate) child_memory: Option<u64>,
}

impl Done {
    pub(crate) fn with(outputs: Map<String, Value>) -> Self {
        Self { outputs, ..Self::default() }
    }
}

/// A write that was judged fine.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) channel: String,
    pub(crate) value: Value,
    pub(crate) reducer: Reducer,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_size: Option<usize>,
    pub(crate) schema_version: Option<u32>,
}

/// A question to the outside, ready to be recorded.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) kind: &'static str,
    pub(crate) data: Value,
    pub(crate) resume_schema: Option<Value>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) bearer_only: bool,
    /// Why it is asked, when it is because somebody was not sure enough.
    pub(crate) low_confidence: Option<LowConfidence>,
    /// What it is about, where the question itself may not show it.
    pub(crate) hidden: Option<Value>,
}

impl Ask {
    /// A question that anybody may answer, at any time.
    pub(crate) fn new(kind: &'static str, data: Value) -> Self {
        Self {
            kind,
            data,
            resume_schema: None,
            timeout_ms: None,
            bearer_only: false,
            low_confidence: None,
            hidden: None,
        }
    }
}

/// Who was not sure, how sure it had to be, and how sure it was.
#[derive(Debug)]
pub(crate) struct LowConfidence {
    pub(crate) agent_id: String,
    pub(crate) threshold: f64,
    pub(crate) observed: f64,
}

/// The shell answered another question than was asked: a defect of ours, and no reason to guess.
pub(crate) fn wrong_answer() -> Fault {
    Fault::new(code::INTERNAL_ERROR, "The host answered another question than the node asked.")
}
