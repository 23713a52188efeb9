//! Agents and tool calls, folded.

use std::sync::Arc;

use baton_model::event::{
    AgentInvocationCompleted, AgentInvocationStarted, AgentReasoned, AgentReasoningDelta, AgentToolCalled,
    AgentToolReturned, EffectRetried, EffectUnknown, EnvelopeNlToFormat, EnvelopeRetryAttempted, RunnerWaiting,
};
use baton_model::tool::ToolStatus;
use baton_model::{AgentRef, NodeId, Record, Timestamp, ToolOutcome, ToolUse};
use serde_json::Value;

use super::lookup::active_node;
use super::map;
use crate::invocation::{Call, Invocation, Round, Thinking};
use crate::plan::Kind;
use crate::state::{ItemRun, NodeRun, Phase, RunState};

const NO_SUCH_CALL: &str = "no such call is open";

pub(super) fn started(state: &mut RunState, event: &AgentInvocationStarted) -> Result<(), String> {
    let node = active_node(state, &event.private.place.node_id)?;
    let brief = event.private.brief.as_deref().ok_or("the brief is missing")?;
    at_rest(state, node)?;
    if !matches!(state.plan.nodes[node].kind, Kind::Supervisor(_)) {
        let card = &brief.card;
        let pinned = pin(state, node).unwrap_or_default();
        state.worker = Some(AgentRef {
            agent_id: card.agent_id.clone(),
            name: pinned.name.or_else(|| Some(card.persona.clone())),
            version: Some(card.pack_version.clone()),
            source_manifest_id: pinned.source_manifest_id.or_else(|| Some(card.agent_id.clone())),
            ..pinned
        });
    }
    let leads = matches!(state.plan.nodes[node].kind, Kind::Supervisor(_));
    let told = state.context().filter(|_| leads).map(|_| state.transcript.clone());
    let mut invocation = Invocation::new(event.invocation_id.clone(), brief.clone(), state.rule(), told);
    if let Some(left) = state.nodes[node].left.take() {
        invocation.rounds = left.rounds;
        invocation.reasoned = left.reasoned;
    }
    state.nodes[node].invocation = Some(Box::new(invocation));
    Ok(())
}

/// The agent that the definition pins to a node.
pub(super) fn pin(state: &RunState, node: usize) -> Option<AgentRef> {
    state.plan.definition.nodes[node].agent.as_ref().and_then(AgentRef::read)
}

/// Nobody is at work in this node.
pub(super) fn at_rest(state: &RunState, node: usize) -> Result<(), String> {
    match state.invocation(node) {
        None => Ok(()),
        Some(_) => Err("its agent is still at work".to_owned()),
    }
}

/// Time limits bound the agent's work, not how long somebody thinks about its answer.
pub(super) fn completed(state: &mut RunState, event: &AgentInvocationCompleted) -> Result<(), String> {
    let node = active_node(state, &event.private.node_id)?;
    let run = &mut state.nodes[node];
    at_work(run)?.over = true;
    run.reply = None;
    run.deadline = None;
    Ok(())
}

/// A piece of a thought. Where nobody is at work, a test only shows what one looks like.
pub(super) fn thinking(state: &mut RunState, event: &AgentReasoningDelta) -> Result<(), String> {
    let node = active_node(state, &event.private.node_id)?;
    let Some(invocation) = state.nodes[node].invocation.as_deref_mut().filter(|one| !one.over) else { return Ok(()) };
    if event.sequence != invocation.thinking.pieces {
        return Err("a piece of the thought is missing".to_owned());
    }
    invocation.thinking.pieces += 1;
    invocation.thinking.text.push_str(&event.delta);
    Ok(())
}

/// The thought is whole.
pub(super) fn reasoned(state: &mut RunState, event: &AgentReasoned) {
    let node = state.plan.index.get(&event.private.node_id).copied();
    let invocation = node.and_then(|node| state.nodes[node].invocation.as_deref_mut());
    if let Some(invocation) = invocation {
        invocation.thinking = Thinking::default();
        invocation.reasoned = true;
    }
}

