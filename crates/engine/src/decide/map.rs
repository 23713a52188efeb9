//! A node that does the same for each item of a list. One step begins one item, or judges one; so an item costs the same
//! wherever in the list it stands, and a crash loses none that is done.
//!
//! ```text
//!  started ─► list known ─► item ─► called, or child ─► done ─────────────► next item … ─► completed
//!                                         │               │ failed
//!                                         └─ again ◄──────┼─► collected ──► next item …
//!                                                         └─► stopping: what is under way ends ─► failed
//! ```

use baton_model::event::{Ending, MapStarted, MapStartedFacts};
use baton_model::tool::{FoundTool, ToolOutcome};
use baton_model::{Draft, Event, Fault, Timestamp, code};
use serde_json::Map;

use super::inputs::inputs;
use super::{finish, map_item, map_records, open_calls, tool_records};
use crate::eval_context::EvalContext;
use crate::plan::{Items, Kind, MapStep};
use crate::state::{MapRun, Phase, RunState};

/// The list is read, once.
pub(super) fn began(
    state: &RunState,
    node: usize,
    step: &MapStep,
    tool: Option<FoundTool>,
    at: Timestamp,
) -> Result<Vec<Draft>, Fault> {
    let run = &state.nodes[node];
    let ports = match &step.items {
        Items::Port | Items::Expression(_) => inputs(state, node, at)?,
        Items::List(_) | Items::Variable(_) => Map::new(),
    };
    let items = step.list(&EvalContext::new(state, node, run.visit, run.attempt, ports, false, at))?;
    let event = MapStarted {
        node_id: state.plan.nodes[node].id.clone(),
        count: u32::try_from(items.len()).unwrap_or(u32::MAX),
        max_concurrency: state.map_concurrency(node),
        private: MapStartedFacts { items, tool: tool.map(Box::new) },
    };
    Ok(vec![Event::from(event).into()])
}

/// The next thing that some map does by itself.
pub(super) fn advance(state: &RunState, at: Timestamp) -> Option<Vec<Draft>> {
    state.active.iter().find_map(|&node| {
        let Kind::Map(step) = &state.plan.nodes[node].kind else { return None };
        match state.nodes[node].map.as_deref() {
            Some(map) => go_on(state, node, step, map, at),
            None if step.tool().is_some() => None,
            None => {
                Some(began(state, node, step, None, at).unwrap_or_else(|fault| finish::fail(state, node, fault, at)))
            }
        }
    })
}

fn go_on(state: &RunState, node: usize, step: &MapStep, map: &MapRun, at: Timestamp) -> Option<Vec<Draft>> {
    // What there was no budget for is held back until somebody has decided.
    if state.nodes[node].over_budget.is_some() {
        return None;
    }
    if let Some((index, item, outcome)) = map.returned() {
        return Some(map_item::judged(state, node, step, index, item, outcome, at));
    }
    if let Some(drafts) = map_item::out_of_time(state, node, map, at) {
        return Some(drafts);
    }
    if let Some(fault) = &map.stopping {
        return (!map.is_busy()).then(|| finish::fail(state, node, fault.clone(), at));
    }
    if map.is_over() {
        return Some(finish::complete(state, node, step.done(map), at));
    }
    // While the run drains, or somebody is asked about a call, nothing else begins.
    if matches!(state.phase, Phase::Ending(Ending::Paused(_))) || state.interrupts.contains_key(&node) {
        return None;
    }
    if let Some((index, attempt)) = map.due(at) {
        return Some(map_item::begin(state, node, step, map, index, attempt, at));
    }
    let room = map.has_room(state.map_concurrency(node));
    room.then(|| map_item::begin(state, node, step, map, map.next, 0, at))
}

/// The node's time is up. Calls that may have changed the world are in doubt, those that only read are given up, and
/// children are ended; then the node fails.
pub(super) fn out_of_time(state: &RunState, node: usize) -> Vec<Draft> {
    let limit = state.plan.nodes[node].timeout_ms.unwrap_or(0);
    let mut drafts = open_calls::overdue(state, node);
    for open in state.open_calls(node).into_iter().filter(|open| !open.changes_the_world()) {
        let outcome = ToolOutcome::failed(code::NODE_TIMEOUT, "The node's time was up before the call came back.");
        drafts.push(tool_records::ended(state, node, tool_records::SYSTEM, open.call, outcome));
    }
    let fault = Fault::new(code::NODE_TIMEOUT, format!("The node took longer than {limit} ms."));
    drafts.push(map_records::stopping(state, node, fault));
    drafts
}
