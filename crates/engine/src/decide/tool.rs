//! Tools, called and returned. The intent is recorded before anything leaves the process; what comes back is recorded
//! before anybody makes something of it.

use baton_model::event::{CapBreached, CapKind, REDACTED};
use baton_model::tool::ToolStatus;
use baton_model::{Draft, Event, Fault, ModelReply, NodeId, Timestamp, ToolOutcome, ToolUse, code};
use serde_json::json;

use super::tool_call::check;
use super::tool_records::{called as announced, ended, settled};
use super::{finish, open_calls, tool_step, unknown_outcome};
use crate::command::Returned;
use crate::invocation::{Call, Invocation, OpenCall, call_id};
use crate::plan::Kind;
use crate::state::{Phase, RunState};

/// How much of an agent's last words is kept with the fault that stopped it.
const MOST_PARTIAL_CHARS: usize = 2000;

/// The model wants tools called. What it may not have is refused on the spot, the rest is announced. `after` records
/// of this step come before.
pub(super) fn call_all(
    state: &RunState,
    node: usize,
    invocation: &Invocation,
    reply: &ModelReply,
    after: u64,
) -> Result<Vec<Draft>, Fault> {
    let (plan, run) = (&state.plan.nodes[node], &state.nodes[node]);
    let round = invocation.rounds.len();
    let most = state.most_rounds(node, invocation) as usize;
    if round >= most {
        return no_more(state, node, invocation, reply, most);
    }
    let agent_id = &invocation.card().agent_id;
    let mut drafts: Vec<Draft> = Vec::new();
    for (place, asked) in reply.tools.iter().enumerate() {
        let id = call_id(&plan.id, run.visit, state.since(node), round, place);
        let Some(tool) = invocation.tool(&asked.name) else {
            // Never called, so never announced.
            let message = "There is no such tool here. Use one of those you were given.";
            let outcome = ToolOutcome::refused(ToolStatus::Forbidden, code::FORBIDDEN, message);
            drafts.push(unannounced(state, node, agent_id, id, asked, outcome));
            continue;
        };
        let call = Call::open(id, state.next_seq + after + drafts.len() as u64, asked.clone());
        drafts.push(announced(state, node, agent_id, &call.id, asked, tool.transport));
        if let Err(why) = check(state, node, &call, tool) {
            let outcome = ToolOutcome::failed(code::VALIDATION_ERROR, format!("The arguments do not fit: {why}."));
            drafts.push(ended(state, node, agent_id, &call, outcome));
        }
    }
    Ok(drafts)
}

/// The agent wants more rounds than it may have. It is told once, with every call refused, and may answer with what it
/// has; whoever will not stop is stopped.
fn no_more(
    state: &RunState,
    node: usize,
    invocation: &Invocation,
    reply: &ModelReply,
    most: usize,
) -> Result<Vec<Draft>, Fault> {
    let (plan, run, round) = (&state.plan.nodes[node], &state.nodes[node], invocation.rounds.len());
    if state.rule() < 4 || round > most {
        let message = format!("The agent wanted more than {most} rounds of tool calls.");
        let fault = Fault::new(code::TOOL_ROUNDS_EXCEEDED, message).with("limit", most).with("observed", round + 1);
        let said = invocation.rounds.iter().rev().map(|round| round.reply.content.trim()).find(|said| !said.is_empty());
        return Err(match said.filter(|_| state.rule() >= 4 && !plan.sensitive) {
            Some(said) => fault.with("partial", said.chars().take(MOST_PARTIAL_CHARS).collect::<String>()),
            None => fault,
        });
    }
    let (limit, observed) = (most as u64, round as u64 + 1);
    let node_id = Some(plan.id.clone());
    let breach = CapBreached { kind: CapKind::ToolRounds, limit: limit.into(), observed: observed.into(), node_id };
    let mut drafts: Vec<Draft> = vec![Event::from(breach).into()];
    for (place, asked) in reply.tools.iter().enumerate() {
        let id = call_id(&plan.id, run.visit, run.attempt, round, place);
        let message = format!(
            "All {most} rounds of tool calls are used, so this was not called. Answer now with what you have, and say what is left undone."
        );
        let outcome = ToolOutcome::refused(ToolStatus::Forbidden, code::TOOL_ROUNDS_EXCEEDED, message);
        drafts.push(unannounced(state, node, &invocation.card().agent_id, id, asked, outcome));
    }
    Ok(drafts)
}

/// What becomes of a call that is not made. What the model said is its cause.
fn unannounced(
    state: &RunState,
    node: usize,
    agent_id: &str,
    id: String,
    asked: &ToolUse,
    outcome: ToolOutcome,
) -> Draft {
    let call = Call { seq: None, ..Call::open(id, 0, asked.clone()) };
    let cause = state.nodes[node].replied.filter(|_| state.rule() >= 4);
    Draft { causation: cause, ..ended(state, node, agent_id, &call, outcome) }
}

/// What the shell knows of a call. Something that nobody waits for any more changes nothing.
pub(super) fn returned(state: &RunState, node_id: &NodeId, call_id: &str, returned: &Returned) -> Vec<Draft> {
    let over = matches!(state.phase, Phase::New | Phase::Ended { .. });
    let Some(node) = state.plan.index.get(node_id).copied().filter(|node| !over && state.active.contains(node)) else {
        return Vec::new();
    };
    let Some(open) = state.open_call(node, call_id) else { return Vec::new() };
    let OpenCall { call, .. } = open;
    match returned {
        Returned::Outcome { outcome, written } => {
            // Whoever was asked about it need not answer any more.
            let mut drafts = unknown_outcome::withdrawn(state, node, call);
            drafts.extend(settled(state, node, call, outcome.clone(), written));
            drafts
        }
        // Looked up, and it did not take place: now it may.
        Returned::NotDone if call.unknown.is_none() => vec![open_calls::taken_up(state, node, call, false)],
        Returned::Unknown { reason } if call.unknown.is_none() => {
            vec![open_calls::unknown(state, node, open, open_calls::policy(open), reason)]
        }
        Returned::NotDone | Returned::Unknown { .. } => Vec::new(),
    }
}

/// What becomes of a node whose one call has come back.
pub(super) fn judged(state: &RunState, node: usize, outcome: &ToolOutcome, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    if let Kind::Tool(step) = &plan.kind {
        return tool_step::judged(state, node, step, outcome, at);
    }
    match (&outcome.error, &plan.kind) {
        (Some(error), _) => {
            let message = if plan.sensitive { REDACTED.to_owned() } else { error.message.clone() };
            let fault = Fault::new(&error.code, message).with("status", json!(outcome.status));
            finish::fail(state, node, fault, at)
        }
        (None, Kind::Http(http)) => finish::complete(state, node, http.done(outcome.value.clone()), at),
        (None, _) => Vec::new(),
    }
}
