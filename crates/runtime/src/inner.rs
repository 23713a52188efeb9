//! The host's shared state and its long-lived tasks.
//!
//! ```text
//!  callers ──► step (run lock) ──► outbox ──► journal ──► Observer ──► waiters, subscribers
//!                 ▲    │ messages                             │
//!   timers ───────┘    └──► other runs                        └──► janitor (drops heads nobody needs)
//! ```

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use baton_engine::Features;
use baton_model::{RunId, Secret};
use baton_store::{CommitError, Store};
use dashmap::{DashMap, DashSet};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::canary::Canary;
use crate::clock::{Clock, Ids};
use crate::cluster::ClusterState;
use crate::health::Vitals;
use crate::journal::committed::{CommitWatch, Janitor};
use crate::quarantine::Quarantines;
use crate::run::load::LoadLocks;
use crate::run::start_barrier::Starts;
use crate::run::world::Generation;
use crate::services::agents::Roster;
use crate::services::budgets::AllInFlight;
use crate::services::children::remote::Mandates;
use crate::services::connections::LastRequests;
use crate::services::models::{Calls, Models};
use crate::services::notifications::Hub;
use crate::services::observers::Observing;
use crate::services::timers::Timers;
use crate::services::webhooks::Webhooks;
use crate::services::workflows::Plans;
use crate::steps::{Turns, cut_short, panic_text};
use crate::watchdog::{Trouble, Watch};
use crate::{Error, Options, Readiness};

/// How long a run, or the store, is left alone after it could not be reached.
pub(crate) const RETRY_MS: u64 = 1000;

/// A generation that ends before this has hardly lived, and the next one waits.
const HARDLY_LIVED_US: i64 = 1_000_000;
/// How far apart generations are that hardly live.
const SHORTEST_PAUSE_MS: u64 = 100;
const LONGEST_PAUSE_MS: u64 = 5000;

/// What the host is at after a start, by the name that readiness gives it.
const PICKING_UP: &str = "picking up runs";

/// How long tasks may take to end once the host stops. They look whether it does between steps, and no step takes a
/// second: whatever is left after this is frozen, and must not keep the process from ending. Supervisors give it half a
/// minute, of which requests in progress may take ten seconds.
const FINISHING: Duration = Duration::from_secs(15);
/// How often the watchdog is shown that workers run while the host stops.
const BEAT: Duration = Duration::from_millis(250);

/// How many runs are stepped at a time where there are no step threads.
const INLINE_PLACES: usize = 64;

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    /// Taken out of everything that is remembered or written to a file.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) plans: Plans,
    pub(crate) loading: LoadLocks,
    /// One annotation of a run after the other.
    pub(crate) annotating: LoadLocks,
    /// The same for ledgers. Taken while a run is being loaded, so they cannot share a lock with runs.
    pub(crate) loading_ledgers: LoadLocks,
    pub(crate) timers: Timers,
    pub(crate) hub: Arc<Hub>,
    pub(crate) webhooks: Webhooks,
    pub(crate) observing: Option<Observing>,
    /// Serialises starts that must be the only active run of their scope, for each scope.
    pub(crate) exclusive: LoadLocks,
    /// Starts that know which versions they see and are not queued yet; see [`crate::Host::prune`].
    pub(crate) starting: Starts,
    /// Serialises registrations, so that version numbers have no gaps or twins.
    pub(crate) registering: tokio::sync::Mutex<()>,
    /// What the host knows of itself.
    pub(crate) vitals: Vitals,
    /// Descendants of each tree that is growing in this process.
    pub(crate) trees: DashMap<RunId, u64>,
    /// Replays that are being written down: two writers of one log would meet.
    pub(crate) replaying: DashSet<RunId>,
    pub(crate) importing: crate::history::transfer::Importing,
    /// Where models are reached, and the calls under way.
    pub(crate) models: Models,
    pub(crate) calls: Calls,
    /// What these may yet spend, by tree.
    pub(crate) in_flight: AllInFlight,
    /// What is being seen to on other hosts.
    pub(crate) mandates: Mandates,
    /// How model providers and other hosts answered last.
    pub(crate) last_requests: LastRequests,
    /// The agents there are.
    pub(crate) roster: ArcSwap<Roster>,
    /// The other hosts on this store, if there can be any.
    pub(crate) company: ClusterState,
    world: ArcSwap<Generation>,
    trouble: Mutex<Option<CommitError>>,
    janitor: Janitor,
    pub(crate) tasks: TaskTracker,
    /// Whose turn it is to be stepped, which trees are left alone, and what may be stuck.
    pub(crate) turns: Turns,
    pub(crate) quarantines: Quarantines,
    pub(crate) watch: Watch,
    pub(crate) canary: Canary,
    /// How long the next generation waits if this one hardly lives.
    next_pause_ms: Mutex<u64>,
    /// Where tasks run: the writer's own thread starts some too, and it has no scheduler around it.
    scheduler: tokio::runtime::Handle,
    pub(crate) stop: CancellationToken,
    me: Weak<Self>,
}