pub(super) fn called(state: &mut RunState, record: &Record, event: &AgentToolCalled) -> Result<(), String> {
    let node = active_node(state, &event.private.place.node_id)?;
    let asked = event.private.asked.as_deref().cloned().unwrap_or_else(|| ToolUse {
        id: event.call_id.clone(),
        name: event.tool_name.clone(),
        arguments: event.inputs.clone().unwrap_or(Value::Null),
    });
    let call = Call::open(event.call_id.clone(), record.seq, asked);
    match doer(state, node) {
        Doer::Map => return map::called(state, node, record, event.private.item, call),
        Doer::Agent => round(&mut state.nodes[node])?.calls.push(call),
        Doer::Node => {
            let run = &mut state.nodes[node];
            run.effect = Some(Box::new(call));
            run.tool = event.private.tool.as_deref().cloned().map(Arc::new);
        }
        Doer::Pretence => {}
    }
    Ok(())
}

pub(super) fn returned(state: &mut RunState, record: &Record, event: &AgentToolReturned) -> Result<(), String> {
    let node = active_node(state, &event.private.place.node_id)?;
    let doer = doer(state, node);
    if let Doer::Pretence = doer {
        return Ok(());
    }
    let outcome = event.private.hidden.as_deref().cloned().unwrap_or_else(|| ToolOutcome {
        status: event.status.unwrap_or(ToolStatus::Ok),
        value: event.outcome.clone().unwrap_or(Value::Null),
        error: event.error.clone(),
        duration_ms: event.duration_ms,
    });
    match (&event.private.asked, doer) {
        // Never called: refused on the spot.
        (Some(asked), Doer::Agent) => {
            let call = Call::open(event.call_id.clone(), 0, (**asked).clone());
            round(&mut state.nodes[node])?.calls.push(Call { seq: None, outcome: Some(outcome), ..call });
        }
        _ => {
            let call = open_call(&mut state.nodes[node], &event.call_id)?;
            let doubted = call.unknown.is_some() || call.again > 0 || call.is_envelope();
            call.outcome = Some(outcome);
            call.unknown = None;
            call.work = Default::default();
            if doubted {
                rearm(state, node, &event.call_id, record.at);
            }
        }
    }
    let paused = matches!(state.phase, Phase::Paused { .. });
    let run = &mut state.nodes[node];
    run.waits |= paused && run.invocation.as_deref().is_some_and(Invocation::asks_model);
    Ok(())
}

pub(super) fn unknown(state: &mut RunState, event: &EffectUnknown) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let run = &mut state.nodes[node];
    open_call(run, &event.call_id)?.unknown = Some(event.policy);
    // Whoever has to find out gets the time it takes.
    match run.map.as_deref_mut() {
        Some(map) => map::disarm(map, &event.call_id),
        None => run.deadline = None,
    }
    Ok(())
}

pub(super) fn waiting(state: &mut RunState, event: &RunnerWaiting) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    open_call(&mut state.nodes[node], &event.call_id)?.told_waiting = true;
    Ok(())
}

pub(super) fn retried(state: &mut RunState, record: &Record, event: &EffectRetried) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let paused = matches!(state.phase, Phase::Paused { .. });
    let call = open_call(&mut state.nodes[node], &event.call_id)?;
    call.unknown = None;
    call.again += 1;
    call.verify = event.verify;
    call.waits = paused;
    rearm(state, node, &event.call_id, record.at);
    Ok(())
}

/// The node's time begins anew once nothing about its calls is in doubt.
fn rearm(state: &mut RunState, node: usize, call: &str, at: Timestamp) {
    if state.nodes[node].map.is_some() {
        return map::rearm(state, node, call, at);
    }
    if !state.open_calls(node).iter().any(|open| open.call.is_unknown()) {
        let limit = state.plan.nodes[node].timeout_ms;
        state.nodes[node].deadline = limit.map(|ms| at.plus_millis(ms));
    }
}

