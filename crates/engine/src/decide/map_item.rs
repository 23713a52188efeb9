//! One item of a map: begun, judged, tried again, done or failed.

use baton_model::event::{
    ChildPlan, MapItemCompleted, MapItemCompletedFacts, MapItemFailed, MapItemRetried, MapItemRetriedFacts,
    MapItemStarted, MapItemStartedFacts, REDACTED,
};
use baton_model::{Draft, Event, Fault, RunId, Timestamp, ToolOutcome, ToolUse, WorkflowId, code, json as sizes};
use serde_json::{Map, Value};

use super::inputs::inputs;
use super::node_records::spoken;
use super::{finish, map_records, open_calls, tool_call, tool_records};
use crate::depth;
use crate::eval_context::{EvalContext, ItemView};
use crate::invocation::call_id;
use crate::nodes::wrong_answer;
use crate::plan::{MapStep, OnItemError, Work};
use crate::size;
use crate::state::{ItemEnd, ItemError, ItemRun, MapRun, RunState};

/// What the workflow that is one agent is called; the agent's id follows.
const AGENT: &str = "agent:";
/// Children of further attempts are counted from here, so that no two have the same place. More than a list has items.
const ATTEMPT_STRIDE: u32 = 1_000_000;

/// The work on an item begins. What cannot even be asked for has failed.
pub(super) fn begin(
    state: &RunState,
    node: usize,
    step: &MapStep,
    map: &MapRun,
    index: u32,
    attempt: u32,
    at: Timestamp,
) -> Vec<Draft> {
    match asked(state, node, step, map, index, attempt, at) {
        Ok(drafts) => drafts,
        Err(fault) => failed_for_good(state, node, step, index, attempt, fault, None),
    }
}

fn asked(
    state: &RunState,
    node: usize,
    step: &MapStep,
    map: &MapRun,
    index: u32,
    attempt: u32,
    at: Timestamp,
) -> Result<Vec<Draft>, Fault> {
    let (plan, visit) = (&state.plan.nodes[node], state.nodes[node].visit);
    // The node's ports are read for those who look at them: one may carry the whole list.
    let reads = step.given().expression().is_some_and(|expression| expression.reads("inputs"));
    let ports = if reads { inputs(state, node, at)? } else { Map::new() };
    let mut context = EvalContext::new(state, node, visit, attempt, ports, false, at);
    let value = map.items.get(index as usize).ok_or_else(wrong_answer)?;
    context.item = Some(ItemView { value, index, name: step.name.as_deref() });
    match &step.work {
        Work::Tool { arguments, .. } => {
            let found = map.tool.as_deref().ok_or_else(wrong_answer)?;
            let id = call_id(&plan.id, visit, attempt, 0, index as usize);
            let arguments = arguments.value(&context)?;
            depth::check("arguments", &arguments)?;
            let asked = ToolUse { id: plan.id.to_string(), name: found.spec.id.clone(), arguments };
            Ok(tool_call::announced(state, node, &id, asked, found, Some(index)))
        }
        Work::Agent { agent_id, .. } => {
            let workflow = WorkflowId::new(format!("{AGENT}{agent_id}"));
            child(state, node, index, attempt, workflow, step.child_inputs(&context)?)
        }
        Work::Workflow { workflow, .. } => {
            child(state, node, index, attempt, workflow.clone(), step.child_inputs(&context)?)
        }
    }
}

fn child(
    state: &RunState,
    node: usize,
    index: u32,
    attempt: u32,
    workflow: WorkflowId,
    inputs: Map<String, Value>,
) -> Result<Vec<Draft>, Fault> {
    let (plan, visit) = (&state.plan.nodes[node], state.nodes[node].visit);
    for (name, value) in &inputs {
        depth::check(name, value)?;
        size::one(name, sizes::size(value), state.bounds())?;
    }
    let run = state.run.child(&plan.id, visit, attempt.saturating_mul(ATTEMPT_STRIDE).saturating_add(index));
    // Other hosts know the primitives of the protocol.
    let cause = "core.subWorkflow".to_owned();
    let child = ChildPlan { run: run.clone(), workflow, cause, inputs, variables: Map::new(), isolated: false };
    let private = MapItemStartedFacts { child: Some(Box::new(child)) };
    Ok(vec![
        Event::from(MapItemStarted { node_id: plan.id.clone(), index, attempt, child_run_id: run, private }).into(),
    ])
}

/// An item's call has come back.
pub(super) fn judged(
    state: &RunState,
    node: usize,
    step: &MapStep,
    index: u32,
    item: &ItemRun,
    outcome: &ToolOutcome,
    at: Timestamp,
) -> Vec<Draft> {
    let Some(map) = state.nodes[node].map.as_deref() else { return Vec::new() };
    let objection = map.tool.as_deref().and_then(|found| tool_call::objection(state, node, found, outcome));
    let end = ItemEnd::Done(outcome.value.clone());
    match objection.or_else(|| room(state, step, map, &end).err()) {
        None => vec![completed(state, node, index, None, MapItemCompletedFacts::default())],
        Some(fault) => failed(state, node, step, index, item.attempt, fault, None, at),
    }
}