impl Inner {
    pub(crate) fn new(store: Arc<dyn Store>, options: Options, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Arc<Self> {
        let places = options.step_threads.as_ref().map_or(INLINE_PLACES, crate::StepThreads::places);
        let notes = options.step_notes.clone();
        Self::taking_turns(store, options, clock, ids, Turns::new(places, places.div_ceil(2), notes), places)
    }

    /// A host over another store, without a life of its own. Its steps are this host's steps: they take their turns with
    /// them. They leave no notes, because the runs there may have the names of runs here.
    pub(crate) fn beside(&self, store: Arc<dyn Store>) -> Arc<Self> {
        let options = Options { step_notes: None, ..self.options.clone() };
        let places = self.options.step_threads.as_ref().map_or(INLINE_PLACES, crate::StepThreads::places);
        Self::taking_turns(store, options, Arc::clone(&self.clock), Arc::clone(&self.ids), self.turns.clone(), places)
    }

    fn taking_turns(
        store: Arc<dyn Store>,
        options: Options,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        turns: Turns,
        places: usize,
    ) -> Arc<Self> {
        let (options, test_secrets) = options.equipped();
        let hub = Arc::new(Hub::default());
        let generation = store.generation();
        let hooks = options.test_hooks.clone();
        let inner = Arc::new_cyclic(|me| Self {
            models: options.all_models(),
            calls: Calls::default(),
            in_flight: AllInFlight::default(),
            mandates: Mandates::default(),
            last_requests: LastRequests::default(),
            roster: ArcSwap::from_pointee(options.roster.clone()),
            secrets: options.secrets.iter().cloned().chain(test_secrets).collect(),
            plans: Plans::new(
                Features { conformance: hooks.is_some(), live_agents: true, ..Features::default() },
                hooks,
            ),
            webhooks: Webhooks::new(options.allow_private_webhooks),
            observing: options.observer.clone().map(Observing::new),
            loading: LoadLocks::default(),
            annotating: LoadLocks::default(),
            loading_ledgers: LoadLocks::default(),
            timers: Timers::default(),
            hub: Arc::clone(&hub),
            exclusive: LoadLocks::default(),
            starting: Starts::default(),
            registering: tokio::sync::Mutex::new(()),
            vitals: Vitals::new(clock.now()),
            trees: DashMap::new(),
            replaying: DashSet::new(),
            importing: crate::history::transfer::Importing::default(),
            company: ClusterState::default(),
            world: ArcSwap::from_pointee(Generation::new(generation, store.shared().is_some(), clock.now())),
            trouble: Mutex::new(None),
            janitor: Janitor::default(),
            tasks: TaskTracker::new(),
            turns,
            quarantines: Quarantines::default(),
            watch: Watch::new(places),
            canary: Canary::default(),
            next_pause_ms: Mutex::new(0),
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
    pub(crate) fn world(&self) -> Result<Arc<Generation>, Error> {
        let world = self.world.load_full();
        if world.is_dead() {
            return Err(Error::unavailable(match self.shared() {
                None => "Storage cannot be written right now. Reads still work; try again shortly.",
                Some(_) => "The database cannot be written to right now. Try again shortly.",
            }));
        }
        Ok(world)
    }

    pub(crate) fn current_world(&self) -> Arc<Generation> {
        self.world.load_full()
    }

    pub(crate) fn janitor(&self) -> &Janitor {
        &self.janitor
    }

    pub(crate) fn readiness(&self) -> Readiness {
        // A host that writes nothing finds out by its lease.
        let lost = self.trouble.lock().clone().map(|error| Trouble {
            reason: if error.names_nobody() {
                error.to_string()
            } else {
                "a write was refused; starting over".to_owned()
            },
            detail: error.to_string(),
        });
        let trouble = lost.or_else(|| self.unheard().map(Trouble::from));
        let trouble = trouble.or_else(|| self.watch.trouble()).or_else(|| self.canary_trouble().map(Trouble::from));
        let (reason, detail) = trouble.map(|trouble| (trouble.reason, trouble.detail)).unzip();
        Readiness { ready: reason.is_none(), reason, detail }
    }

    /// A commit failed: the heads of that generation are worthless.
    pub(crate) fn lost(&self, generation: u64, error: &CommitError) {
        let world = self.world.load_full();
        if world.generation != generation || world.is_dead() {
            return;
        }
        *self.trouble.lock() = Some(error.clone());
        // First of all: whoever waits for these heads is woken, whatever comes of the rest.
        world.kill(error);
        if let CommitError::Refused { run: Some(run), reason } = error {
            self.note_refused(run, reason);
        }
        tracing::error!(reason = %error, generation, "a commit failed; reloading from what is durable");
        self.spawn(|inner| async move {
            inner.until_done("starting over", || inner.start_over(&world)).await;
            inner.until_done(PICKING_UP, || inner.begin_again(&world)).await;
        });
    }

    /// Does a piece of work that the host cannot do without, as often as it takes: after a panic it is named, the host is
    /// not ready, and it is tried again a little later.
    async fn until_done<F: Future<Output = ()>>(&self, name: &'static str, work: impl Fn() -> F) {
        let mut pause = SHORTEST_PAUSE_MS;
        while let Err(panic) = AssertUnwindSafe(work()).catch_unwind().await {
            let why = panic_text(panic.as_ref());
            tracing::error!(task = name, %why, "a task of the host panicked; trying again");
            metrics::counter!("baton_task_restarts_total", "task" => name).increment(1);
            self.watch.task_down(name, why);
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(pause)) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE_MS);
        }
        self.watch.task_up(name);
    }

    /// Tries until the disk takes writes again, then starts over from what is durable. Generations that end soon after
    /// they began are further and further apart.
    async fn start_over(&self, ended: &Generation) {
        let mut pause = self.pause_after(ended);
        while self.world.load().generation == ended.generation {
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(pause)) => {}
                () = self.stop.cancelled() => return,
            }
            match self.started_over().await {
                Ok(generation) => {
                    // Children that were lost count no longer.
                    self.trees.clear();
                    if self.shared().is_some() {
                        // A new session has a lease of its own, and others may have been at what the old one had begun.
                        self.renewed_now();
                        self.calls.forget_intentions();
                    }
                    // Before anybody can lose the new one.
                    *self.trouble.lock() = None;
                    self.world.store(Arc::new(Generation::new(generation, self.shared().is_some(), self.clock.now())));
                    tracing::info!(generation, "storage takes writes again");
                    return;
                }
                Err(error) => tracing::warn!(%error, "storage still cannot be written"),
            }
            pause = (pause * 2).clamp(SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS);
        }
    }

