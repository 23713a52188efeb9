//! Children on the log: who exists, who has ended, and how far each worker's handoff has come.

use std::sync::Arc;

use baton_model::event::{ChainEvent, ChainPhase, NodeDispatched};
use baton_model::{Fault, Record, RunId, RunStatus};

use super::lookup::active_node;
use crate::orchestration::Stage;
use crate::plan::Kind;
use crate::state::{Child, Planned, RunState};

pub(super) fn add_child(state: &mut RunState, child: Child) -> usize {
    let position = state.children.len();
    state.children.push(child);
    state.live.insert(position);
    position
}

/// What a child wrote is in sight now.
pub(super) fn see(state: &mut RunState, child_memory: Option<u64>) {
    state.read_version.version = state.read_version.version.max(child_memory.unwrap_or(0));
}

pub(super) fn bury(state: &mut RunState, child: usize) {
    state.children[child].live = false;
    state.live.remove(&child);
}

/// Looked up among those that have not ended, so that a long life does not make each step longer.
pub(super) fn live_position(state: &RunState, run: &RunId) -> Option<usize> {
    state.live.iter().copied().find(|&child| state.children[child].plan.run == *run)
}

/// A child exists. One on another host is known by its name over there from now on.
pub(super) fn dispatched(state: &mut RunState, event: &NodeDispatched) -> Result<(), String> {
    let remote = event.private.remote.as_ref();
    let planned = remote.map_or(&event.child_run_id, |remote| &remote.place);
    let position = live_position(state, planned).ok_or("no such child is expected")?;
    if let Err(place) = state.dispatched.binary_search(&position) {
        state.dispatched.insert(place, position);
    }
    let child = &mut state.children[position];
    child.dispatched = true;
    child.status = event.child_status;
    if let Some(remote) = remote {
        child.plan.run = event.child_run_id.clone();
        child.remote = Some(remote.clone());
    }
    Ok(())
}

pub(super) fn set_child_status(state: &mut RunState, run: &RunId, status: RunStatus) {
    if let Some(child) = live_position(state, run) {
        state.children[child].status = status;
        if status.is_terminal() {
            // Its node has something left to do, but not with it.
            bury(state, child);
        }
    }
}

/// A human refused the merge that is in question: the worker's outputs stay where they are.
pub(super) fn withhold(state: &mut RunState, node: usize) {
    let plan = Arc::clone(&state.plan);
    if let (Some(batch), Kind::Dispatch(dispatch)) = (&mut state.batch, &plan.nodes[node].kind)
        && batch.node == node
        && let Some(worker) = batch.awaiting_merge(dispatch)
    {
        batch.workers[worker].stage = Stage::Withheld;
    }
}

/// How many characters of a failed worker's code and message are kept. A run may have thousands of such workers, and
/// whoever wants the rest finds it on the log.
const CODE_CHARS: usize = 128;
const MESSAGE_CHARS: usize = 500;

/// What a run keeps of what a worker failed of.
fn told(error: &Fault) -> Fault {
    let cut = |text: &str, most: usize| match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    };
    Fault::new(cut(&error.code, CODE_CHARS), cut(&error.message, MESSAGE_CHARS))
}

/// One step of one worker's handoff.
pub(super) fn chain(state: &mut RunState, record: &Record, event: &ChainEvent) -> Result<(), String> {
    let worker = event.private.ordinal as usize;
    let node = active_node(state, &event.private.node_id)?;
    let child = match (&event.phase, &event.private.child) {
        (ChainPhase::DispatchBegan, Some(plan)) => {
            let iteration = state.batch.as_ref().map_or(0, |batch| batch.iteration);
            Some(add_child(
                state,
                Child {
                    plan: plan.clone(),
                    node,
                    status: RunStatus::Pending,
                    dispatched: false,
                    live: true,
                    planned: Planned { seq: record.seq, at: record.at },
                    remote: None,
                    iteration,
                    worker: Some(event.private.ordinal),
                    error: None,
                },
            ))
        }
        _ => state.batch.as_ref().and_then(|batch| batch.workers.get(worker)).and_then(|worker| worker.child),
    };
    let (stage, status) = match event.phase {
        ChainPhase::DispatchBegan => (Stage::Dispatching, None),
        ChainPhase::DispatchSucceeded => (Stage::Running, Some(RunStatus::Running)),
        ChainPhase::DispatchFailed => (Stage::Refused, Some(RunStatus::Failed)),
        ChainPhase::ChildCompleted => (Stage::Completed, Some(RunStatus::Completed)),
        ChainPhase::ChildFailed => (Stage::Failed, Some(RunStatus::Failed)),
        ChainPhase::ChildCancelled => (Stage::Cancelled, Some(RunStatus::Cancelled)),
        ChainPhase::OutputHarvested => (Stage::Harvested, None),
    };
    let failed = matches!(event.phase, ChainPhase::DispatchFailed | ChainPhase::ChildFailed);
    let error = event.error.as_ref().filter(|_| failed).map(|error| Arc::new(told(error)));
    if let (Some(child), Some(status)) = (child, status) {
        state.children[child].status = status;
        state.children[child].error = error.clone();
        if status.is_terminal() {
            bury(state, child);
        }
    }
    let batch = state.batch.as_mut().ok_or("no workers are under way")?;
    let handoff = batch.workers.get_mut(worker).ok_or("the decision names no such worker")?;
    handoff.stage = stage;
    handoff.child = child;
    handoff.last_seq = record.seq;
    handoff.error = error;
    if let Some(keys) = &event.harvested_keys {
        handoff.harvested = keys.clone();
    }
    if let Some(outputs) = &event.private.outputs {
        handoff.outputs = outputs.clone();
        handoff.attestation = event.private.attestation.clone();
    }
    match event.phase {
        ChainPhase::DispatchFailed
        | ChainPhase::ChildCompleted
        | ChainPhase::ChildFailed
        | ChainPhase::ChildCancelled => batch.ended.push(worker),
        ChainPhase::OutputHarvested => handoff.outputs = serde_json::Map::new(),
        ChainPhase::DispatchBegan | ChainPhase::DispatchSucceeded => {}
    }
    Ok(())
}
