//! Taking over what a completed worker made.

use baton_model::event::ChainPhase;
use baton_model::{Draft, Timestamp};
use serde_json::{Map, Value};

use super::child_records::{chain, child_run};
use super::finish;
use super::writes::variable_changed;
use crate::orchestration::WorkerBatch;
use crate::plan::Dispatch;
use crate::state::RunState;

/// Takes a completed worker's outputs over: the parent's variables change, then the harvest says which.
pub(super) fn harvest(
    state: &RunState,
    batch: &WorkerBatch,
    dispatch: &Dispatch,
    worker: usize,
    outputs: &Map<String, Value>,
    at: Timestamp,
) -> Vec<Draft> {
    let harvested = dispatch.harvest(&batch.workers[worker].id, outputs, state.bounds()).and_then(|harvested| {
        state.room_for(harvested.iter().map(|(name, value)| (name.as_str(), value)))?;
        Ok(harvested)
    });
    let harvested = match harvested {
        Ok(harvested) => harvested,
        Err(fault) => return finish::fail(state, batch.node, fault, at),
    };
    let mut drafts: Vec<Draft> =
        harvested.iter().filter_map(|(name, value)| variable_changed(state, Some(batch.node), name, value)).collect();
    let mut event = chain(state, batch, worker, ChainPhase::OutputHarvested);
    event.child_run_id = child_run(state, batch, worker);
    event.harvested_keys = Some(harvested.into_iter().map(|(name, _)| name).collect());
    // Of what the child made, even if a human edited what is taken over.
    event.attestation = batch.workers[worker].attestation.clone();
    drafts.push(Draft { event: event.into(), causation: Some(batch.workers[worker].last_seq) });
    drafts
}
