//! Workflows that ask models, and what models say.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_engine::{Command, Effect, RunState, outstanding};
use baton_model::{Fault, ModelReply, ModelRequest, NodeId, StopReason, Usage, code};
use serde_json::{Value, json};

use super::World;

pub const CALL: &str = "core.ai.structuredOutput";

/// Configuration of a node that asks for `{"valid": boolean}`.
pub fn config() -> Value {
    let schema = json!({"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}});
    json!({"provider": "mock", "model": "mock-mini", "outputSchema": schema})
}

/// Gives a node of a definition an input port.
pub fn fed(mut definition: Value, node: &str, port: &str, source: Value) -> Value {
    let nodes = definition["nodes"].as_array_mut().unwrap();
    nodes.iter_mut().find(|drawn| drawn["id"] == node).unwrap()["inputs"][port] = source;
    definition
}

/// Asks every node of the definition that is a call the same question.
pub fn asking(mut definition: Value) -> Value {
    for node in definition["nodes"].as_array_mut().unwrap() {
        if node["typeId"] == CALL {
            node["inputs"]["prompt"] = json!({"type": "static", "value": "Is it?"});
        }
    }
    definition
}

pub fn said(content: &str) -> ModelReply {
    ModelReply::text(content, Usage { input_tokens: 3, output_tokens: 5, ..Usage::default() })
}

pub fn valid() -> ModelReply {
    said(r#"{"valid":true}"#)
}

pub fn refused() -> ModelReply {
    ModelReply { stop: StopReason::Refusal, refusal: Some("never".to_owned()), ..said("never") }
}

pub fn unreachable() -> Fault {
    Fault::new(code::PROVIDER_UNAVAILABLE, "No answer.")
}

/// A call that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub node: NodeId,
    pub visit: u32,
    pub attempt: u32,
    pub call: u32,
    pub request: ModelRequest,
    pub reasoning_chars: usize,
}

impl Asked {
    pub fn answered(&self, reply: Result<ModelReply, Fault>) -> Command {
        let Self { node, visit, attempt, call, .. } = self.clone();
        Command::ModelReplied { node, visit, attempt, call, cost_usd: None, made: Box::default(), reply }
    }

    /// What the model thinks before it answers.
    pub fn thinks(&self, sequence: u32, pieces: &[&str]) -> Command {
        let Self { node, visit, attempt, call, .. } = self.clone();
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        Command::ModelThinks { node, visit, attempt, call, sequence, pieces }
    }
}

/// Every call the run waits for.
pub fn asked(state: &RunState) -> Vec<Asked> {
    let calls = outstanding(state).into_iter().filter_map(|effect| match effect {
        Effect::CallModel { node, visit, attempt, call, request, reasoning_chars, .. } => {
            Some(Asked { node, visit, attempt, call, request: *request, reasoning_chars })
        }
        _ => None,
    });
    calls.collect()
}

impl World {
    /// The only call the run waits for.
    pub fn call(&self) -> Asked {
        let calls = asked(&self.state);
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls[0].clone()
    }

    /// Tells what a model thinks. Returns how much of it counted.
    pub fn mutters(&mut self, call: &Asked, sequence: u32, pieces: &[&str]) -> usize {
        let before = self.log.len();
        self.command(&call.thinks(sequence, pieces)).expect("a thought is never refused");
        self.log.len() - before
    }

    /// Hands an answer to a call, open or not. Returns whether it changed anything.
    pub fn reply(&mut self, call: &Asked, reply: Result<ModelReply, Fault>) -> bool {
        let before = self.log.len();
        self.command(&call.answered(reply)).expect("an answer is never refused");
        self.log.len() > before
    }
}
