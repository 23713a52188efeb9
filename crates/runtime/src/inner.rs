//! The host's shared state and its long-lived tasks.
//!
//! ```text
//!  callers ──► step (run lock) ──► outbox ──► journal ──► Observer ──► waiters, subscribers
//!                 ▲    │ messages                             │
//!   timers ───────┘    └──► other runs                        └──► janitor (drops heads nobody needs)
//! ```

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use baton_engine::Features;
use baton_model::{RunId, Secret};
use baton_provider::MockProvider;
use baton_store::Store;
use dashmap::{DashMap, DashSet};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::Roster;
use crate::clock::{Clock, Ids};
use crate::commits::{CommitWatch, Janitor};
use crate::hub::Hub;
use crate::load::LoadLocks;
use crate::models::{Calls, Models};
use crate::observe::Observing;
use crate::plans::Plans;
use crate::remote::Mandates;
use crate::shared::Company;
use crate::timers::Timers;
use crate::vitals::Vitals;
use crate::webhooks::Webhooks;
use crate::world::World;
use crate::{Error, Options, Readiness};

/// How long a run, or the store, is left alone after it could not be reached.
pub(crate) const RETRY_MS: u64 = 1000;

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    /// Taken out of everything that is remembered or written to a file.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) plans: Plans,
    pub(crate) loading: LoadLocks,
    /// The same for ledgers. Taken while a run is being loaded, so they cannot share a lock with runs.
    pub(crate) loading_ledgers: LoadLocks,
    pub(crate) timers: Timers,
    pub(crate) hub: Arc<Hub>,
    pub(crate) webhooks: Webhooks,
    pub(crate) observing: Option<Observing>,
    /// Serialises starts that must be the only active run of their scope.
    pub(crate) exclusive: tokio::sync::Mutex<()>,
    /// Held by a start from the moment it knows which versions it sees until it is queued; see [`crate::Host::prune`].
    pub(crate) starting: RwLock<()>,
    /// Serialises registrations, so that version numbers have no gaps or twins.
    pub(crate) registering: tokio::sync::Mutex<()>,
    pub(crate) fixtures: Mutex<Vec<String>>,
    /// What the host knows of itself.
    pub(crate) vitals: Vitals,
    /// Descendants of each tree that is growing in this process.
    pub(crate) trees: DashMap<RunId, u64>,
    /// Replays that are being written down: two writers of one log would meet.
    pub(crate) replaying: DashSet<RunId>,
    pub(crate) importing: crate::transfer::Importing,
    /// Where models are reached, and the calls under way.
    pub(crate) models: Models,
    pub(crate) calls: Calls,
    /// What is being seen to on other hosts.
    pub(crate) mandates: Mandates,
    pub(crate) effects: crate::tools::Effects,
    /// The agents there are.
    pub(crate) roster: ArcSwap<Roster>,
    pub(crate) mock: Arc<MockProvider>,
    /// The other hosts on this store, if there can be any.
    pub(crate) company: Company,
    world: ArcSwap<World>,
    trouble: Mutex<Option<String>>,
    janitor: Janitor,
    tasks: TaskTracker,
    /// Where tasks run: the writer's own thread starts some too, and it has no scheduler around it.
    scheduler: tokio::runtime::Handle,
    pub(crate) stop: CancellationToken,
    me: Weak<Self>,
}

