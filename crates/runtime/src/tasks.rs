//! The host's tasks: where they run, and who notices that one ended. Every room starts its tasks here, so that a host
//! that stops waits for all of them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Error;
use crate::clock::{Clock, RETRY_MS};
use crate::panics::{cut_short, panic_text};
use crate::steps::StepThreads;
use crate::watch::Watch;

/// How long a piece of work that panicked is left alone, at first and at most.
const SHORTEST_PAUSE_MS: u64 = 100;
const LONGEST_PAUSE_MS: u64 = 5000;

/// How long tasks may take to end once the host stops. They look whether it does between steps, and no step takes a
/// second: whatever is left after this is frozen, and must not keep the process from ending. Supervisors give it half a
/// minute, of which requests in progress may take ten seconds.
const FINISHING: Duration = Duration::from_secs(15);

/// Where tasks are started, and who waits for them.
pub(crate) struct Tasks {
    tracker: TaskTracker,
    /// Where tasks run: the writer's own thread starts some too, and it has no scheduler around it.
    scheduler: Handle,
    step_threads: Option<StepThreads>,
    pub(crate) stop: CancellationToken,
    clock: Arc<dyn Clock>,
    watch: Arc<Watch>,
}

impl Tasks {
    pub(crate) fn new(clock: Arc<dyn Clock>, watch: Arc<Watch>, step_threads: Option<StepThreads>) -> Self {
        Self {
            tracker: TaskTracker::new(),
            scheduler: Handle::current(),
            step_threads,
            stop: CancellationToken::new(),
            clock,
            watch,
        }
    }

    /// Runs a task that ends with the host.
    pub(crate) fn spawn<R, F, T>(&self, room: &Arc<R>, task: F)
    where
        F: FnOnce(Arc<R>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn_on(task(Arc::clone(room)), &self.scheduler);
    }

    /// Runs a task that steps runs, where that is done.
    pub(crate) fn spawn_step<R, F, T>(&self, room: &Arc<R>, task: F)
    where
        F: FnOnce(Arc<R>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn_on(task(Arc::clone(room)), self.step_scheduler());
    }

    /// Runs a task on threads of the caller's choice.
    pub(crate) fn spawn_on<T>(&self, task: T, place: &Handle) -> JoinHandle<T::Output>
    where
        T: Future + Send + 'static,
        T::Output: Send,
    {
        self.tracker.spawn_on(task, place)
    }

    /// Does work to its end even if the caller hangs up: what it guards or must note afterwards is not left half done.
    pub(crate) async fn see_through<R, F, T, O>(&self, room: &Arc<R>, work: F) -> Result<O, Error>
    where
        F: FnOnce(Arc<R>) -> T,
        T: Future<Output = Result<O, Error>> + Send + 'static,
        O: Send + 'static,
    {
        self.to_its_end(work(Arc::clone(room)), &self.scheduler).await
    }

    /// The same for work that steps runs, or computes what a tenant wrote.
    pub(crate) async fn see_through_steps<R, F, T, O>(&self, room: &Arc<R>, work: F) -> Result<O, Error>
    where
        F: FnOnce(Arc<R>) -> T,
        T: Future<Output = Result<O, Error>> + Send + 'static,
        O: Send + 'static,
    {
        self.to_its_end(work(Arc::clone(room)), self.step_scheduler()).await
    }

    async fn to_its_end<T, O>(&self, work: T, place: &Handle) -> Result<O, Error>
    where
        T: Future<Output = Result<O, Error>> + Send + 'static,
        O: Send + 'static,
    {
        // A task that nobody waits for any more goes on.
        self.tracker.spawn_on(work, place).await.unwrap_or_else(|error| Err(cut_short(&error)))
    }

    /// Where tasks run that step runs.
    pub(crate) fn step_scheduler(&self) -> &Handle {
        self.step_threads.as_ref().map_or(&self.scheduler, StepThreads::handle)
    }

    /// Runs a task until the host stops, however often it ends. One that panics or returns is named, the host is not
    /// ready meanwhile, and it is started again.
    pub(crate) fn keep<R, F, T>(self: &Arc<Self>, room: &Arc<R>, name: &'static str, task: F)
    where
        R: Send + Sync + 'static,
        F: Fn(Arc<R>) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let room = Arc::clone(room);
        self.spawn(self, move |tasks| async move {
            loop {
                let ended = AssertUnwindSafe(task(Arc::clone(&room))).catch_unwind().await;
                if tasks.stop.is_cancelled() {
                    return;
                }
                let why = ended.err().map_or_else(|| "it returned".to_owned(), |panic| panic_text(panic.as_ref()));
                tracing::error!(task = name, %why, "a task of the host stopped; starting it again");
                metrics::counter!("baton_task_restarts_total", "task" => name).increment(1);
                tasks.watch.task_down(name, why);
                tokio::select! {
                    biased;
                    () = tasks.clock.until(tasks.clock.now().plus_millis(RETRY_MS)) => {}
                    () = tasks.stop.cancelled() => return,
                }
                tasks.watch.task_up(name);
            }
        });
    }

    /// The same for a task that cannot be started a second time. Without it the host only knows less: it says so.
    pub(crate) fn keep_once<R, F, T>(self: &Arc<Self>, room: &Arc<R>, name: &'static str, task: F)
    where
        F: FnOnce(Arc<R>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        let task = AssertUnwindSafe(task(Arc::clone(room))).catch_unwind();
        self.spawn(self, move |tasks| async move {
            let ended = task.await;
            if !tasks.stop.is_cancelled() {
                let why = ended.err().map_or_else(|| "it returned".to_owned(), |panic| panic_text(panic.as_ref()));
                tracing::error!(task = name, %why, "a task of the host stopped");
                tasks.watch.task_down(name, why);
            }
        });
    }

    /// Does a piece of work that the host cannot do without, as often as it takes: after a panic it is named, the host
    /// is not ready, and it is tried again a little later.
    pub(crate) async fn until_done<F: Future<Output = ()>>(&self, name: &'static str, work: impl Fn() -> F) {
        let mut pause = SHORTEST_PAUSE_MS;
        while let Err(panic) = AssertUnwindSafe(work()).catch_unwind().await {
            let why = panic_text(panic.as_ref());
            tracing::error!(task = name, %why, "a task of the host panicked; trying again");
            metrics::counter!("baton_task_restarts_total", "task" => name).increment(1);
            self.watch.task_down(name, why);
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(pause)) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE_MS);
        }
        self.watch.task_up(name);
    }

    /// Tells every task to stop.
    pub(crate) fn close(&self) {
        self.stop.cancel();
        self.tracker.close();
    }

    /// Waits for all of them, but not for ever.
    pub(crate) async fn ended(&self) {
        if tokio::time::timeout(FINISHING, self.tracker.wait()).await.is_err() {
            let (tasks, names) = (self.tracker.len(), self.watch.under_way().join(", "));
            tracing::warn!(tasks, %names, "some work did not end in time and is left; the next start asks anew");
        }
    }
}
