//! What a map learns about the runs that work on its items. Saying the same thing twice changes nothing.

use baton_model::event::MapItemCompletedFacts;
use baton_model::{Draft, Fault, RunId, Timestamp, code};

use super::{child_records, map_item};
use crate::command::ChildOutcome;
use crate::plan::MapStep;
use crate::state::{Child, ItemEnd, RunState};

/// The item's run could not be created, or ended badly.
pub(super) fn failed(state: &RunState, step: &MapStep, child: &Child, fault: Fault, at: Timestamp) -> Vec<Draft> {
    let Some((index, attempt)) = item_of(state, child) else { return Vec::new() };
    map_item::failed(state, child.node, step, index, attempt, fault, known(child), at)
}

/// The run ends, and the item's run has ended with it.
pub(super) fn abandoned(state: &RunState, step: &MapStep, child: &Child) -> Vec<Draft> {
    let Some((index, attempt)) = item_of(state, child) else { return Vec::new() };
    let fault = Fault::new(code::CHILD_CANCELLED, "The run ended while the item was being worked on.");
    map_item::failed_for_good(state, child.node, step, index, attempt, fault, known(child))
        .into_iter()
        .take(1)
        .collect()
}

/// The item's run is complete.
pub(super) fn completed(
    state: &RunState,
    step: &MapStep,
    child: &Child,
    outcome: &ChildOutcome,
    at: Timestamp,
) -> Vec<Draft> {
    let Some(map) = state.nodes[child.node].map.as_deref() else { return Vec::new() };
    let Some((index, attempt)) = item_of(state, child) else { return Vec::new() };
    let made = step.made(&outcome.variables).and_then(|value| {
        map_item::room(state, step, map, &ItemEnd::Done(value.clone()))?;
        Ok(value)
    });
    match made {
        Ok(value) => {
            let child_memory = child_records::seen(child, outcome);
            let private = MapItemCompletedFacts { value: Some(value), child_memory };
            vec![map_item::completed(state, child.node, index, known(child).cloned(), private)]
        }
        Err(fault) => map_item::failed(state, child.node, step, index, attempt, fault, known(child), at),
    }
}

/// A run that was refused has only a plan.
fn known(child: &Child) -> Option<&RunId> {
    Some(&child.plan.run).filter(|_| child.dispatched)
}

fn item_of(state: &RunState, child: &Child) -> Option<(u32, u32)> {
    let place = state.live.iter().copied().find(|&place| state.children[place].plan.run == child.plan.run)?;
    let (index, item) = state.nodes[child.node].map.as_deref()?.item_of(place)?;
    Some((index, item.attempt))
}
