//! The run's own beginning and end.

use std::sync::Arc;

use baton_model::event::RunStarted;
use baton_model::{Record, RunStatus};

use crate::channel::ChannelState;
use crate::state::{Phase, Ready, RunState, Started, Verdict};

pub(super) fn start(state: &mut RunState, record: &Record, event: &RunStarted) -> Result<(), String> {
    if state.phase != Phase::New {
        return Err("the run has already started".to_owned());
    }
    state.phase = Phase::Active;
    state.read_version.version = event.private.versions.memory;
    state.workspace = event.private.versions.workspace;
    state.variables = event.private.variables.clone();
    let plan = Arc::clone(&state.plan);
    for (name, channel) in &plan.definition.channels {
        if let Some(default) = &channel.default {
            state.channels.insert(name.clone(), ChannelState::Single(default.clone()));
        }
    }
    state.count_bytes();
    state.start = Some(Arc::new(Started { at: record.at, event: event.clone() }));
    state.ready.extend(plan.entries.iter().map(|&node| Ready { node, verdict: Verdict::Run }));
    Ok(())
}

pub(super) fn end(state: &mut RunState, record: &Record, status: RunStatus) -> Result<(), String> {
    if let Some(child) = state.live_children().find(|child| child.dispatched) {
        return Err(format!("child {} has not ended", child.plan.run));
    }
    state.phase = Phase::Ended { status, at: record.at };
    state.ready.clear();
    state.active.clear();
    state.interrupts.clear();
    Ok(())
}