impl Inner {
    pub(crate) fn new(store: Arc<dyn Store>, options: Options, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Arc<Self> {
        let options = if options.conformance { crate::conformance::equipped(options) } else { options };
        let hub = Arc::new(Hub::default());
        let generation = store.generation();
        let test_secret = options.conformance.then(crate::ledgers::conformance_secret);
        let mock = Arc::new(MockProvider::default());
        let models = options.models.clone();
        let models = if options.conformance { models.or("mock", Arc::clone(&mock) as _) } else { models };
        let inner = Arc::new_cyclic(|me| Self {
            models,
            mock,
            calls: Calls::default(),
            mandates: Mandates::default(),
            effects: crate::tools::Effects::default(),
            roster: ArcSwap::from_pointee(options.roster.clone()),
            secrets: options.secrets.iter().cloned().chain(test_secret).collect(),
            plans: Plans::new(Features { conformance: options.conformance, live_agents: true, ..Features::default() }),
            webhooks: Webhooks::new(options.allow_private_webhooks),
            observing: options.observer.clone().map(Observing::new),
            loading: LoadLocks::default(),
            loading_ledgers: LoadLocks::default(),
            timers: Timers::default(),
            hub: Arc::clone(&hub),
            exclusive: tokio::sync::Mutex::new(()),
            starting: RwLock::new(()),
            registering: tokio::sync::Mutex::new(()),
            fixtures: Mutex::new(Vec::new()),
            vitals: Vitals::new(clock.now()),
            trees: DashMap::new(),
            replaying: DashSet::new(),
            importing: crate::transfer::Importing::default(),
            company: Company::default(),
            world: ArcSwap::from_pointee(World::new(generation, store.shared().is_some())),
            trouble: Mutex::new(None),
            janitor: Janitor::default(),
            tasks: TaskTracker::new(),
            scheduler: tokio::runtime::Handle::current(),
            stop: CancellationToken::new(),
            me: Weak::clone(me),
            store,
            options,
            clock,
            ids,
        });
        inner.store.observe(Arc::new(CommitWatch::new(Arc::downgrade(&inner), hub)));
        inner
    }

    /// The current heads, unless the disk is in trouble.
    pub(crate) fn world(&self) -> Result<Arc<World>, Error> {
        let world = self.world.load_full();
        if world.is_dead() {
            return Err(Error::unavailable(match self.shared() {
                None => "Storage cannot be written right now. Reads still work; try again shortly.",
                Some(_) => "The database cannot be written to right now. Try again shortly.",
            }));
        }
        Ok(world)
    }

    pub(crate) fn current_world(&self) -> Arc<World> {
        self.world.load_full()
    }

    pub(crate) fn janitor(&self) -> &Janitor {
        &self.janitor
    }

    pub(crate) fn readiness(&self) -> Readiness {
        // A host that writes nothing finds out by its lease.
        let reason = self.trouble.lock().clone().or_else(|| self.unheard());
        Readiness { ready: reason.is_none(), reason }
    }

    /// A commit failed: the heads of that generation are worthless.
    pub(crate) fn lost(&self, generation: u64, reason: String) {
        let world = self.world.load_full();
        if world.generation != generation || world.is_dead() {
            return;
        }
        tracing::error!(%reason, generation, "a commit failed; reloading from what is durable");
        *self.trouble.lock() = Some(reason);
        world.kill();
        self.spawn(|inner| async move { inner.heal().await });
    }

    /// Tries until the disk takes writes again, then starts over from what is durable.
    async fn heal(&self) {
        let mut pause = 100;
        loop {
            match self.started_over().await {
                Ok(generation) => {
                    // Children that were lost count no longer.
                    self.trees.clear();
                    if self.shared().is_some() {
                        // A new session has a lease of its own, and others may have been at what the old one had begun.
                        self.renewed_now();
                        self.calls.forget_intentions();
                    }
                    self.world.store(Arc::new(World::new(generation, self.shared().is_some())));
                    *self.trouble.lock() = None;
                    tracing::info!(generation, "storage takes writes again");
                    self.recover().await;
                    return;
                }
                Err(error) => tracing::warn!(%error, "storage still cannot be written"),
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(pause)) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(2000);
        }
    }

    /// What a host goes by that shares its store is read again before anything is written: nobody waits for a session
    /// that has ended to hear of what changed.
    async fn started_over(&self) -> Result<u64, Error> {
        let generation = self.store.recover().await?;
        if self.shared().is_some() {
            self.reload_webhooks().await?;
        }
        Ok(generation)
    }

    /// Runs a task that ends with the host.
    pub(crate) fn spawn<F, T>(&self, task: F)
    where
        F: FnOnce(Arc<Self>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        if let Some(me) = self.me.upgrade() {
            self.tasks.spawn_on(task(me), &self.scheduler);
        }
    }

    /// Does work to its end even if the caller hangs up: what it guards or must note afterwards is not left half done.
    pub(crate) async fn see_through<F, T, R>(&self, work: F) -> Result<R, Error>
    where
        F: FnOnce(Arc<Self>) -> T,
        T: Future<Output = Result<R, Error>> + Send + 'static,
        R: Send + 'static,
    {
        let (done, outcome) = tokio::sync::oneshot::channel();
        self.spawn(|inner| {
            let work = work(inner);
            // Whoever asked may be gone.
            async move { drop(done.send(work.await)) }
        });
        outcome.await.unwrap_or_else(|_| Err(Error::unavailable("The host is shutting down.")))
    }

    pub(crate) fn start_tasks(&self) {
        self.spawn(|inner| async move { inner.keep_time().await });
        self.spawn(|inner| async move { inner.tidy().await });
        self.spawn(|inner| async move { crate::webhooks::deliver(inner).await });
        if self.observing.is_some() {
            self.spawn(|inner| async move { inner.keep_observing().await });
        }
        self.spawn(|inner| async move { inner.measure_at_start().await });
        self.work_in_company();
        self.spawn(|inner| async move { inner.recover().await });
    }

    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let world = self.world.load_full();
        world.outbox.flush(self.store.as_ref(), world.generation);
        self.report_the_rest().await;
        self.store.close().await;
    }
}
