//! One call of a tool: whether its arguments fit, how it goes on the log, and what is wrong with what came back.

use baton_model::event::REDACTED;
use baton_model::tool::{FoundTool, Transport};
use baton_model::{Draft, Fault, ToolOutcome, ToolSpec, ToolUse, code};
use serde_json::json;

use super::{finish, tool_records};
use crate::invocation::Call;
use crate::native;
use crate::state::RunState;

/// What an attempt that is made again could not do better.
const HOPELESS: [&str; 9] = [
    code::CREDENTIAL_FORBIDDEN,
    code::EFFECT_NOT_SIMULATED,
    code::EGRESS_DENIED,
    code::FORBIDDEN,
    code::INPUT_MISSING,
    code::MCP_SERVER_NOT_FOUND,
    code::NOT_FOUND,
    code::TOOL_RESULT_INVALID,
    code::VALIDATION_ERROR,
];

/// Whether trying again may mend this failure of a tool.
pub(super) fn is_hopeless(fault: &Fault) -> bool {
    HOPELESS.contains(&fault.code.as_str()) || finish::is_hopeless(fault)
}

/// What is wrong with a call's arguments is told to whoever wrote them, and nobody is called.
pub(super) fn check(state: &RunState, node: usize, call: &Call, tool: &ToolSpec) -> Result<(), String> {
    // What could not be read arrives as a text, which a lax schema would let through.
    if !call.asked.arguments.is_object() {
        return Err("they are no JSON object".to_owned());
    }
    // A tool that brings a broken schema judges its arguments itself.
    let schema = state.schemas.of(&tool.input_schema).ok();
    if let Some(broken) = schema.and_then(|schema| schema.broken(&call.asked.arguments)) {
        return Err(format!("{} breaks the rule {}", broken.place(), broken.rule));
    }
    match tool.transport {
        // What is said to the host is judged when its turn comes.
        Transport::Native if call.is_envelope() => Ok(()),
        Transport::Native => native::request(state, node, call).map(|_| ()),
        Transport::Http | Transport::Mcp => Ok(()),
    }
}

/// A call goes on the log, and so does what came of it where its arguments do not fit.
pub(super) fn announced(
    state: &RunState,
    node: usize,
    id: &str,
    asked: ToolUse,
    found: &FoundTool,
    item: Option<u32>,
) -> Vec<Draft> {
    let mut drafts = vec![tool_records::called_by_node(state, node, id, &asked, found, item)];
    let call = Call::open(id.to_owned(), state.next_seq, asked);
    if let Err(why) = check(state, node, &call, &found.spec) {
        let message = format!("The arguments do not fit what `{}` takes: {why}. It was not called.", found.spec.id);
        let outcome = ToolOutcome::failed(code::VALIDATION_ERROR, message);
        drafts.push(tool_records::ended(state, node, tool_records::SYSTEM, &call, outcome));
    }
    drafts
}

/// What is wrong with what a tool came back with; nothing, if it is a result and fits.
pub(super) fn objection(state: &RunState, node: usize, found: &FoundTool, outcome: &ToolOutcome) -> Option<Fault> {
    let hides = state.plan.nodes[node].sensitive;
    if let Some(error) = &outcome.error {
        let message = if hides { REDACTED.to_owned() } else { error.message.clone() };
        let fault = Fault::new(&error.code, message).with("tool", found.spec.id.as_str());
        return Some(fault.with("status", json!(outcome.status)));
    }
    let invalid = |why: String| {
        let message = format!("What `{}` returned is not what it promises: {why}.", found.spec.id);
        Some(Fault::new(code::TOOL_RESULT_INVALID, message).with("tool", found.spec.id.as_str()))
    };
    // A tool that brings a broken schema promises nothing.
    let schema = state.schemas.of(found.output_schema.as_ref()?).ok()?;
    let broken = schema.broken(&outcome.value)?;
    invalid(format!("{} breaks the rule {}", broken.place(), broken.rule))
}
