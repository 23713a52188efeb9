//! Bounds on a whole run: how long it lasts, how many nodes it starts, how many turns its supervisor takes. Whoever is
//! over one says so before the run fails.

use baton_model::event::{CapBreached, CapKind};
use baton_model::{Draft, Event, Fault, Timestamp, code};

use super::ending;
use crate::plan::Kind;
use crate::state::RunState;

/// The bound on the run's whole duration.
pub(super) fn out_of_time(state: &RunState, at: Timestamp) -> Option<Vec<Draft>> {
    let start = state.start.as_ref()?;
    let limit = start.event.private.max_duration_ms;
    let observed = at.millis_since(start.at);
    if observed <= limit {
        return None;
    }
    let breach =
        CapBreached { kind: CapKind::RunDuration, limit: limit.into(), observed: observed.into(), node_id: None };
    let fault = Fault::new(code::RUN_TIMEOUT, format!("The run lasted longer than its limit of {limit} ms."))
        .with("limitMs", limit)
        .with("observedMs", observed);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, None, None));
    Some(drafts)
}

/// The bound on node starts, when this would be one too many after `earlier` ones in the same step.
pub(super) fn too_many_starts(state: &RunState, node: usize, earlier: u64) -> Option<Vec<Draft>> {
    let limit = state.start.as_ref()?.event.private.max_node_executions;
    let observed = state.executions + earlier + 1;
    if observed <= limit {
        return None;
    }
    let node_id = state.plan.nodes[node].id.clone();
    let (kind, node_id) = (CapKind::NodeExecutions, Some(node_id));
    let breach = CapBreached { kind, limit: limit.into(), observed: observed.into(), node_id };
    let fault = Fault::new(code::RECURSION_LIMIT_EXCEEDED, format!("The run wanted more than {limit} node starts."))
        .with("limit", limit)
        .with("observed", observed);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, Some(node), None));
    Some(drafts)
}

/// The bound on turns, when a supervisor's next one would be too many.
pub(super) fn too_many_turns(state: &RunState, node: usize) -> Option<Vec<Draft>> {
    let turn = state.turns + 1;
    let limit = state.start.as_ref()?.event.private.max_loop_iterations;
    if turn <= limit || !matches!(state.plan.nodes[node].kind, Kind::Supervisor(_)) {
        return None;
    }
    let node_id = Some(state.plan.nodes[node].id.clone());
    let breach = CapBreached { kind: CapKind::LoopIterations, limit: limit.into(), observed: turn.into(), node_id };
    let fault = Fault::new(code::LOOP_LIMIT_EXCEEDED, format!("The supervisor wanted more than {limit} turns."))
        .with("iteration", turn)
        .with("limit", limit);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, Some(node), None));
    Some(drafts)
}
