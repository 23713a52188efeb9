//! The threads that runs are stepped on, with everything around a piece of work that keeps a bad run from being anybody
//! else's trouble: the note that survives a crash, the watch that finds work without end, and the net that catches a
//! panic. Without the note for what is computed before there is a run: a process that dies of it does not come back to it
//! by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use baton_model::{RunId, TenantId, code};
use baton_store::RunRow;
use futures_util::FutureExt as _;
use tokio_util::task::AbortOnDropHandle;

use super::evaluation::EvaluationShares;
use super::pace::{paced, paced_polls};
use super::threads::{StepThreads, pass};
use super::turns::{Turn, Turns, should_pass};
use super::work::{BeforeWork, Work, WorkKind};
use crate::panics::{cut_short, panic_text};
use crate::run::tree::root_of;
use crate::tasks::Tasks;
use crate::watch::Watch;
use crate::{Error, ErrorKind, Options};

/// Where steps and other computations of tenants run, in fair turns.
pub(crate) struct StepPool {
    tasks: Arc<Tasks>,
    threads: Option<StepThreads>,
    turns: Turns,
    evaluation: Arc<EvaluationShares>,
    watch: Arc<Watch>,
    before_work: Option<BeforeWork>,
    leaves_notes: bool,
}

impl StepPool {
    pub(crate) fn new(tasks: Arc<Tasks>, turns: Turns, watch: Arc<Watch>, options: &Options) -> Self {
        Self {
            tasks,
            threads: options.step_threads.clone(),
            turns,
            evaluation: Arc::new(EvaluationShares::new(options.work_limits.evaluation_units)),
            watch,
            before_work: options.before_work.clone(),
            leaves_notes: options.step_notes.is_some(),
        }
    }

    /// The same threads, in the same turns, for runs of another store. They leave no notes, because the runs there may
    /// have the names of runs here.
    pub(crate) fn without_notes(&self) -> Self {
        Self {
            tasks: Arc::clone(&self.tasks),
            threads: self.threads.clone(),
            turns: self.turns.clone(),
            evaluation: Arc::clone(&self.evaluation),
            watch: Arc::clone(&self.watch),
            before_work: self.before_work.clone(),
            leaves_notes: false,
        }
    }

    /// Does work on the step threads, to its end even if the caller hangs up.
    pub(crate) async fn on_step_threads<R, F, T, O>(&self, room: &Arc<R>, work: F) -> Result<O, Error>
    where
        F: FnOnce(Arc<R>) -> T + Send,
        T: Future<Output = Result<O, Error>> + Send + 'static,
        O: Send + 'static,
    {
        let work = work(Arc::clone(room));
        match &self.threads {
            Some(threads) if !StepThreads::here() => {
                let task = self.tasks.spawn_on(work, threads.handle());
                task.await.unwrap_or_else(|error| Err(cut_short(&error)))
            }
            // Boxed: otherwise every caller's own future would have room for all of it.
            _ => Box::pin(work).await,
        }
    }

    /// The same for work that is of no use to anybody else: it ends when the caller hangs up.
    pub(crate) async fn on_step_threads_while_wanted<R, F, T, O>(&self, room: &Arc<R>, work: F) -> Result<O, Error>
    where
        F: FnOnce(Arc<R>) -> T + Send,
        T: Future<Output = Result<O, Error>> + Send + 'static,
        O: Send + 'static,
    {
        let work = work(Arc::clone(room));
        match &self.threads {
            Some(threads) if !StepThreads::here() => {
                let task = AbortOnDropHandle::new(self.tasks.spawn_on(work, threads.handle()));
                task.await.unwrap_or_else(|error| Err(cut_short(&error)))
            }
            _ => work.await,
        }
    }

    /// Waits for a turn to step a run of this tenant, or to compute something else of its.
    pub(crate) async fn turn(&self, tenant: &TenantId) -> Turn {
        if self.threads.is_some() && should_pass() {
            // Another tenant's task that was just given a place waits in a handle that no other thread takes from, and
            // would wait for as long as what comes now: it goes first.
            pass().await;
        }
        loop {
            while let Some(wait) = self.evaluation.wait(tenant) {
                metrics::counter!("baton_evaluation_waits_total").increment(1);
                tokio::time::sleep(wait).await;
            }
            let turn = self.turns.take(tenant).await;
            // Many wait for the same moment, and the first of them may use all of the next one.
            if self.evaluation.wait(tenant).is_none() {
                return turn;
            }
        }
    }

