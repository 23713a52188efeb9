//! What is under way for children on other hosts.

use std::sync::Arc;

use baton_engine::{RemoteChildAction, RemoteChildTask};
use baton_model::RunId;
use baton_store::WriteChain;

use crate::services::in_flight::{InFlight, InFlightToken};

/// One thing that is done for a child. What follows from the same wish again is the same.
type Key = (RunId, Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Create,
    Withdraw,
    Follow,
    Cancel,
}

/// What is being done for children on other hosts, by the child and what is done.
#[derive(Default)]
pub(crate) struct RemoteActions(InFlight<Key>);

impl RemoteActions {
    pub(super) fn reconcile(
        &self,
        run: &RunId,
        chain: &Arc<WriteChain>,
        paused: bool,
        wanted: Vec<RemoteChildTask>,
    ) -> Vec<(RemoteChildTask, InFlightToken)> {
        self.0.reconcile(run, chain, paused, wanted, key_of)
    }

    /// Whether anything is under way for a run.
    pub(crate) fn any(&self, run: &RunId) -> bool {
        self.0.any(run)
    }

    /// A run that was paused took nothing in meanwhile: its children are looked at again.
    pub(crate) fn look_again(&self, run: &RunId) {
        self.0.give_up(run, |(_, kind)| *kind == Kind::Follow);
    }

    /// It sets out, unless it is not wanted any more.
    pub(super) fn out(&self, run: &RunId, task: &RemoteChildTask, token: &InFlightToken) -> bool {
        self.0.begin(run, &key_of(task), token).is_some()
    }

    /// The outcome is there. Says whether it is still wanted.
    pub(super) fn answering(&self, run: &RunId, task: &RemoteChildTask, token: &InFlightToken) -> bool {
        self.0.answering(run, &key_of(task), token)
    }

    pub(super) fn finished(&self, run: &RunId, task: &RemoteChildTask, token: &InFlightToken) {
        self.0.finished(run, &key_of(task), token);
    }
}

fn key_of(task: &RemoteChildTask) -> Key {
    let kind = match task.action {
        RemoteChildAction::Create(_) => Kind::Create,
        RemoteChildAction::Withdraw(_) => Kind::Withdraw,
        RemoteChildAction::Follow { .. } => Kind::Follow,
        RemoteChildAction::Cancel => Kind::Cancel,
    };
    (task.child.clone(), kind)
}
