//! Records about a child: that it exists, and where its handoff stands.

use baton_model::event::{
    Attestation, ChainEvent, ChainFacts, ChainPhase, NodeDispatched, NodeDispatchedFacts, RemoteRun,
};
use baton_model::{RunId, RunStatus, json as canonical};
use serde_json::{Map, Value};

use crate::command::ChildOutcome;
use crate::orchestration::WorkerBatch;
use crate::state::{Child, RunState};

pub(super) fn dispatched(state: &RunState, child: &Child, remote: Option<&RemoteRun>) -> NodeDispatched {
    let node_id = state.plan.nodes[child.node].id.clone();
    NodeDispatched {
        child_run_id: remote.map_or(&child.plan.run, |remote| &remote.run).clone(),
        child_workflow_id: child.plan.workflow.clone(),
        child_status: RunStatus::Running,
        private: NodeDispatchedFacts { node_id, remote: remote.cloned() },
    }
}

/// What a completed child wrote to the memory it shares with its parent is the parent's to see.
pub(super) fn seen(child: &Child, outcome: &ChildOutcome) -> Option<u64> {
    Some(outcome.memory).filter(|version| *version > 0 && !child.plan.isolated)
}

pub(super) fn chain(state: &RunState, batch: &WorkerBatch, worker: usize, phase: ChainPhase) -> ChainEvent {
    ChainEvent {
        phase,
        worker_id: batch.workers[worker].id.clone(),
        parent_run_id: state.run.clone(),
        child_run_id: None,
        harvested_keys: None,
        attestation: None,
        error: None,
        private: ChainFacts {
            node_id: state.plan.nodes[batch.node].id.clone(),
            ordinal: u32::try_from(worker).unwrap_or(u32::MAX),
            child: None,
            outputs: None,
            attestation: None,
        },
    }
}

/// The worker's child, if there ever was one: a worker that was refused has only a plan.
pub(super) fn child_run(state: &RunState, batch: &WorkerBatch, worker: usize) -> Option<RunId> {
    let child = &state.children[batch.workers[worker].child?];
    child.dispatched.then(|| child.plan.run.clone())
}

/// SHA-256 over the canonical form: the same outputs have the same checksum, whatever their key order.
pub(super) fn attestation(outputs: &Map<String, Value>) -> Attestation {
    let digest = baton_model::Digest::of_bytes(canonical::canonical(&Value::Object(outputs.clone())));
    Attestation { checksum: digest.to_string(), algorithm: "sha256".to_owned() }
}