    /// What a new generation begins with. Should that end in turn, the one after it does all of this.
    async fn begin_again(&self, ended: &Generation) {
        let world = self.current_world();
        if self.stop.is_cancelled() || world.is_dead() || world.generation == ended.generation {
            return;
        }
        self.webhooks.started_over();
        self.keep_quarantines(&world);
        self.judge_refused(ended).await;
        self.recover().await;
    }

    /// How long to wait before the next generation begins: not at all, unless this one has hardly lived.
    fn pause_after(&self, ended: &Generation) -> u64 {
        let lived = self.clock.now().as_micros() - ended.began.as_micros();
        let mut pause = self.next_pause_ms.lock();
        let now = if lived > HARDLY_LIVED_US { 0 } else { *pause };
        *pause = if now == 0 { SHORTEST_PAUSE_MS } else { (now * 2).min(LONGEST_PAUSE_MS) };
        now
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

    pub(crate) fn me(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    /// Runs a task that steps runs, where that is done.
    pub(crate) fn spawn_step<F, T>(&self, task: F)
    where
        F: FnOnce(Arc<Self>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        if let Some(me) = self.me.upgrade() {
            self.tasks.spawn_on(task(me), self.step_scheduler());
        }
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
        self.to_its_end(work, &self.scheduler).await
    }

    /// The same for work that steps runs, or computes what a tenant wrote.
    pub(crate) async fn see_through_steps<F, T, R>(&self, work: F) -> Result<R, Error>
    where
        F: FnOnce(Arc<Self>) -> T,
        T: Future<Output = Result<R, Error>> + Send + 'static,
        R: Send + 'static,
    {
        self.to_its_end(work, self.step_scheduler()).await
    }

    async fn to_its_end<F, T, R>(&self, work: F, place: &tokio::runtime::Handle) -> Result<R, Error>
    where
        F: FnOnce(Arc<Self>) -> T,
        T: Future<Output = Result<R, Error>> + Send + 'static,
        R: Send + 'static,
    {
        let Some(me) = self.me.upgrade() else { return Err(Error::stopping()) };
        // A task that nobody waits for any more goes on.
        let task = self.tasks.spawn_on(work(me), place);
        task.await.unwrap_or_else(|error| Err(cut_short(&error)))
    }

    /// Where tasks run that step runs.
    fn step_scheduler(&self) -> &tokio::runtime::Handle {
        self.options.step_threads.as_ref().map_or(&self.scheduler, |threads| threads.handle())
    }

    /// Hands everything that was pushed to the writer.
    pub(crate) fn flush(&self, world: &Generation) {
        world.outbox.flush(self.store.as_ref(), world.generation);
    }

    pub(crate) fn start_tasks(&self) {
        self.start_watchdog();
        if self.options.watchdog.is_some() {
            self.keep("canary", |inner| async move { inner.keep_canary().await });
        }
        self.keep("timers", |inner| async move { inner.keep_time().await });
        self.keep("refilling timers", |inner| async move { inner.keep_refilling().await });
        self.keep("tidying", |inner| async move { inner.tidy().await });
        self.keep("webhooks", |inner| async move { crate::services::webhooks::deliver(inner).await });
        self.keep("dead letters", |inner| async move { crate::services::webhooks::keep(inner).await });
        if self.observing.is_some() {
            self.keep("observer", |inner| async move { inner.keep_observing().await });
        }
        self.spawn(|inner| async move { inner.measure_at_start().await });
        self.work_in_company();
        self.spawn(|inner| async move { inner.until_done(PICKING_UP, || inner.recover()).await });
    }

    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        let closing = async {
            if tokio::time::timeout(FINISHING, self.tasks.wait()).await.is_err() {
                let (tasks, names) = (self.tasks.len(), self.watch.under_way().join(", "));
                tracing::warn!(tasks, %names, "some work did not end in time and is left; the next start asks anew");
            }
            let world = self.world.load_full();
            world.outbox.flush(self.store.as_ref(), world.generation);
            self.report_the_rest().await;
            self.store.close().await;
        };
        // The watchdog looks on until the end, and its task that shows that workers run has stopped.
        let beating = async {
            loop {
                self.watch.beat();
                tokio::time::sleep(BEAT).await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = beating => {}
        }
        self.watch.over();
    }
}
