//! Cancel, pause, resume.

use baton_model::event::{
    DrainPolicy, Ending, NodeStarted, NodeStartedFacts, RunCancelled, RunEnding, RunPaused, RunResumed,
};
use baton_model::{Draft, Event, NodeStatus, RunId, RunStatus, Timestamp, code};

use serde_json::{Map, Value};

use super::{caps, ending, writes};
use crate::command::{Refusal, RefusalKind};
use crate::state::{Phase, RunState};

/// Cancelling what has ended or is being cancelled changes nothing.
pub(super) fn cancel(state: &RunState, reason: Option<&str>, by: Option<&str>, parent: Option<&RunId>) -> Vec<Draft> {
    match &state.phase {
        Phase::New
        | Phase::Ended { .. }
        | Phase::Ending(Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_)) => Vec::new(),
        Phase::Active | Phase::Paused { .. } | Phase::Ending(Ending::Paused(_)) => {
            let cancelled = RunCancelled {
                reason: reason.map(str::to_owned),
                cancelled_by: by.map(str::to_owned),
                parent_run_id: parent.cloned(),
            };
            ending::end(state, Ending::Cancelled(cancelled), "run-cancelled", None)
        }
    }
}

/// Changes variables of a run that has not ended.
pub(super) fn set_variables(state: &RunState, variables: &Map<String, Value>) -> Result<Vec<Draft>, Refusal> {
    if matches!(state.phase, Phase::New | Phase::Ended { .. }) {
        return Ok(Vec::new());
    }
    let given = variables.iter().map(|(name, value)| (name.as_str(), value));
    state.room_for(given).map_err(|fault| Refusal { kind: RefusalKind::Invalid, fault })?;
    Ok(variables.iter().filter_map(|(name, value)| writes::variable_changed(state, None, name, value)).collect())
}

pub(super) fn pause(state: &RunState, reason: Option<&str>, drain: DrainPolicy) -> Result<Vec<Draft>, Refusal> {
    if state.status() != RunStatus::Running || state.phase != Phase::Active {
        return Err(wrong_status(state, "Only a running run can be paused"));
    }
    let paused = RunPaused { reason: reason.map(str::to_owned), drain_policy: drain };
    Ok(vec![if state.is_busy() && drain == DrainPolicy::DrainCurrentNode {
        Event::from(RunEnding { ending: Ending::Paused(paused) }).into()
    } else {
        Event::from(paused).into()
    }])
}

/// What slept when the run was paused gets a fresh attempt; children went on by themselves.
pub(super) fn resume(state: &RunState, reason: Option<&str>, at: Timestamp) -> Result<Vec<Draft>, Refusal> {
    let mut drafts: Vec<Draft> = vec![Event::from(RunResumed { reason: reason.map(str::to_owned) }).into()];
    let paused_at = match &state.phase {
        Phase::Paused { at, .. } => at,
        // Whoever asked for the pause was told that the run is paused, so it may ask for the opposite at once. Nothing
        // has stopped yet, so nothing is begun anew.
        Phase::Ending(Ending::Paused(_)) if state.rule() >= 4 => return Ok(drafts),
        _ => return Err(wrong_status(state, "Only a paused run can be resumed")),
    };
    let mut starts = 0;
    for &node in &state.active {
        let run = &state.nodes[node];
        let (NodeStatus::Running, Some(wake_at)) = (run.status(), run.wake_at) else { continue };
        if let Some(breach) = caps::too_many_starts(state, node, starts) {
            drafts.extend(breach);
            break;
        }
        starts += 1;
        let plan = &state.plan.nodes[node];
        let whole = wake_at.millis_since(run.started_at);
        let facts = NodeStartedFacts {
            visit: run.visit,
            wake_at: Some(at.plus_millis(whole)),
            deadline: run.deadline.map(|deadline| at.plus_millis(deadline.millis_since(*paused_at))),
            ..NodeStartedFacts::default()
        };
        let event = NodeStarted {
            node_id: plan.id.clone(),
            type_id: plan.type_id.clone(),
            attempt: run.attempt + 1,
            private: facts,
        };
        drafts.push(Event::from(event).into());
    }
    Ok(drafts)
}

fn wrong_status(state: &RunState, rule: &str) -> Refusal {
    let status = state.status();
    if let Phase::Ending(Ending::Paused(paused)) = &state.phase {
        let message = "This run is being paused: it stops when the node that is at work has ended.";
        // The status is what everybody else is told, who asks for the run.
        return Refusal::new(RefusalKind::Conflict, code::RUN_CONFLICT, message)
            .with("runStatus", status.as_str())
            .with("pausing", true)
            .with("drainPolicy", serde_json::json!(paused.drain_policy));
    }
    let refusal = Refusal::new(RefusalKind::Conflict, code::RUN_CONFLICT, format!("{rule}; this one is {status}."))
        .with("runStatus", status.as_str());
    match &state.phase {
        Phase::Paused { at, .. } => refusal.with("pausedAt", at.to_string()),
        _ => refusal,
    }
}