/// The run goes on. What was held back is wanted now, and what is under way has the time it had left.
pub(super) fn resumed(state: &mut RunState, paused_at: Timestamp, at: Timestamp) {
    for &node in &state.active {
        let run = &mut state.nodes[node];
        run.waits = false;
        let agents =
            run.invocation.as_deref_mut().filter(|agent| !agent.over).and_then(|agent| agent.rounds.last_mut());
        let items = run.map.iter_mut().flat_map(|map| map.under_way.values_mut());
        let calls = agents.into_iter().flat_map(|round| &mut round.calls).chain(run.effect.as_deref_mut());
        calls.chain(items.filter_map(ItemRun::call_mut)).for_each(|call| call.waits = false);
        if let Some(map) = run.map.as_deref_mut() {
            map.shift(|end| at.plus_millis(end.millis_since(paused_at)));
        }
        let works =
            run.map.is_some() || run.effect.is_some() || run.invocation.as_deref().is_some_and(|agent| !agent.over);
        run.deadline = run.deadline.map(|end| if works { at.plus_millis(end.millis_since(paused_at)) } else { end });
    }
}

/// The model is asked again: what it said last does not count.
pub(super) fn asked_again(state: &mut RunState, event: &EnvelopeRetryAttempted) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let said = state.answer_room(node).ok_or("the node asks no model")?;
    let run = &mut state.nodes[node];
    let reply = run.reply.take().ok_or("no answer is there to be judged")?;
    run.asked = run.asked.next(event, said, &reply);
    Ok(())
}

/// The model is asked to put what it said into shape.
pub(super) fn coerced(state: &mut RunState, event: &EnvelopeNlToFormat) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let run = &mut state.nodes[node];
    let reply = run.reply.take().ok_or("no answer is there to be judged")?;
    run.asked = run.asked.coercion(reply);
    Ok(())
}

/// Who calls a tool in a node.
enum Doer {
    Agent,
    Node,
    /// A map, for one of its items.
    Map,
    /// Nobody: a test only shows what a call looks like.
    Pretence,
}

fn doer(state: &RunState, node: usize) -> Doer {
    match (&state.nodes[node].invocation, &state.plan.nodes[node].kind) {
        (Some(_), _) => Doer::Agent,
        (None, Kind::Map(_)) => Doer::Map,
        (None, Kind::Tool(_) | Kind::Http(_)) => Doer::Node,
        (None, _) => Doer::Pretence,
    }
}

fn at_work(run: &mut NodeRun) -> Result<&mut Invocation, String> {
    let invocation = run.invocation.as_deref_mut().filter(|invocation| !invocation.over);
    invocation.ok_or_else(|| "no agent is at work here".to_owned())
}

/// The round that a model's last words opened.
fn round(run: &mut NodeRun) -> Result<&mut Round, String> {
    let reply = run.reply.take();
    if reply.is_some() {
        run.asked = Default::default();
    }
    let invocation = at_work(run)?;
    invocation.rounds.extend(reply.map(|reply| Round { reply: Arc::clone(&reply), calls: Vec::new() }));
    invocation.rounds.last_mut().ok_or_else(|| "no model asked for a tool".to_owned())
}

pub(super) fn open_call<'a>(run: &'a mut NodeRun, id: &str) -> Result<&'a mut Call, String> {
    let call = match (run.invocation.is_some(), run.map.is_some()) {
        (true, _) => at_work(run)?.call_mut(id),
        (false, true) => run.map.as_deref_mut().and_then(|map| map::call(map, id)),
        (false, false) => run.effect.as_deref_mut().filter(|call| call.id == id),
    };
    call.filter(|call| call.outcome.is_none()).ok_or_else(|| NO_SUCH_CALL.to_owned())
}

/// Whether the node and its calls leave anything open.
pub(super) fn settled(state: &RunState, node: &NodeId) -> Result<usize, String> {
    let node = active_node(state, node)?;
    at_rest(state, node)?;
    match state.open_calls(node).first() {
        None => Ok(node),
        Some(_) => Err("a call of its own is open".to_owned()),
    }
}
