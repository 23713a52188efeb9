//! Having a child made on another host, or taking it back.

use std::sync::Arc;

use baton_engine::{Command, RemoteChildSpec, RemoteChildTask};
use baton_model::event::RemoteRun;
use baton_model::{Fault, ForeignCause, RunId, code};

use super::port::{RemoteFault, RemoteHost, RemoteRunRequest};
use super::{Parent, RemoteResult, SOON_MS, count};
use crate::clock::RETRY_MS;
use crate::services::children::remote::service::RemoteChildren;

impl RemoteChildren {
    /// Asks until the other host has answered, or until the timeout.
    pub(super) async fn create(
        &self,
        run: &RunId,
        parent: &Parent,
        task: &RemoteChildTask,
        order: &RemoteChildSpec,
        withdrawn: bool,
    ) -> RemoteResult {
        // Whether it may have been asked for already.
        let mut doubt = withdrawn || parent.recovered;
        let place = task.child.clone();
        let refused = |fault: Fault| Command::ChildRefused { child: place.clone(), fault };
        let (host, handover) = match self.handover(run, parent, task, order, withdrawn).await {
            Ok(ready) => ready,
            Err(fault) => return refused(*fault).into(),
        };
        let began = self.clock.now();
        let mut pause = SOON_MS;
        loop {
            if !withdrawn {
                self.tools.reaches_out(run);
            }
            let answer = host.hand_over(&handover).await;
            count(self, host.as_ref(), if withdrawn { "withdraw" } else { "create" }, answer.as_ref().err());
            let (sent, why) = match answer {
                Ok(accepted) => {
                    let host_id = accepted.host_id.map(|id| self.clean(&id));
                    let remote = RemoteRun { place, run: accepted.run, host_id, url: accepted.url };
                    return Command::RemoteStarted { remote }.into();
                }
                Err(fault @ RemoteFault::Refused { .. }) => return refused(self.refusal(host.as_ref(), &fault)).into(),
                Err(RemoteFault::Unavailable { sent, why }) => (sent, why),
            };
            doubt |= sent;
            let silent = self.clock.now().millis_since(began);
            if silent >= self.options.remotes.timeout_ms {
                let fault = self.silence(host.as_ref(), &why, silent, doubt, &place);
                let doubtful = doubt.then_some((host, handover));
                return RemoteResult { command: refused(fault), doubtful };
            }
            tracing::debug!(%run, remote = host.name(), %why, "a remote does not answer; asking again shortly");
            self.back_off(&mut pause).await;
        }
    }

    async fn handover(
        &self,
        run: &RunId,
        parent: &Parent,
        task: &RemoteChildTask,
        order: &RemoteChildSpec,
        withdrawn: bool,
    ) -> Result<(Arc<dyn RemoteHost>, RemoteRunRequest), Box<Fault>> {
        let (host, workflow_id) = self.remote(&parent.tenant, task)?;
        let plan = &order.plan;
        if !withdrawn {
            self.make_room(order).await?;
        }
        // What a parent maps into a child's variables arrives as inputs: there is no other way in from outside.
        let mut inputs = plan.inputs.clone();
        inputs.extend(plan.variables.clone());
        let cause = ForeignCause {
            host_id: self.options.host_id.clone(),
            run_id: run.clone(),
            event_id: order.event.clone(),
            node_id: None,
            workflow_id: None,
            cause: plan.cause.clone(),
            well_known_url: ForeignCause::well_known(&self.options.remotes.address),
            depth: order.depth,
            simulated: parent.simulated,
            scopes: parent.scopes.clone(),
        }
        .at(&order.node, &order.workflow);
        let handover = RemoteRunRequest {
            key: plan.run.to_string(),
            workflow_id,
            inputs,
            timeout_ms: order.max_duration_ms,
            trace: parent.trace.clone(),
            cause,
            withdrawn,
        };
        Ok((host, handover))
    }

    /// A worker elsewhere counts like one here.
    async fn make_room(&self, order: &RemoteChildSpec) -> Result<(), Box<Fault>> {
        loop {
            match self.trees.room_in_tree(order.depth, &order.root).await {
                Ok(room) => return room.and_then(|()| self.trees.grow_tree(&order.root)).map_err(Box::new),
                Err(error) => tracing::warn!(%error, "a tree cannot be counted; trying again shortly"),
            }
            self.clock.until(self.clock.now().plus_millis(RETRY_MS)).await;
        }
    }

    /// Tries for a while longer to take back what may have been made. Nothing is waiting for it any more, so a crash ends
    /// it; the parent's log says that the outcome is not known.
    pub(super) async fn take_back(&self, host: &dyn RemoteHost, handover: RemoteRunRequest) {
        let handover = RemoteRunRequest { withdrawn: true, ..handover };
        let (began, mut pause) = (self.clock.now(), SOON_MS);
        while self.clock.now().millis_since(began) < self.options.remotes.timeout_ms {
            let taken = match host.hand_over(&handover).await {
                Ok(accepted) => host.cancel(&accepted.run, "parent-cancelled").await,
                Err(fault) => Err(fault),
            };
            count(self, host, "withdraw", taken.as_ref().err());
            match taken {
                Ok(()) | Err(RemoteFault::Refused { .. }) => return,
                Err(RemoteFault::Unavailable { .. }) => self.back_off(&mut pause).await,
            }
        }
        let key = &handover.key;
        tracing::warn!(
            remote = host.name(),
            key,
            "a run that may have been started on a remote could not be withdrawn"
        );
    }

    /// What the parent records when another host says no.
    pub(super) fn refusal(&self, host: &dyn RemoteHost, fault: &RemoteFault) -> Fault {
        let name = host.name();
        let RemoteFault::Refused { status, code, message } = fault else {
            return Fault::new(code::REMOTE_UNREACHABLE, self.clean(&fault.to_string())).with("remote", name);
        };
        let said = self.clean(message);
        let (own, text) = match status {
            401 | 403 => (
                code::REMOTE_REFUSED,
                format!(
                    "The remote `{name}` does not accept its credential: {said} Check what [remotes.{name}] refers to; \
                     the key needs runs:create, runs:read and runs:cancel there."
                ),
            ),
            404 => (code::UNKNOWN_CHILD_WORKFLOW, format!("The remote `{name}` says: {said}")),
            _ => (code::REMOTE_REFUSED, format!("The remote `{name}` refused the run: {said}")),
        };
        Fault::new(own, text).with("remote", name).with("status", *status).with("remoteCode", self.clean(code))
    }

    fn silence(&self, host: &dyn RemoteHost, why: &str, ms: u64, doubt: bool, place: &RunId) -> Fault {
        let (name, seconds, why) = (host.name(), ms / 1000, self.clean(why));
        let (outcome, text) = if doubt {
            ("unknown", "A run may have been started there; look for its Idempotency-Key")
        } else {
            ("not-started", "No run was started there, and none will be under its Idempotency-Key")
        };
        let message = format!("The remote `{name}` did not answer for {seconds} s ({why}). {text} {place}.");
        Fault::new(code::REMOTE_UNREACHABLE, message)
            .with("remote", name)
            .with("outcome", outcome)
            .with("idempotencyKey", place.as_str())
    }
}
