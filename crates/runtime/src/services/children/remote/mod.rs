//! Children on other hosts. A task sets out after the records it follows from are durable, asks another host as
//! often as it takes, and what it learns comes back as the commands that local children send.
//!
//! ```text
//!  effect ──► waits for its commit ──► other host ──► news ──► command, durable
//!                  │ lost with it         │ silent: again, for a while    │ disk in trouble: kept, told again
//! ```
//!
//! Nothing about a task is stored: after a crash the run's state says again what is wanted, and the key under which a
//! child is made is its place in its parent, so asking again finds what the first asking made.

pub(crate) mod actions;
pub(crate) mod create;
pub(crate) mod follow;
pub(crate) mod port;
pub(crate) mod registry;
pub(crate) mod service;

pub(crate) use actions::RemoteActions;
pub use port::{Accepted, RemoteFault, RemoteHost, RemoteRunRequest, RemoteRunResult, RemoteRunStatus};
pub use registry::Remotes;

use std::sync::Arc;

use baton_engine::{Command, RemoteChildAction, RemoteChildTask};
use baton_model::{Fault, RunId, TenantId, TraceContext, code, redact};
use baton_store::WriteChain;

use crate::run::{on_behalf, simulates};
use crate::services::children::remote::service::RemoteChildren;
use crate::services::in_flight::InFlightToken;
use crate::services::observer::Caller;

/// How soon another host is asked again after it did not answer, and how far apart that gets.
const SOON_MS: u64 = 250;
const LATER_MS: u64 = 10_000;

/// The run on whose behalf another host is asked.
struct Parent {
    tenant: TenantId,
    trace: Option<TraceContext>,
    /// It only tries something out.
    simulated: bool,
    /// What whoever started it holds; `None` means all.
    scopes: Option<Vec<String>>,
    /// It was loaded: what it wants may have been asked for in another life of this host.
    recovered: bool,
}

/// What a task brings back.
struct RemoteResult {
    command: Command,
    /// The run goes on as if the child had never been made, but it may have been.
    doubtful: Option<(Arc<dyn RemoteHost>, RemoteRunRequest)>,
}

impl From<Command> for RemoteResult {
    fn from(command: Command) -> Self {
        Self { command, doubtful: None }
    }
}

impl RemoteChildren {
    /// Makes the remote_actions under way for a run those that it wants. `count` records must be on disk before one sets out.
    pub(crate) fn see_to_remote_children(
        self: &Arc<Self>,
        chain: &Arc<WriteChain>,
        run: &RunId,
        count: u64,
        paused: bool,
        wanted: Vec<RemoteChildTask>,
    ) {
        for (task, ticket) in self.remote_actions.reconcile(run, chain, paused, wanted) {
            let (chain, run) = (Arc::clone(chain), run.clone());
            self.tasks.spawn(self, |room| async move { room.see_through_task(&chain, run, count, task, ticket).await });
        }
    }

    async fn see_through_task(
        &self,
        chain: &WriteChain,
        run: RunId,
        count: u64,
        task: RemoteChildTask,
        ticket: InFlightToken,
    ) {
        let result = tokio::select! {
            biased;
            result = self.go(chain, &run, count, &task, &ticket) => result,
            () = ticket.cancelled.cancelled() => None,
            () = self.tasks.stop.cancelled() => None,
        };
        let wanted = result.filter(|_| self.remote_actions.answering(&run, &task, &ticket));
        let Some(RemoteResult { command, doubtful }) = wanted else {
            return self.remote_actions.finished(&run, &task, &ticket);
        };
        self.tell_run(&run, command).await;
        self.remote_actions.finished(&run, &task, &ticket);
        // A run that was paused meanwhile has not taken it in, and may have been resumed before this was over.
        if let Err(error) = self.commands.advance(&run).await
            && error.code != code::RUN_NOT_FOUND
        {
            tracing::debug!(%run, %error, "a run could not look at its children again");
        }
        if let Some((host, handover)) = doubtful {
            tokio::select! {
                biased;
                () = self.take_back(host.as_ref(), handover) => {}
                () = self.tasks.stop.cancelled() => {}
            }
        }
    }

    /// What came of it, unless what the task follows from was lost or nobody waits for it any more.
    async fn go(
        &self,
        chain: &WriteChain,
        run: &RunId,
        count: u64,
        task: &RemoteChildTask,
        ticket: &InFlightToken,
    ) -> Option<RemoteResult> {
        let live = self.storage.live().ok()?;
        let handle = self.loader.handle(&live, run).await.ok()?;
        // Asked with the handle in hand: one that was loaded after the records were lost would have to get as far again.
        if chain.is_broken() {
            return None;
        }
        handle.durable(&live.ending, count).await.ok()?;
        let parent = {
            let head = handle.head().await?;
            // A child hangs below the node that asks for it, there as here.
            let caller = match &task.action {
                RemoteChildAction::Create(order) | RemoteChildAction::Withdraw(order) => {
                    Caller::Node { node: &order.node, visit: order.visit }
                }
                RemoteChildAction::Follow { .. } | RemoteChildAction::Cancel => Caller::Run,
            };
            Parent {
                tenant: head.row.tenant.clone(),
                trace: self.observers.trace_from(&head, caller),
                simulated: simulates(&head),
                scopes: on_behalf(&head).1,
                recovered: head.recovered,
            }
        };
        drop((handle, live));
        if !self.remote_actions.out(run, task, ticket) {
            return None;
        }
        Some(match &task.action {
            RemoteChildAction::Create(order) => self.create(run, &parent, task, order, false).await,
            RemoteChildAction::Withdraw(order) => self.create(run, &parent, task, order, true).await,
            RemoteChildAction::Follow { since, timeout_ms } => {
                self.follow(run, &parent.tenant, task, timeout_ms.map(|ms| since.plus_millis(ms))).await.into()
            }
            RemoteChildAction::Cancel => self.end(run, &parent.tenant, task).await.into(),
        })
    }

    fn remote(&self, tenant: &TenantId, task: &RemoteChildTask) -> Result<(Arc<dyn RemoteHost>, String), Box<Fault>> {
        let (host, workflow) = self.options.remotes.find(tenant, &task.worker)?;
        Ok((Arc::clone(host), workflow))
    }

    /// Hands news to a run. A disk in trouble is waited for.
    async fn tell_run(&self, run: &RunId, command: Command) {
        if let Err(error) = self.commands.tell_until_durable(run, command).await
            && error.code != code::RUN_NOT_FOUND
        {
            tracing::warn!(%run, %error, "news of a child on another host could not be handed to its parent");
        }
    }

    /// Waits, and longer the next time.
    async fn back_off(&self, pause: &mut u64) {
        self.clock.until(self.clock.now().plus_millis(*pause)).await;
        *pause = (*pause * 2).min(LATER_MS);
    }

    /// What another host said, in words that may be recorded: none of this host's secrets, wherever it learned them.
    fn clean(&self, text: &str) -> String {
        redact(text, &self.secrets)
    }
}

/// Another host was asked, and this came of it.
fn count(room: &RemoteChildren, host: &dyn RemoteHost, operation: &'static str, fault: Option<&RemoteFault>) {
    room.connections.remote_asked(host.name(), fault);
    let outcome = match fault {
        None => "answered",
        Some(RemoteFault::Unavailable { .. }) => "unavailable",
        Some(RemoteFault::Refused { .. }) => "refused",
    };
    let remote = host.name().to_owned();
    metrics::counter!("baton_remote_requests_total", "remote" => remote, "operation" => operation, "outcome" => outcome)
        .increment(1);
}
