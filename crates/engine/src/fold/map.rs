//! A map, folded: item by item.

use baton_model::event::{MapItemCompleted, MapItemFailed, MapItemRetried, MapItemStarted, MapStarted, MapStopping};
use baton_model::{NodeId, Record, RunStatus};

use super::children::{add_child, bury, see};
use super::lookup::active_node;
use crate::invocation::Call;
use crate::plan::Kind;
use crate::state::{Child, ItemEnd, ItemError, ItemRun, ItemWork, MapRun, Planned, RunState};

pub(super) fn started(state: &mut RunState, event: &MapStarted) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let facts = &event.private;
    if facts.items.len() != event.count as usize {
        return Err("the list is not the one that was counted".to_owned());
    }
    let run = &mut state.nodes[node];
    if run.map.is_some() {
        return Err("the list is known already".to_owned());
    }
    run.map = Some(Box::new(MapRun::new(facts.items.clone(), facts.tool.as_deref().cloned())));
    Ok(())
}

fn under_way<'a>(state: &'a mut RunState, node: &NodeId) -> Result<(usize, &'a mut MapRun), String> {
    let node = active_node(state, node)?;
    let map = state.nodes[node].map.as_deref_mut().ok_or("no list is being gone through")?;
    Ok((node, map))
}

/// A tool is called for an item.
pub(super) fn called(
    state: &mut RunState,
    node: usize,
    record: &Record,
    item: Option<u32>,
    call: Call,
) -> Result<(), String> {
    let deadline = item_timeout(state, node).map(|ms| record.at.plus_millis(ms));
    let map = state.nodes[node].map.as_deref_mut().ok_or("no list is being gone through")?;
    map.begin(item.ok_or("the call is for no item")?, ItemWork::Call(Box::new(call)), deadline)
}

pub(super) fn item_timeout(state: &RunState, node: usize) -> Option<u64> {
    match &state.plan.nodes[node].kind {
        Kind::Map(map) => map.item_timeout_ms,
        _ => None,
    }
}

pub(super) fn item_started(state: &mut RunState, record: &Record, event: &MapItemStarted) -> Result<(), String> {
    let (node, _) = under_way(state, &event.node_id)?;
    let plan = event.private.child.as_deref().ok_or("the child is missing")?;
    let child = add_child(
        state,
        Child {
            plan: plan.clone(),
            node,
            status: RunStatus::Pending,
            dispatched: false,
            live: true,
            planned: Planned { seq: record.seq, at: record.at },
            remote: None,
            iteration: 0,
            worker: None,
            error: None,
        },
    );
    let (_, map) = under_way(state, &event.node_id)?;
    map.begin(event.index, ItemWork::Child(child), None)
}

pub(super) fn item_completed(state: &mut RunState, event: &MapItemCompleted) -> Result<(), String> {
    let (_, map) = under_way(state, &event.node_id)?;
    let item = map.under_way.get_mut(&event.index).ok_or("nobody works on the item")?;
    let value = match (&event.private.value, item.call_mut()) {
        (Some(value), None) => value.clone(),
        // What the tool made of it is on the record of its return, and need not be there twice.
        (None, Some(call)) => match call.outcome.take() {
            Some(outcome) if outcome.error.is_none() => outcome.value,
            _ => return Err("the call has not come back with a result".to_owned()),
        },
        _ => return Err("the result is missing".to_owned()),
    };
    let run = map.end(event.index, ItemEnd::Done(value))?;
    see(state, event.private.child_memory);
    let_go(state, run.as_ref(), RunStatus::Completed);
    Ok(())
}

pub(super) fn item_failed(state: &mut RunState, event: &MapItemFailed) -> Result<(), String> {
    let (_, map) = under_way(state, &event.node_id)?;
    let run = map.end(event.index, ItemEnd::Failed(ItemError::of(&event.error)))?;
    let_go(state, run.as_ref(), RunStatus::Failed);
    Ok(())
}

pub(super) fn item_retried(state: &mut RunState, event: &MapItemRetried) -> Result<(), String> {
    let (_, map) = under_way(state, &event.node_id)?;
    let item = map.under_way.get_mut(&event.index).ok_or("nobody works on the item")?;
    let next =
        ItemRun { attempt: event.attempt, work: ItemWork::Waits, wake_at: event.private.wake_at, deadline: None };
    let run = std::mem::replace(item, next);
    let_go(state, Some(&run), RunStatus::Failed);
    Ok(())
}

/// Time limits bound how long items are worked on, not how long what is under way takes to stop.
pub(super) fn stopping(state: &mut RunState, event: &MapStopping) -> Result<(), String> {
    let (node, map) = under_way(state, &event.node_id)?;
    map.stopping = Some(event.error.clone());
    state.nodes[node].deadline = None;
    Ok(())
}

/// Nobody waits for the item's child any more. What it was given is on the log.
fn let_go(state: &mut RunState, run: Option<&ItemRun>, status: RunStatus) {
    if let Some(child) = run.and_then(ItemRun::child) {
        if state.children[child].live {
            state.children[child].status = status;
            bury(state, child);
        }
        state.children[child].plan.inputs = serde_json::Map::new();
    }
}

/// The call of this id, and the item it is for.
pub(super) fn call<'a>(map: &'a mut MapRun, id: &str) -> Option<&'a mut Call> {
    map.call_mut(id).and_then(ItemRun::call_mut)
}

/// Whoever has to find out what became of a call gets the time it takes.
pub(super) fn disarm(map: &mut MapRun, id: &str) {
    if let Some(item) = map.call_mut(id) {
        item.deadline = None;
    }
}

/// The time of a call's item begins anew.
pub(super) fn rearm(state: &mut RunState, node: usize, id: &str, at: baton_model::Timestamp) {
    let deadline = item_timeout(state, node).map(|ms| at.plus_millis(ms));
    if let Some(item) = state.nodes[node].map.as_deref_mut().and_then(|map| map.call_mut(id)) {
        item.deadline = deadline;
    }
}
