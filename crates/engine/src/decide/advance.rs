//! Going on: what is due fires, what is ready runs, and when nothing is left the run completes. One step per call, so
//! that the shell can interleave runs and bound how far one gets ahead of the disk.

use baton_model::event::{Ending, RunCompleted};
use baton_model::{Draft, Event, Fault, NodeStatus, Timestamp, code};

use super::{
    budget, caps, ending, envelope_calls, finish, human_answer, map, model_call, node_records, open_calls, resolve,
    tool, unknown_outcome, visit, worker_batch,
};
use crate::nodes::Done;
use crate::nodes::conformance;
use crate::plan::Kind;
use crate::state::{Phase, RunState, Verdict};

pub(super) fn advance(state: &RunState, at: Timestamp) -> Vec<Draft> {
    match &state.phase {
        Phase::New | Phase::Ended { .. } => return Vec::new(),
        Phase::Ending(end @ (Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_))) => {
            return if ending::live_children(state) { Vec::new() } else { vec![ending::terminal(end)] };
        }
        Phase::Active | Phase::Paused { .. } | Phase::Ending(Ending::Paused(_)) => {}
    }
    if let Some(drafts) = caps::out_of_time(state, at) {
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
    if let Some((node, call)) = state.unknown_call() {
        return unknown_outcome::handled(state, node, call, at);
    }
    if let Some((node, call)) = state.open_envelope() {
        return envelope_calls::handled(state, node, call, at);
    }
    if let Some(drafts) = due(state, at) {
        return drafts;
    }
    if let Some(drafts) = map::advance(state, at) {
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
            Verdict::Skip => vec![node_records::skipped(state, ready.node, "trigger-rule")],
        },
        None if state.active.is_empty() => {
            vec![Event::from(RunCompleted { outputs: ending::outputs(state), reason: None }).into()]
        }
        None => Vec::new(),
    }
}

/// The earliest timer that has come due, node by node.
fn due(state: &RunState, at: Timestamp) -> Option<Vec<Draft>> {
    let passed = |instant: Option<Timestamp>| instant.is_some_and(|instant| instant <= at);
    let draining = matches!(state.phase, Phase::Ending(Ending::Paused(_)));
    state.active.iter().find_map(|&node| {
        let run = &state.nodes[node];
        if passed(run.deadline)
            && let Some(_) = &run.map
        {
            return Some(map::out_of_time(state, node));
        }
        if passed(run.deadline) {
            let unknown_calls = open_calls::overdue(state, node);
            if !unknown_calls.is_empty() {
                return Some(unknown_calls);
            }
            let limit = state.plan.nodes[node].timeout_ms.unwrap_or(0);
            let fault = Fault::new(code::NODE_TIMEOUT, format!("The node took longer than {limit} ms."));
            let mut drafts = human_answer::withdraw(state, node);
            drafts.extend(finish::fail(state, node, fault, at));
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
        Kind::Test(test) if test.streams() => conformance::stream(state, node, at),
        _ => finish::complete(state, node, Done::default(), at),
    }
}
