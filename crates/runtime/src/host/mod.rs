//! What the edges may ask of a host. Every answer is about committed state: what cannot be lost any more.

mod activity;
mod agents;
mod ancestry;
mod annotations;
mod cancel;
mod conversations;
mod dead_letters;
mod diff;
mod for_tests;
mod history;
mod idempotency;
mod interrupts;
mod memory;
mod quarantine;
mod reads;
mod retention;
mod webhooks;
mod workflows;
mod workspace;

pub use agents::ModelRoute;
pub(crate) use agents::stands_for_an_agent;
pub use annotations::NewAnnotation;
pub(crate) use idempotency::claim_name;
pub(crate) use workflows::REGISTERING;

use std::sync::Arc;

use baton_engine::Command;

use baton_model::{Principal, RunId, RunStatus, TenantId};
use baton_store::Store;

use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::cluster::Kept;
use crate::inner::Inner;
use crate::{Error, Idempotent, Options, PauseRun, PausedRun, Readiness, StartRun, StartedRun, Subscription};

/// The running host. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

impl Host {
    /// Opens the host over a store: loads what must be in memory and starts recovery in the background.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Self, Error> {
        Self::open_with(store, options, Arc::new(SystemClock), Arc::new(RandomIds)).await
    }

    /// The same, with time and chance in the caller's hands.
    pub async fn open_with(
        store: Arc<dyn Store>,
        options: Options,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, Error> {
        let hooks = options.test_hooks.clone();
        let inner = Inner::new(store, options, clock, ids);
        inner.join_company();
        inner.webhooks.replace_all(inner.store.webhooks().await?);
        inner.keep_versions().await?;
        inner.read_quarantines().await?;
        let host = Self { inner };
        for definition in hooks.map(|hooks| hooks.workflows()).unwrap_or_default() {
            host.register_shared_workflow(definition).await?;
        }
        host.inner.start_tasks();
        Ok(host)
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The instant it is for this host.
    pub fn now(&self) -> baton_model::Timestamp {
        self.inner.clock.now()
    }

    pub async fn start_run(
        &self,
        who: &Principal,
        request: StartRun,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<StartedRun, Error> {
        self.inner.start_run(who, request, idempotent).await
    }

    pub async fn pause(&self, who: &Principal, run: &RunId, request: PauseRun) -> Result<PausedRun, Error> {
        self.pause_once(who, run, request, None).await
    }

    /// [`Host::pause`], with the reply to a keyed request kept in the commit of its effect.
    pub async fn pause_once(
        &self,
        who: &Principal,
        run: &RunId,
        request: PauseRun,
        idempotent: Option<Idempotent<PausedRun>>,
    ) -> Result<PausedRun, Error> {
        let PauseRun { reason, drain } = request;
        self.moved(who, run, Command::Pause { reason, drain }, idempotent).await
    }

    pub async fn resume(&self, who: &Principal, run: &RunId, reason: Option<String>) -> Result<PausedRun, Error> {
        self.resume_once(who, run, reason, None).await
    }

    /// [`Host::resume`], with the reply to a keyed request kept in the commit of its effect.
    pub async fn resume_once(
        &self,
        who: &Principal,
        run: &RunId,
        reason: Option<String>,
        idempotent: Option<Idempotent<PausedRun>>,
    ) -> Result<PausedRun, Error> {
        self.moved(who, run, Command::Resume { reason }, idempotent).await
    }

    async fn moved(
        &self,
        who: &Principal,
        run: &RunId,
        command: Command,
        idempotent: Option<Idempotent<PausedRun>>,
    ) -> Result<PausedRun, Error> {
        let run_id = run.clone();
        let kept = idempotent.map(|asked| Kept::new(asked, move |_, at| PausedRun { run_id, at }));
        let (_, at) = self.command(&who.tenant, run, command, kept).await?;
        Ok(PausedRun { run_id: run.clone(), at })
    }

    /// Applies a command on behalf of a tenant and waits until its outcome, and what is kept with it, is durable.
    async fn command(
        &self,
        tenant: &TenantId,
        run: &RunId,
        command: Command,
        kept: Option<Kept>,
    ) -> Result<(RunStatus, baton_model::Timestamp), Error> {
        self.inner.authorize(tenant, run).await?;
        self.inner.order(run, command, kept).await
    }

    /// Wakes whenever the run's log has grown on disk. Subscribe first, then read: nothing can slip between.
    pub fn subscribe(&self, run: &RunId) -> Subscription {
        self.inner.hub.subscribe(run)
    }

    pub fn readiness(&self) -> Readiness {
        self.inner.readiness()
    }

    /// Whether other hosts, with keys of their own, have runs in the same store.
    pub fn shares_its_store(&self) -> bool {
        self.inner.shared().is_some()
    }

    /// Stops timers and deliveries and waits until everything queued is durable.
    pub async fn shutdown(&self) {
        self.inner.shut_down().await;
    }
}
