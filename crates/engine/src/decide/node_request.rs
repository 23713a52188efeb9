//! Nodes that ask the shell before they start; see [`crate::node_request`].

use baton_model::event::Ending;
use baton_model::{Draft, Timestamp, ToolOutcome, code};

use super::finish::started_and_failed;
use super::node_records::{recorded, started, visit_of};
use super::request::request;
use super::{caps, finish, invocation, tool_records, tool_step, turn};
use crate::eval_context::EvalContext;
use crate::invocation::OpenCall;
use crate::native;
use crate::node_request::{Answer, Found, NodeRequest};
use crate::nodes::wrong_answer;
use crate::plan::Kind;
use crate::state::{Phase, RunState, Verdict};

/// The question the run waits on, if the next thing it does needs an answer.
pub fn wanted(state: &RunState) -> Option<NodeRequest> {
    // Asked between steps and within one: either way the question costs what it cost when it came up.
    state.meter.restart();
    match &state.phase {
        Phase::Active => {}
        // What is under way may finish; nothing else begins.
        Phase::Ending(Ending::Paused(_)) => return native_call(state).or_else(|| tool_step::wanted(state)),
        Phase::New | Phase::Paused { .. } | Phase::Ending(_) | Phase::Ended { .. } => return None,
    }
    if let Some(node_request) = native_call(state).or_else(|| tool_step::wanted(state)) {
        return Some(node_request);
    }
    let (node, attempt) = state.refining().map(|node| (node, state.nodes[node].attempt + 1)).or_else(|| {
        let ready = state.next_ready().filter(|ready| ready.verdict == Verdict::Run)?;
        Some((ready.node, 0))
    })?;
    let plan = &state.plan.nodes[node];
    let over_bound = || caps::too_many_starts(state, node, 0).is_some() || caps::too_many_turns(state, node).is_some();
    if plan.disabled || !plan.kind.asks_first() || over_bound() || state.incapable(node).is_some() {
        return None;
    }
    if let Kind::Supervisor(supervisor) = &plan.kind
        && turn::known_view(state, node, supervisor, attempt).is_some()
    {
        return None;
    }
    let visit = visit_of(state, node, attempt);
    let request = request(state, node, visit, attempt, state.last_at).ok()?;
    Some(NodeRequest { node: plan.id.clone(), visit, attempt, call: None, request })
}

/// A call of a tool that lives in the process.
fn native_call(state: &RunState) -> Option<NodeRequest> {
    state.active.iter().copied().filter(|&node| state.nodes[node].is_running()).find_map(|node| {
        let open = state.open_calls(node).into_iter().find(|open| !open.is_external() && !open.call.is_envelope())?;
        let request = native::request(state, node, open.call).ok()?;
        let (run, node) = (&state.nodes[node], state.plan.nodes[node].id.clone());
        Some(NodeRequest { node, visit: run.visit, attempt: run.attempt, call: Some(open.call.id.clone()), request })
    })
}

/// The answer has come. One that nobody waits for any more changes nothing, and neither does one that comes when the
/// run's time is up: going on ends it.
pub(super) fn answered(state: &RunState, node_request: &NodeRequest, answer: &Answer, at: Timestamp) -> Vec<Draft> {
    if wanted(state).as_ref() != Some(node_request) || caps::out_of_time(state, at).is_some() {
        return Vec::new();
    }
    let Some(&node) = state.plan.index.get(&node_request.node) else { return Vec::new() };
    let plan = &state.plan.nodes[node];
    if let Some(call) = &node_request.call {
        return called(state, node, call, answer);
    }
    if let Some(tool) = state.sought_tool(node) {
        return tool_step::answered(state, node, tool, answer, at);
    }
    if let Kind::Supervisor(supervisor) = &plan.kind {
        let fault = match &answer.found {
            Ok(Found::Turn(turn_context)) => {
                return turn::begin(state, node, supervisor, node_request.attempt, turn_context, at);
            }
            Ok(_) => wrong_answer(),
            Err(fault) => fault.clone(),
        };
        return started_and_failed(state, node, node_request.visit, node_request.attempt, fault);
    }
    if let Kind::Agent(_) = &plan.kind {
        return match &answer.found {
            Ok(Found::InvocationContext(brief)) => invocation::begin(state, node, node_request.attempt, brief, at),
            Ok(_) => started_and_failed(state, node, node_request.visit, node_request.attempt, wrong_answer()),
            Err(fault) => started_and_failed(state, node, node_request.visit, node_request.attempt, fault.clone()),
        };
    }
    let mut drafts = vec![started(state, node, node_request.visit, node_request.attempt)];
    drafts.extend(answer.written.iter().map(|written| recorded(&node_request.node, None, written)));
    let context =
        EvalContext::new(state, node, node_request.visit, node_request.attempt, serde_json::Map::new(), false, at);
    let done = answer.found.clone().and_then(|found| plan.kind.finish(found, &context));
    match done {
        Ok(done) => drafts.extend(finish::finish(state, node, node_request.attempt, done, at)),
        // Trying again does not give anybody a scope.
        Err(fault) if fault.code == code::FORBIDDEN => {
            drafts.extend(finish::failed_for_good(state, node, node_request.attempt, fault));
        }
        Err(fault) => drafts.extend(finish::failed(state, node, node_request.attempt, fault, at)),
    }
    drafts
}

/// A tool that lives in the process has been called and has returned, all in one.
fn called(state: &RunState, node: usize, call_id: &str, answer: &Answer) -> Vec<Draft> {
    let Some(OpenCall { call, .. }) = state.open_call(node, call_id) else { return Vec::new() };
    let outcome = match &answer.found {
        Ok(found) => native::outcome(found),
        Err(fault) => ToolOutcome::failed(&fault.code, fault.message.clone()),
    };
    tool_records::settled(state, node, call, outcome, &answer.written)
}
