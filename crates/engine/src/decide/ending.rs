//! How a run ends: what is still active is cancelled, children end before their parent, and then comes exactly one
//! terminal record.

use baton_model::event::{Ending, NodeCancelled, NodeFailed, RunEnding, RunFailed};
use baton_model::{Draft, Event, Fault, NodeId, NodeStatus};
use serde_json::{Map, Value};

use super::bracket::stop;
use crate::plan::Kind;
use crate::state::RunState;

/// Fails the run. `failed` is the node to blame; `settled` one whose own record already stands in this step.
pub(super) fn fail(state: &RunState, error: Fault, failed: Option<usize>, settled: Option<usize>) -> Vec<Draft> {
    let failed_node_id = failed.map(|node| state.plan.nodes[node].id.clone());
    end(state, Ending::Failed { error, failed_node_id }, "run-failed", settled)
}

/// Fails the run because nobody will ever answer the node it waits for.
pub(crate) fn give_up(state: &RunState, error: Fault) -> Vec<Draft> {
    give_up_on(state, state.active.first().copied(), error)
}

/// Fails this node and the run with it, whoever would have taken over.
pub(crate) fn give_up_at(state: &RunState, node: &NodeId, error: Fault) -> Vec<Draft> {
    let node = state.plan.index.get(node).copied().filter(|node| state.active.contains(node));
    give_up_on(state, node, error)
}

fn give_up_on(state: &RunState, node: Option<usize>, error: Fault) -> Vec<Draft> {
    let failed = node.map(|node| {
        let node_id = state.plan.nodes[node].id.clone();
        Event::from(NodeFailed { node_id, error: error.clone(), attempts: state.nodes[node].attempt + 1 }).into()
    });
    let stopped = node.into_iter().flat_map(|node| stop(state, node));
    stopped.chain(failed).chain(fail(state, error, node, node)).collect()
}

/// Ends the run this way, at once if no child is in the way.
pub(super) fn end(state: &RunState, ending: Ending, reason: &str, settled: Option<usize>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let mut waiting = false;
    for &node in state.active.iter().filter(|&&node| Some(node) != settled) {
        if state.has_live_child(node) && propagates(state, node) {
            waiting = true;
            continue;
        }
        drafts.extend(stop(state, node));
        let node_id = state.plan.nodes[node].id.clone();
        drafts.push(Event::from(NodeCancelled { node_id, reason: Some(reason.to_owned()) }).into());
    }
    drafts.push(if waiting { Event::from(RunEnding { ending }).into() } else { terminal(&ending) });
    drafts
}

/// The record that closes the log.
pub(super) fn terminal(ending: &Ending) -> Draft {
    match ending {
        Ending::Failed { error, failed_node_id } => {
            Event::from(RunFailed { error: error.clone(), failed_node_id: failed_node_id.clone() }).into()
        }
        Ending::Cancelled(cancelled) => Event::from(cancelled.clone()).into(),
        Ending::Paused(paused) => Event::from(paused.clone()).into(),
        Ending::Completed(completed) => Event::from(completed.clone()).into(),
    }
}

pub(super) fn live_children(state: &RunState) -> bool {
    state.live_children().next().is_some()
}

fn propagates(state: &RunState, node: usize) -> bool {
    match &state.plan.nodes[node].kind {
        Kind::SubWorkflow(call) => call.propagate_cancellation,
        _ => true,
    }
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
