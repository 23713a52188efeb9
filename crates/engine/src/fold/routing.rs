//! Where a settled node leads: edges open, close or fail, and every target whose fate is now certain is queued. Counts
//! over recorded edges only; no expression is evaluated here.

use std::sync::Arc;

use baton_model::NodeStatus;
use baton_model::workflow::TriggerRule;

use crate::plan::Plan;
use crate::state::{EdgeState, NodeRun, Ready, RunState, Verdict};

/// A new round: the body forgets its last one.
pub(super) fn reset_body(state: &mut RunState, plan: &Plan, head: usize) {
    let Some(shape) = &plan.nodes[head].loop_ else { return };
    for &node in &shape.body {
        let run = &mut state.nodes[node];
        let outputs = std::mem::take(&mut run.outputs);
        *run = NodeRun { visit: run.visit, earlier_visits: run.visit, outputs, ..NodeRun::default() };
        for &edge in &plan.nodes[node].outgoing {
            state.edges[edge] = EdgeState::Pending;
        }
    }
    for &edge in &plan.nodes[head].outgoing {
        state.edges[edge] = EdgeState::Pending;
    }
}

pub(super) fn set_edges(state: &mut RunState, node: usize, to: EdgeState) {
    let plan = Arc::clone(&state.plan);
    for &edge in &plan.nodes[node].outgoing {
        state.edges[edge] = to;
    }
    wake_targets(state, &plan, node);
}

/// Queues every target of `node` whose fate is now certain.
pub(super) fn wake_targets(state: &mut RunState, plan: &Plan, node: usize) {
    for &edge in &plan.nodes[node].outgoing {
        if state.edges[edge] == EdgeState::Pending || plan.edges[edge].pair {
            continue;
        }
        let target = plan.edges[edge].target;
        let verdict =
            if plan.edges[edge].back { loop_verdict(state, plan, target) } else { verdict(state, plan, target) };
        if let Some(verdict) = verdict
            && !state.ready.iter().any(|ready| ready.node == target)
        {
            state.ready.push_back(Ready { node: target, verdict });
        }
    }
}

fn loop_verdict(state: &RunState, plan: &Plan, head: usize) -> Option<Verdict> {
    let shape = plan.nodes[head].loop_.as_ref()?;
    let back = || shape.back_edges.iter().map(|&edge| state.edges[edge]);
    let done = state.nodes[head].looping && back().all(|edge| edge != EdgeState::Pending);
    done.then(|| Verdict::Again { broken: !back().any(|edge| edge == EdgeState::Open) })
}

/// What the target's trigger rules say, once that is certain. Edges with different rules must all be satisfied.
fn verdict(state: &RunState, plan: &Plan, target: usize) -> Option<Verdict> {
    if state.nodes[target].status() != NodeStatus::Pending {
        return None;
    }
    let incoming = &plan.nodes[target].incoming;
    let mut all_met = true;
    for rule in [
        TriggerRule::AllSuccess,
        TriggerRule::AnySuccess,
        TriggerRule::AllComplete,
        TriggerRule::NoneFailed,
        TriggerRule::AnyFailed,
    ] {
        let edges = || incoming.iter().filter(|&&edge| plan.edges[edge].rule == rule).map(|&edge| state.edges[edge]);
        if edges().next().is_none() {
            continue;
        }
        let settled = edges().all(|edge| edge != EdgeState::Pending);
        let any = |wanted: EdgeState| edges().any(|edge| edge == wanted);
        let met = match rule {
            TriggerRule::AllSuccess if any(EdgeState::Closed) || any(EdgeState::Failed) => Some(false),
            TriggerRule::AllSuccess | TriggerRule::AllComplete => settled.then_some(true),
            TriggerRule::AnySuccess if any(EdgeState::Open) => Some(true),
            TriggerRule::AnySuccess => settled.then_some(false),
            TriggerRule::NoneFailed if any(EdgeState::Failed) => Some(false),
            TriggerRule::NoneFailed => settled.then_some(true),
            TriggerRule::AnyFailed if any(EdgeState::Failed) => Some(true),
            TriggerRule::AnyFailed => settled.then_some(false),
        };
        match met {
            Some(false) => return Some(Verdict::Skip),
            Some(true) => {}
            None => all_met = false,
        }
    }
    all_met.then_some(Verdict::Run)
}

pub(super) fn unqueue(state: &mut RunState, node: usize) -> bool {
    match state.ready.iter().position(|ready| ready.node == node) {
        Some(position) => state.ready.remove(position).is_some(),
        None => false,
    }
}