/// Whether the results have room for one more. A list whose results have none ends here, not after its last item.
pub(super) fn room(state: &RunState, step: &MapStep, map: &MapRun, end: &ItemEnd) -> Result<(), Fault> {
    let (bounds, bytes) = (state.bounds(), map.size_with(end));
    size::one("results", bytes, bounds)?;
    let kept = if step.into.is_some() { bytes.saturating_mul(2) } else { bytes };
    size::together(state.bytes.saturating_add(kept), bounds)
}

pub(super) fn completed(
    state: &RunState,
    node: usize,
    index: u32,
    child_run_id: Option<RunId>,
    private: MapItemCompletedFacts,
) -> Draft {
    let node_id = state.plan.nodes[node].id.clone();
    Event::from(MapItemCompleted { node_id, index, child_run_id, private }).into()
}

/// An item has failed: it is tried again if it has an attempt left.
#[expect(clippy::too_many_arguments, reason = "one judgement, made in several places")]
pub(super) fn failed(
    state: &RunState,
    node: usize,
    step: &MapStep,
    index: u32,
    attempt: u32,
    fault: Fault,
    child: Option<&RunId>,
    at: Timestamp,
) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let stops = state.nodes[node].map.as_deref().is_none_or(|map| map.stopping.is_some());
    if stops || attempt >= plan.max_retries || tool_call::is_hopeless(&fault) {
        return failed_for_good(state, node, step, index, attempt, fault, child);
    }
    let delay_ms = finish::retry_delay_ms(plan.retry_delay_ms, attempt);
    let event = MapItemRetried {
        node_id: plan.id.clone(),
        index,
        attempt: attempt + 1,
        delay_ms,
        last_error: shown(state, node, fault),
        private: MapItemRetriedFacts { place: spoken(state, node), wake_at: Some(at.plus_millis(delay_ms)) },
    };
    vec![Event::from(event).into()]
}

/// An item has failed for good, and the map with it unless failures are collected. Where the tree has nothing left to
/// spend, or the results have no room, no other item would do better.
pub(super) fn failed_for_good(
    state: &RunState,
    node: usize,
    step: &MapStep,
    index: u32,
    attempt: u32,
    fault: Fault,
    child: Option<&RunId>,
) -> Vec<Draft> {
    let Some(map) = state.nodes[node].map.as_deref() else { return Vec::new() };
    let error = shown(state, node, fault);
    let event = MapItemFailed {
        node_id: state.plan.nodes[node].id.clone(),
        index,
        error: error.clone(),
        attempts: attempt + 1,
        child_run_id: child.cloned(),
        private: spoken(state, node),
    };
    let mut drafts: Vec<Draft> = vec![Event::from(event).into()];
    let end = ItemEnd::Failed(ItemError::of(&error));
    let stops = step.on_item_error == OnItemError::Fail
        || finish::is_spent(&error)
        || has_no_room(&error)
        || room(state, step, map, &end).is_err();
    if stops && map.stopping.is_none() {
        drafts.push(map_records::stopping(state, node, map_records::failed_at(state, node, index, &error)));
    }
    drafts
}

/// The results together are too large, not just this item.
fn has_no_room(fault: &Fault) -> bool {
    let details = fault.details.as_ref();
    let told = |key: &str| details.and_then(|details| details.get(key)).and_then(Value::as_str);
    fault.code == code::EXPRESSION_TOO_COSTLY
        && (told("name") == Some("results") || told("bound") == Some("max_run_bytes"))
}

/// What is shown of a fault: nothing of what somebody said about something sensitive.
fn shown(state: &RunState, node: usize, fault: Fault) -> Fault {
    if state.plan.nodes[node].sensitive { Fault { message: REDACTED.to_owned(), ..fault } } else { fault }
}

/// The time of an item's call is up. If it may have changed the world, it is in doubt; if it only reads, it has failed.
pub(super) fn out_of_time(state: &RunState, node: usize, map: &MapRun, at: Timestamp) -> Option<Vec<Draft>> {
    let late = |item: &&ItemRun| item.deadline.is_some_and(|deadline| deadline <= at);
    let call = map.under_way.values().filter(late).find_map(|item| item.call().filter(|call| call.is_wanted()))?;
    let open = state.open_call(node, &call.id)?;
    Some(match open.changes_the_world() {
        true => vec![open_calls::unknown(state, node, open, open_calls::policy(open), "The item's time was up.")],
        false => {
            let outcome = ToolOutcome::failed(code::NODE_TIMEOUT, "The item's time was up before the call came back.");
            vec![tool_records::ended(state, node, tool_records::SYSTEM, call, outcome)]
        }
    })
}
