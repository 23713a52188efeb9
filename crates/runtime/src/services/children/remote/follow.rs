//! Hearing of a child's end on another host, and asking for it.

use baton_engine::{ChildOutcome, Command, RemoteChildTask};
use baton_model::event::REDACTED;
use baton_model::{Fault, RunId, RunStatus, TenantId, Timestamp, code};
use serde_json::{Map, Value};

use super::port::{RemoteFault, RemoteHost, RemoteRunResult, RemoteRunStatus};
use super::{SOON_MS, count};
use crate::services::children::remote::service::RemoteChildren;

/// The least time between two looks: a busy child writes faster than anybody needs to hear of it.
const PACE_MS: u64 = 100;

/// Since when another host has not said what was asked.
#[derive(Default)]
struct Trouble {
    since: Option<Timestamp>,
    /// It answers, but does not know the run.
    gone_since: Option<Timestamp>,
    warned: bool,
}

impl Trouble {
    fn note(&mut self, fault: &RemoteFault, now: Timestamp) {
        self.since.get_or_insert(now);
        self.gone_since = fault.is_gone().then_some(self.gone_since.unwrap_or(now));
    }
}

impl RemoteChildren {
    /// Follows a child to its end. Silence is no end: the child is looked for as long as anybody waits for it, and at
    /// least until `deadline`, which the other host keeps by itself as long as it is there.
    pub(super) async fn follow(
        &self,
        run: &RunId,
        tenant: &TenantId,
        task: &RemoteChildTask,
        deadline: Option<Timestamp>,
    ) -> Command {
        let timeout = self.options.remotes.timeout_ms;
        let (mut trouble, mut pause) = (Trouble::default(), SOON_MS);
        let (mut after, mut told) = (None, None);
        loop {
            let fault = match self.look(tenant, task, after).await {
                Ok(RemoteRunStatus { end: Some(end), status, .. }) => return self.ended(task, status, end),
                Ok(seen) => {
                    (trouble, pause) = (Trouble::default(), SOON_MS);
                    self.tell_status(run, task, &mut told, seen.status).await;
                    after = Some(seen.seq);
                    self.clock.until(self.clock.now().plus_millis(PACE_MS)).await;
                    continue;
                }
                Err(fault) => fault,
            };
            let now = self.clock.now();
            trouble.note(&fault, now);
            if trouble.gone_since.is_some_and(|since| now.millis_since(since) >= timeout) {
                return lost(task, self.missing(task, &fault));
            }
            if deadline.is_some_and(|deadline| now >= deadline.plus_millis(timeout)) {
                let message = format!("The child run {} was not heard of in time: {fault}", task.child);
                return lost(task, Fault::new(code::NODE_TIMEOUT, self.clean(&message)));
            }
            if !std::mem::replace(&mut trouble.warned, true) {
                tracing::warn!(%run, child = %task.child, %fault, "a child on a remote cannot be seen; looking on");
            }
            self.back_off(&mut pause).await;
        }
    }

    /// Ends a child and waits for its end. Here waiting has a limit: a run that is over cannot wait for ever for a host
    /// that is gone.
    pub(super) async fn end(&self, run: &RunId, tenant: &TenantId, task: &RemoteChildTask) -> Command {
        let timeout = self.options.remotes.timeout_ms;
        let (mut trouble, mut pause) = (Trouble::default(), SOON_MS);
        let (mut asked, mut after) = (false, None);
        loop {
            let fault = match self.ask_to_end(tenant, task, &mut asked, after).await {
                Ok(RemoteRunStatus { end: Some(end), status, .. }) => return self.ended(task, status, end),
                Ok(seen) => {
                    (trouble, pause) = (Trouble::default(), SOON_MS);
                    after = Some(seen.seq);
                    self.clock.until(self.clock.now().plus_millis(PACE_MS)).await;
                    continue;
                }
                Err(fault) => fault,
            };
            let now = self.clock.now();
            trouble.note(&fault, now);
            if trouble.since.is_some_and(|since| now.millis_since(since) >= timeout) {
                tracing::warn!(%run, child = %task.child, %fault, "ending without the child on a remote");
                return lost(task, self.missing(task, &fault));
            }
            self.back_off(&mut pause).await;
        }
    }

    async fn ask_to_end(
        &self,
        tenant: &TenantId,
        task: &RemoteChildTask,
        asked: &mut bool,
        after: Option<u64>,
    ) -> Result<RemoteRunStatus, RemoteFault> {
        if !*asked {
            let host = self.host_of(tenant, task)?;
            let answer = host.cancel(&task.child, "parent-cancelled").await;
            count(self, host.as_ref(), "cancel", answer.as_ref().err());
            answer?;
            *asked = true;
        }
        self.look(tenant, task, after).await
    }

    async fn look(
        &self,
        tenant: &TenantId,
        task: &RemoteChildTask,
        after: Option<u64>,
    ) -> Result<RemoteRunStatus, RemoteFault> {
        let host = self.host_of(tenant, task)?;
        let seen = host.look(&task.child, after).await;
        count(self, host.as_ref(), "look", seen.as_ref().err());
        seen
    }

    /// A remote that was taken out of the configuration is out of reach, not gone: the next start may have it again.
    fn host_of(
        &self,
        tenant: &TenantId,
        task: &RemoteChildTask,
    ) -> Result<std::sync::Arc<dyn RemoteHost>, RemoteFault> {
        let (host, _) =
            self.remote(tenant, task).map_err(|fault| RemoteFault::Unavailable { sent: false, why: fault.message })?;
        Ok(host)
    }

    /// Only waiting is the parent's business, and what was true before a restart.
    async fn tell_status(&self, run: &RunId, task: &RemoteChildTask, told: &mut Option<RunStatus>, status: RunStatus) {
        let before = told.replace(status);
        let result = match before {
            None => true,
            Some(before) => before != status && (before.is_waiting() || status.is_waiting()),
        };
        if result {
            self.tell_run(run, Command::ChildStatus { child: task.child.clone(), status }).await;
        }
    }

    fn ended(&self, task: &RemoteChildTask, status: RunStatus, end: RemoteRunResult) -> Command {
        let mut variables: Map<String, Value> = end.variables;
        // What the other host masks did not come across.
        variables.retain(|_, value| value.as_str() != Some(REDACTED));
        for value in variables.values_mut() {
            crate::history::transfer::take_out(value, &self.secrets);
        }
        let error = end.error.map(|fault| Fault {
            code: self.clean(&fault.code),
            message: self.clean(&fault.message),
            details: None,
        });
        Command::ChildEnded {
            child: task.child.clone(),
            outcome: ChildOutcome { status, variables, error, memory: 0, usage: end.usage },
        }
    }

    /// Why the end of a child is not known.
    fn missing(&self, task: &RemoteChildTask, fault: &RemoteFault) -> Fault {
        let own = match fault {
            RemoteFault::Unavailable { .. } => code::REMOTE_UNREACHABLE,
            RemoteFault::Refused { .. } => code::REMOTE_REFUSED,
        };
        let message = format!("What became of {} on {} is not known: {fault}", task.child, task.worker);
        Fault::new(own, self.clean(&message))
    }
}

/// The parent goes on as if the child had failed.
fn lost(task: &RemoteChildTask, fault: Fault) -> Command {
    let status = RunStatus::Failed;
    let outcome = ChildOutcome { status, variables: Map::new(), error: Some(fault), memory: 0, usage: None };
    Command::ChildEnded { child: task.child.clone(), outcome }
}