    /// Computes something of a tenant's that belongs to no run, in its turn. A panic is this caller's error alone.
    pub(crate) async fn compute<R: Send + Sync + 'static, O: Send + 'static>(
        self: &Arc<Self>,
        room: &Arc<R>,
        kind: WorkKind,
        tenant: &TenantId,
        work: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<O, Error> {
        let (tenant, room) = (tenant.clone(), Arc::clone(room));
        self.on_step_threads(self, |pool| async move { pool.compute_here(kind, &tenant, || work(&room)).await }).await
    }

    /// The same for a caller that is on a step thread already, and has no turn.
    pub(crate) async fn compute_here<R>(
        &self,
        kind: WorkKind,
        tenant: &TenantId,
        work: impl FnOnce() -> R,
    ) -> Result<R, Error> {
        self.compute_while(kind, tenant, async { work() }).await
    }

    /// The same for work that waits in between, but for nothing that anybody else may hold: it keeps its turn.
    pub(crate) async fn compute_while<R>(
        &self,
        kind: WorkKind,
        tenant: &TenantId,
        work: impl Future<Output = R>,
    ) -> Result<R, Error> {
        let turn = self.turn(tenant).await;
        self.compute_in(&turn, kind, tenant, work).await
    }

    /// The same in a turn that the caller has, and may need for what comes next.
    pub(crate) async fn compute_in<R>(
        &self,
        turn: &Turn,
        kind: WorkKind,
        tenant: &TenantId,
        work: impl Future<Output = R>,
    ) -> Result<R, Error> {
        turn.unnote();
        self.check_thread(kind);
        // Under a name that is no run's: nothing is put in quarantine for it, but a thread that it takes is missed.
        let name = RunId::new(kind.words());
        let _watched = self.watch.step(turn.place(), &name, &name, tenant);
        let work = async {
            self.before_work(&Work { kind, tenant, run: None, tags: &[] });
            work.await
        };
        let work = paced_polls(turn.gives_way(), AssertUnwindSafe(work).catch_unwind());
        self.evaluation.counted_polls(tenant, work).await.map_err(|panic| {
            let said = panic_text(panic.as_ref());
            tracing::error!(%tenant, work = kind.words(), panic = %said, "a computation panicked");
            metrics::counter!("baton_step_panics_total").increment(1);
            Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The host could not finish this. Its log says why.")
        })
    }

    fn before_work(&self, work: &Work<'_>) {
        if let Some(BeforeWork(before)) = &self.before_work {
            before(work);
        }
    }

    /// Nothing of a tenant's is computed where requests are answered.
    fn check_thread(&self, kind: WorkKind) {
        let here = self.threads.is_none() || StepThreads::here();
        if !here {
            metrics::counter!("baton_steps_elsewhere_total").increment(1);
            tracing::error!(work = kind.words(), "computed outside of the step threads");
        }
        debug_assert!(here, "{} outside of the step threads", kind.words());
    }

    /// Does a piece of a run's work under its name. `Err` is what a panic said.
    pub(crate) fn guarded<R>(&self, turn: &Turn, what: Stepping<'_>, work: impl FnOnce() -> R) -> Result<R, String> {
        let Stepping { kind, root, run, tenant, durable, tags } = what;
        self.check_thread(kind);
        // A definition was compiled once already, when it was registered. Compiling it again is the longest that a start
        // is at one place, and whoever is killed there twice has not died of it.
        if self.leaves_notes && kind != WorkKind::Compile {
            turn.note(root, run, durable);
        } else {
            turn.unnote();
        }
        let _watched = self.watch.step(turn.place(), root, run, tenant);
        let work = AssertUnwindSafe(|| {
            self.before_work(&Work { kind, tenant, run: Some(run), tags });
            paced(turn.gives_way(), work)
        });
        let caught = self.evaluation.counted(tenant, || catch_unwind(work));
        caught.map_err(|panic| {
            let said = panic_text(panic.as_ref());
            tracing::error!(%run, panic = %said, "a step panicked");
            metrics::counter!("baton_step_panics_total").increment(1);
            said
        })
    }
}

/// What is being stepped, or loaded.
#[derive(Clone, Copy)]
pub(crate) struct Stepping<'a> {
    pub(crate) kind: WorkKind,
    pub(crate) root: &'a RunId,
    pub(crate) run: &'a RunId,
    pub(crate) tenant: &'a TenantId,
    /// How many of its records are on disk.
    pub(crate) durable: u64,
    pub(crate) tags: &'a [String],
}

impl<'a> Stepping<'a> {
    /// Work on behalf of a run that is on disk as this row says.
    pub(crate) fn of(row: &'a RunRow, kind: WorkKind) -> Self {
        Self { kind, root: root_of(row), run: &row.id, tenant: &row.tenant, durable: row.next_seq, tags: &row.tags }
    }
}
