//! Tools that nodes call by themselves, and how a test tells what came of their calls.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_engine::{Answer, Found, ToolCall, ToolLookup};
use baton_model::tool::{FoundTool, SafetyTier, Transport};
use baton_model::{Fault, OutcomePolicy, ToolSpec, code};
use serde_json::json;

use super::World;
use super::agents::tool_calls;

pub const LOOK: &str = "mcp:t.look";
pub const MAIL: &str = "mcp:t.mail";
/// Promises an object with a number `n`.
pub const TYPED: &str = "mcp:t.typed";
pub const REMEMBER: &str = "openwop:memory.put";
/// Its server is away.
pub const AWAY: &str = "mcp:away.t";

/// What a toolbox says about a tool.
pub fn find(lookup: &ToolLookup) -> Answer {
    let id = lookup.tool.as_str();
    let (transport, tier, policy) = match id {
        LOOK | TYPED => (Transport::Mcp, SafetyTier::Read, OutcomePolicy::Retry),
        MAIL => (Transport::Mcp, SafetyTier::Write, OutcomePolicy::Ask),
        REMEMBER => (Transport::Native, SafetyTier::Write, OutcomePolicy::Retry),
        AWAY => return Answer::failed(Fault::new(code::MCP_SERVER_DISCONNECTED, "The server is away.")),
        _ => return Answer::failed(Fault::new(code::NOT_FOUND, format!("There is no tool {id}."))),
    };
    if lookup.grant.as_ref().is_some_and(|grant| !grant.iter().any(|granted| granted == id)) {
        return Answer::failed(Fault::new(code::FORBIDDEN, "The run may not have it."));
    }
    let input_schema = match id {
        REMEMBER => json!({"type": "object"}),
        _ => json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
    };
    let spec = ToolSpec {
        id: id.to_owned(),
        description: String::new(),
        input_schema,
        transport,
        tier,
        outcome_policy: policy,
        scopes: Vec::new(),
        stub: None,
    };
    let output_schema =
        (id == TYPED).then(|| json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}));
    Answer::found(Found::Tool(Box::new(FoundTool { spec, output_schema })))
}

impl World {
    /// The calls that are wanted, in order.
    pub fn tools(&self) -> Vec<ToolCall> {
        tool_calls(&self.state)
    }
}
