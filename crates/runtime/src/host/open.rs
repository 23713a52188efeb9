//! A running host, opened over a store. Every answer it gives is about committed state: what cannot be lost any more.

use std::sync::Arc;

use baton_engine::Command;
use baton_model::{Principal, RunId, RunStatus, TenantId};
use baton_store::Store;

use super::rooms::Rooms;
use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::cluster::StoredReply;
use crate::{Error, Idempotent, Options, PauseRun, PausedRun, Readiness, StartRun, StartedRun, Subscription};

/// The running host. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    pub(crate) rooms: Arc<Rooms>,
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
        let rooms = Rooms::new(store, options, clock, ids);
        rooms.join_cluster();
        rooms.webhooks.replace_all(rooms.store.webhooks().await?);
        rooms.agents.keep_versions().await?;
        rooms.runner_upkeep.load().await?;
        rooms.quarantine.read_quarantines().await?;
        let host = Self { rooms };
        for definition in hooks.map(|hooks| hooks.workflows()).unwrap_or_default() {
            host.register_shared_workflow(definition).await?;
        }
        host.rooms.start_tasks();
        Ok(host)
    }

    pub fn options(&self) -> &Options {
        &self.rooms.options
    }

    /// The instant it is for this host.
    pub fn now(&self) -> baton_model::Timestamp {
        self.rooms.clock.now()
    }

    pub async fn start_run(
        &self,
        who: &Principal,
        request: StartRun,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<StartedRun, Error> {
        self.rooms.starter.start_run(who, request, idempotent).await
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
        let kept = idempotent.map(|asked| StoredReply::new(asked, move |_, at| PausedRun { run_id, at }));
        let (_, at) = self.command(&who.tenant, run, command, kept).await?;
        Ok(PausedRun { run_id: run.clone(), at })
    }

    /// Applies a command on behalf of a tenant and waits until its outcome, and what is kept with it, is durable.
    pub(crate) async fn command(
        &self,
        tenant: &TenantId,
        run: &RunId,
        command: Command,
        kept: Option<StoredReply>,
    ) -> Result<(RunStatus, baton_model::Timestamp), Error> {
        self.rooms.reads.authorize(tenant, run).await?;
        self.rooms.forwarding.order(run, command, kept).await
    }

    /// Wakes whenever the run's log has grown on disk. Subscribe first, then read: nothing can slip between.
    pub fn subscribe(&self, run: &RunId) -> Subscription {
        self.rooms.notifications.subscribe(run)
    }

    pub fn readiness(&self) -> Readiness {
        self.rooms.outage.readiness()
    }

    /// Whether other hosts, with keys of their own, have runs in the same store.
    pub fn shares_its_store(&self) -> bool {
        self.rooms.storage.shared().is_some()
    }

    /// Stops timers and deliveries and waits until everything queued is durable.
    pub async fn shutdown(&self) {
        self.rooms.shut_down().await;
    }
}
