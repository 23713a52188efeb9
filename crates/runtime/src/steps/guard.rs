//! One step with everything around it that keeps a bad run from being anybody else's trouble: the note that survives a
//! crash, the watch that finds a step without end, and the net that catches a panic. The same, without the note, for
//! what is computed before there is a run: a process that dies of it does not come back to it by itself.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use baton_engine::Command;
use baton_model::{RunId, RunStatus, TenantId, Timestamp, code};
use baton_store::RunRow;
use futures_util::FutureExt as _;
use tokio_util::task::AbortOnDropHandle;

use super::pace::{paced, paced_polls};
use super::threads::pass;
use super::turns::Turn;
use super::turns::should_pass;
use super::{BeforeWork, StepThreads, Work, WorkKind};
use crate::inner::Inner;
use crate::quarantine::{Cause, root_of};
use crate::run::Message;
use crate::run::world::{Generation, LiveRun};
use crate::{Error, Kind};

impl Inner {
    /// Does work on the step threads, to its end even if the caller hangs up.
    pub(crate) async fn on_step_threads<F, T, R>(&self, work: F) -> Result<R, Error>
    where
        F: FnOnce(Arc<Self>) -> T + Send,
        T: Future<Output = Result<R, Error>> + Send + 'static,
        R: Send + 'static,
    {
        let Some(me) = self.me() else { return Err(Error::stopping()) };
        match &self.options.step_threads {
            Some(threads) if !StepThreads::here() => {
                let task = self.tasks.spawn_on(work(me), threads.handle());
                task.await.unwrap_or_else(|error| Err(cut_short(&error)))
            }
            // Boxed: otherwise every caller's own future would have room for all of it.
            _ => Box::pin(work(me)).await,
        }
    }

    /// The same for work that is of no use to anybody else: it ends when the caller hangs up.
    pub(crate) async fn on_step_threads_while_wanted<F, T, R>(&self, work: F) -> Result<R, Error>
    where
        F: FnOnce(Arc<Self>) -> T + Send,
        T: Future<Output = Result<R, Error>> + Send + 'static,
        R: Send + 'static,
    {
        let Some(me) = self.me() else { return Err(Error::stopping()) };
        match &self.options.step_threads {
            Some(threads) if !StepThreads::here() => {
                let task = AbortOnDropHandle::new(self.tasks.spawn_on(work(me), threads.handle()));
                task.await.unwrap_or_else(|error| Err(cut_short(&error)))
            }
            _ => work(me).await,
        }
    }

    /// Waits for a turn to step a run of this tenant, or to compute something else of its.
    pub(crate) async fn turn(&self, tenant: &TenantId) -> Turn {
        if self.options.step_threads.is_some() && should_pass() {
            // Another tenant's task that was just given a place waits in a slot that no other thread takes from, and
            // would wait for as long as what comes now: it goes first.
            pass().await;
        }
        self.turns.take(tenant).await
    }

    /// Computes something of a tenant's that belongs to no run, in its turn. A panic is this caller's error alone.
    pub(crate) async fn compute<R: Send + 'static>(
        &self,
        kind: WorkKind,
        tenant: &TenantId,
        work: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let tenant = tenant.clone();
        self.on_step_threads(|inner| async move { inner.compute_here(kind, &tenant, || work(&inner)).await }).await
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
        paced_polls(turn.gives_way(), AssertUnwindSafe(work).catch_unwind()).await.map_err(|panic| {
            let said = panic_text(panic.as_ref());
            tracing::error!(%tenant, work = kind.words(), panic = %said, "a computation panicked");
            metrics::counter!("baton_step_panics_total").increment(1);
            Error::new(Kind::Internal, code::INTERNAL_ERROR, "The host could not finish this. Its log says why.")
        })
    }

    fn before_work(&self, work: &Work<'_>) {
        if let Some(BeforeWork(before)) = &self.options.before_work {
            before(work);
        }
    }

    /// Nothing of a tenant's is computed where requests are answered.
    fn check_thread(&self, kind: WorkKind) {
        let here = self.options.step_threads.is_none() || StepThreads::here();
        if !here {
            metrics::counter!("baton_steps_elsewhere_total").increment(1);
            tracing::error!(work = kind.words(), "computed outside of the step threads");
        }
        debug_assert!(here, "{} outside of the step threads", kind.words());
    }

    /// Steps a run whose lock is held. `durable` says how many of its records are on disk.
    pub(crate) fn step_guarded(
        &self,
        turn: &Turn,
        world: &Generation,
        head: &mut LiveRun,
        durable: u64,
        command: &Command,
        messages: &mut VecDeque<Message>,
    ) -> Result<Timestamp, Error> {
        let root = root_of(&head.row).clone();
        // One that is being cancelled goes on to its end.
        if !matches!(command, Command::Cancel { .. })
            && head.state.status() != RunStatus::Cancelling
            && let Some(quarantine) = self.quarantines.of(&root)
        {
            return Err(Error::quarantined(&quarantine));
        }
        let said = messages.len();
        let (run, tenant) = (head.row.id.clone(), head.row.tenant.clone());
        let what = Stepping { kind: WorkKind::Step, root: &root, run: &run, tenant: &tenant, durable, tags: &[] };
        let stepped = self.guarded(turn, what, || {
            if let Some(before) = &self.options.before_step {
                before.0(&head.row, matches!(command, Command::Advance));
            }
            self.step_locked(world, head, command, messages)
        });
        match stepped {
            Ok(result) => {
                if head.gone {
                    self.broke(
                        world,
                        &head.row,
                        Cause::StepFailed,
                        "the engine drafted a record that its log cannot have",
                    );
                }
                result
            }
            Err(panic) => {
                // The head may be torn. What it had queued before is on its way; the rest nobody has seen.
                head.gone = true;
                messages.truncate(said);
                self.broke(world, &head.row, Cause::StepFailed, &panic);
                Err(Error::new(Kind::Internal, code::INTERNAL_ERROR, "The run could not go on."))
            }
        }
    }

    /// Does a piece of a run's work under its name. `Err` is what a panic said.
    pub(crate) fn guarded<R>(&self, turn: &Turn, what: Stepping<'_>, work: impl FnOnce() -> R) -> Result<R, String> {
        let Stepping { kind, root, run, tenant, durable, tags } = what;
        self.check_thread(kind);
        // A definition was compiled once already, when it was registered. Compiling it again is the longest that a start
        // is at one place, and whoever is killed there twice has not died of it.
        if self.options.step_notes.is_some() && kind != WorkKind::Compile {
            turn.note(root, run, durable);
        } else {
            turn.unnote();
        }
        let _watched = self.watch.step(turn.place(), root, run, tenant);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            self.before_work(&Work { kind, tenant, run: Some(run), tags });
            paced(turn.gives_way(), work)
        }));
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

/// Called before each step, with whether the run goes on by itself. For tests that need a run to misbehave.
#[derive(Clone)]
pub struct BeforeStep(pub Arc<Before>);

type Before = dyn Fn(&RunRow, bool) + Send + Sync;

impl std::fmt::Debug for BeforeStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BeforeStep")
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

pub(crate) fn cut_short(error: &tokio::task::JoinError) -> Error {
    if error.is_cancelled() {
        return Error::stopping();
    }
    tracing::error!(%error, "work on a run ended in a panic");
    Error::new(Kind::Internal, code::INTERNAL_ERROR, "The host could not finish this. Its log says why.")
}
