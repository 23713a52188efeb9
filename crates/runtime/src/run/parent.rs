//! What a parent hears of its children: that they ended, and with what, or that they wait for somebody.

use std::collections::VecDeque;

use baton_engine::{ChildOutcome, Command, RunState};
use baton_model::RunStatus;
use baton_store::RunRow;

use crate::run::live::LiveRun;
use crate::run::message::Message;
use crate::run::stepper::RunStepper;
use crate::run::summary::summary_of;

impl RunStepper {
    /// A child's end, and its waiting for somebody, are its parent's business.
    pub(super) fn tell_parent(&self, head: &LiveRun, before: RunStatus, messages: &mut VecDeque<Message>) {
        let state = &head.state;
        let Some(parent) = state.started().and_then(|started| started.private.parent.as_ref()) else { return };
        let status = state.status();
        let (run, child) = (parent.run.clone(), head.row.id.clone());
        if status.is_terminal() {
            messages.push_back(Message::To {
                run,
                command: Command::ChildEnded { child, outcome: outcome(state, &head.row) },
            });
        } else if status != before && (status.is_waiting() || before.is_waiting()) {
            // The child may have moved on before this is delivered; the parent must hear what is true then.
            messages.push_back(Message::CheckChild { parent: run, child, roll_call: false });
        }
    }
}

/// What a parent hears of a child that has ended.
pub(crate) fn outcome(state: &RunState, row: &RunRow) -> ChildOutcome {
    ChildOutcome {
        status: state.status(),
        variables: state.variables().clone(),
        error: state.error().cloned(),
        memory: state.read_version().reach(),
        usage: summary_of(row).and_then(|summary| summary.usage_of_tree()),
    }
}
