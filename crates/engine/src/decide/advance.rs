//! Going on: what is due fires, what is ready runs, and when nothing is left the run completes. One step per call, so
//! that the shell can interleave runs and bound how far one gets ahead of the disk.

use baton_model::event::{CapBreached, CapKind, Ending, NodeSkipped, OutputChunk, RunCompleted};
use baton_model::{Draft, Event, Fault, NodeStatus, Timestamp, code};
use serde_json::{Map, Value, json};

use super::{budget, ending, envelope_calls, model_call, resolve, tool, unknown_outcome, visit, worker_batch};
use crate::nodes::{Done, Kind, chunks};
use crate::state::{Phase, RunState, Verdict};

pub(super) fn advance(state: &RunState, at: Timestamp) -> Vec<Draft> {
    match &state.phase {
        Phase::New | Phase::Ended { .. } => return Vec::new(),
        Phase::Ending(end @ (Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_))) => {
            return if ending::live_children(state) { Vec::new() } else { vec![ending::terminal(end)] };
        }
        Phase::Active | Phase::Paused { .. } | Phase::Ending(Ending::Paused(_)) => {}
    }
    if let Some(drafts) = out_of_time(state, at) {
        return drafts;
    }
    if matches!(state.phase, Phase::Paused { .. }) {
        return Vec::new();
    }
    if let Some(draft) = budget::reserve(state) {
        return vec![draft];
    }
    // Before anything that is due: an answer that is on the log came in time.
    if let Some(node) = state.replied() {
        return model_call::judged(state, node, at);
    }
    if let Some((node, outcome)) = state.returned() {
        return tool::judged(state, node, outcome, at);
    }
    if let Some((node, call)) = state.doubtful_call() {
        return unknown_outcome::handled(state, node, call, at);
    }
    if let Some((node, call)) = state.open_envelope() {
        return envelope_calls::handled(state, node, call, at);
    }
    if let Some(drafts) = due(state, at) {
        return drafts;
    }
    if let Some(drafts) = worker_batch::advance(state, at) {
        return drafts;
    }
    if let Phase::Ending(Ending::Paused(request)) = &state.phase {
        return if state.is_busy() { Vec::new() } else { vec![Event::from(request.clone()).into()] };
    }
    if let Some(node) = state.refining() {
        return visit::begin(state, node, state.nodes[node].attempt + 1, false, at);
    }
    match state.next_ready() {
        Some(ready) => match ready.verdict {
            Verdict::Run => visit::begin(state, ready.node, 0, false, at),
            Verdict::Again { broken } => visit::begin(state, ready.node, 0, broken, at),
            Verdict::Skip => vec![skipped(state, ready.node, "trigger-rule")],
        },
        None if state.active.is_empty() => {
            vec![Event::from(RunCompleted { outputs: outputs(state), reason: None }).into()]
        }
        None => Vec::new(),
    }
}

pub(super) fn skipped(state: &RunState, node: usize, reason: &str) -> Draft {
    let node_id = state.plan.nodes[node].id.clone();
    Event::from(NodeSkipped { node_id, reason: Some(reason.to_owned()) }).into()
}

/// The bound on the run's whole duration.
pub(super) fn out_of_time(state: &RunState, at: Timestamp) -> Option<Vec<Draft>> {
    let start = state.start.as_ref()?;
    let limit = start.event.private.max_duration_ms;
    let observed = at.millis_since(start.at);
    if observed <= limit {
        return None;
    }
    let breach =
        CapBreached { kind: CapKind::RunDuration, limit: limit.into(), observed: observed.into(), node_id: None };
    let fault = Fault::new(code::RUN_TIMEOUT, format!("The run lasted longer than its limit of {limit} ms."))
        .with("limitMs", limit)
        .with("observedMs", observed);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, None, None));
    Some(drafts)
}

/// The earliest timer that has come due, node by node.
fn due(state: &RunState, at: Timestamp) -> Option<Vec<Draft>> {
    let passed = |instant: Option<Timestamp>| instant.is_some_and(|instant| instant <= at);
    let draining = matches!(state.phase, Phase::Ending(Ending::Paused(_)));
    state.active.iter().find_map(|&node| {
        let run = &state.nodes[node];
        if passed(run.deadline) {
            let doubtful = unknown_outcome::overdue(state, node);
            if !doubtful.is_empty() {
                return Some(doubtful);
            }
            let limit = state.plan.nodes[node].timeout_ms.unwrap_or(0);
            let fault = Fault::new(code::NODE_TIMEOUT, format!("The node took longer than {limit} ms."));
            let mut drafts = resolve::withdraw(state, node);
            drafts.extend(visit::fail(state, node, fault, at));
            return Some(drafts);
        }
        if let Some(interrupt) = state.interrupts.get(&node).filter(|interrupt| passed(interrupt.expires_at)) {
            return Some(resolve::expire(state, node, interrupt, at));
        }
        if !passed(run.wake_at) {
            return None;
        }
        match run.status() {
            NodeStatus::Retrying if draining => None,
            NodeStatus::Retrying => Some(visit::begin(state, node, run.attempt + 1, false, at)),
            _ => Some(woken(state, node, at)),
        }
    })
}

/// A sleeping node's instant has come.
fn woken(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    match &state.plan.nodes[node].kind {
        Kind::StreamText(_) => stream(state, node, at),
        _ => visit::complete(state, node, Done::default(), at),
    }
}

/// Emits the chunks that are due, and completes after the last.
pub(super) fn stream(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    let run = &state.nodes[node];
    let Some(plan) = chunks(state.configurable().get("mockProvider")) else { return Vec::new() };
    let since = at.millis_since(run.started_at);
    let due = since.checked_div(plan.delay_ms).map_or(plan.tokens.len(), |n| n as usize).min(plan.tokens.len());
    emit(state, node, run.attempt, &plan, run.chunks..due, at)
}

/// These chunks of a stream as drafts, and its completion after the last.
pub(super) fn emit(
    state: &RunState,
    node: usize,
    attempt: u32,
    plan: &crate::nodes::Chunks,
    range: std::ops::Range<usize>,
    at: Timestamp,
) -> Vec<Draft> {
    let count = plan.tokens.len();
    let end = range.end;
    let mut drafts: Vec<Draft> = range
        .map(|i| {
            let is_last = i + 1 == count;
            let event = OutputChunk {
                node_id: state.plan.nodes[node].id.clone(),
                run_id: state.run.clone(),
                chunk: plan.tokens[i].clone(),
                is_last,
                meta: is_last.then(|| plan.meta.clone()),
            };
            Event::from(event).into()
        })
        .collect();
    if end >= count {
        let outputs = [("text".to_owned(), json!(plan.tokens.concat()))].into_iter().collect();
        drafts.extend(visit::finish(state, node, attempt, Done::with(outputs), at));
    }
    drafts
}

/// The run's result: what its `core.end` nodes received, else what its primary nodes produced.
pub(super) fn outputs(state: &RunState) -> Option<Value> {
    let of = |wanted: &dyn Fn(usize) -> bool| {
        let mut all = Map::new();
        for (node, run) in state.nodes.iter().enumerate() {
            if run.status() == NodeStatus::Completed && wanted(node) {
                all.extend(run.outputs.clone());
            }
        }
        (!all.is_empty()).then_some(Value::Object(all))
    };
    of(&|node| matches!(state.plan.nodes[node].kind, Kind::End)).or_else(|| of(&|node| state.plan.nodes[node].primary))
}
