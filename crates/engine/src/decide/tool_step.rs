//! A node that calls a tool of the catalogue by itself. It begins, the tool is looked up, its arguments are held against
//! what the tool takes, and the call is announced; what came back is recorded before it is judged.
//!
//! ```text
//!  started ─► tool sought ─┬─► found ─► called ─► returned ─┬─► fits ─► completed
//!                          │                │               └─► failed, or tried again
//!                          │                └─ the arguments do not fit: returned at once, nobody is called
//!                          └─► not here: failed, or tried again
//! ```

use baton_model::native::ENVELOPE;
use baton_model::tool::FoundTool;
use baton_model::{Draft, Fault, Timestamp, ToolOutcome, ToolUse, code};
use serde_json::json;

use super::inputs::inputs;
use super::{bracket, finish, map, tool_call};
use crate::eval_context::EvalContext;
use crate::invocation::call_id;
use crate::node_request::{Answer, Found, NodeRequest, Request, ToolLookup};
use crate::nodes::wrong_answer;
use crate::plan::{CalledTool, Kind, OnToolError, ToolStep};
use crate::state::RunState;

/// The tool that some node at work wants to know.
pub(super) fn wanted(state: &RunState) -> Option<NodeRequest> {
    state.active.iter().find_map(|&node| {
        let tool = state.sought_tool(node)?;
        let (run, started) = (&state.nodes[node], state.start.as_ref().map(|start| &start.event));
        let grant = started.and_then(|event| event.private.tool_grant.clone());
        let owner = started.map(|event| event.owner.clone());
        let request = Request::Tool(ToolLookup { tool: tool.id.clone(), grant, owner });
        let node = state.plan.nodes[node].id.clone();
        Some(NodeRequest { node, visit: run.visit, attempt: run.attempt, call: None, request })
    })
}

/// The tool was found, or is not here.
pub(super) fn answered(
    state: &RunState,
    node: usize,
    wanted: &CalledTool,
    answer: &Answer,
    at: Timestamp,
) -> Vec<Draft> {
    let found = match &answer.found {
        Ok(Found::Tool(found)) if found.spec.id == ENVELOPE => {
            let message = format!("`{ENVELOPE}` is how agents talk to the host; a node cannot call it.");
            Err(Fault::new(code::VALIDATION_ERROR, message).with("tool", ENVELOPE))
        }
        Ok(Found::Tool(found)) => Ok(with_policy(found, wanted)),
        Ok(_) => Err(wrong_answer()),
        Err(fault) => Err(fault.clone()),
    };
    let begun = found.and_then(|found| match &state.plan.nodes[node].kind {
        Kind::Tool(step) => call(state, node, step, &found, at),
        Kind::Map(step) => map::began(state, node, step, Some(found), at),
        _ => Err(wrong_answer()),
    });
    begun.unwrap_or_else(|fault| fail(state, node, fault, at))
}

/// The tool as this node calls it.
fn with_policy(found: &FoundTool, wanted: &CalledTool) -> FoundTool {
    let mut found = found.clone();
    found.spec.outcome_policy = wanted.outcome_policy.unwrap_or(found.spec.outcome_policy);
    found
}

fn call(state: &RunState, node: usize, step: &ToolStep, found: &FoundTool, at: Timestamp) -> Result<Vec<Draft>, Fault> {
    let (plan, run) = (&state.plan.nodes[node], &state.nodes[node]);
    let ports = inputs(state, node, at)?;
    let context = EvalContext::new(state, node, run.visit, run.attempt, ports, false, at);
    let id = call_id(&plan.id, run.visit, run.attempt, 0, 0);
    let asked = ToolUse { id: plan.id.to_string(), name: found.spec.id.clone(), arguments: step.given(&context)? };
    Ok(tool_call::announced(state, node, &id, asked, found, None))
}

/// What becomes of a node whose call has come back.
pub(super) fn judged(
    state: &RunState,
    node: usize,
    step: &ToolStep,
    outcome: &ToolOutcome,
    at: Timestamp,
) -> Vec<Draft> {
    let Some(found) = state.nodes[node].tool.as_deref() else { return fail(state, node, wrong_answer(), at) };
    match tool_call::objection(state, node, found, outcome) {
        None => finish::complete(state, node, step.done(outcome.value.clone(), false), at),
        Some(fault) => match &outcome.error {
            // The tool was called and says so itself; anything else is for whoever runs the host.
            Some(error)
                if step.on_tool_error == OnToolError::Return && error.code == code::MCP_TOOL_INVOCATION_FAILED =>
            {
                finish::complete(state, node, step.done(json!(error.message), true), at)
            }
            _ => fail(state, node, fault, at),
        },
    }
}

fn fail(state: &RunState, node: usize, fault: Fault, at: Timestamp) -> Vec<Draft> {
    if !tool_call::is_hopeless(&fault) {
        return finish::fail(state, node, fault, at);
    }
    let mut drafts = bracket::stop(state, node);
    drafts.extend(finish::failed_for_good(state, node, state.nodes[node].attempt, fault));
    drafts
}
