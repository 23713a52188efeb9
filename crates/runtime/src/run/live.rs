//! The run live runs in memory. One generation of them: when a commit fails, the whole world is thrown away and what is
//! needed is loaded again from what is durable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_engine::{NodeRequest, RunState, wanted};
use baton_model::{RunId, RunStatus, TenantId, Timestamp};
use baton_store::{RunRow, Write};
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::journal::durable::Progress;
use crate::journal::ending::Ending;
use crate::run::Ahead;
use crate::run::tree::root_of;
use crate::services::budgets::Account;
use crate::services::versioned::prepared::Prepared;
use crate::services::versioned::run_stores::RunStores;

/// How long whoever only looks waits for a run that is being stepped. A step takes milliseconds; what is on disk can be
/// shown without it.
const LOOK_TIMEOUT: Duration = Duration::from_millis(500);

/// One run in memory.
pub(crate) struct RunHandle {
    /// The top of its tree, and whose it is: the same for as long as the run lives.
    pub(crate) root: RunId,
    pub(crate) tenant: TenantId,
    /// Whoever steps the run, or is about to. Taken before a turn, so that whoever waits here holds no place that others
    /// could be stepped in.
    stepping: tokio::sync::Mutex<()>,
    /// Held for as long as a step takes, and a step may never end: whoever wants it waits without a thread. Nothing is
    /// awaited under it.
    head: tokio::sync::Mutex<LiveRun>,
    /// Nobody need wait for the lock any more: the tree was put in quarantine, perhaps because of the step that holds it.
    abandoned: CancellationToken,
    /// How many records are on disk.
    pub(crate) progress: Progress,
}

pub(crate) struct LiveRun {
    /// Ahead of the disk by whatever is still queued.
    pub(crate) state: Arc<RunState>,
    pub(crate) row: RunRow,
    /// How many records have been queued to the disk: fewer than the row says if queueing them failed half-way.
    pub(crate) queued: u64,
    /// No longer in the map: whoever holds this handle must fetch a fresh one.
    pub(crate) gone: bool,
    /// Loaded from disk.
    pub(crate) recovered: bool,
    /// What its children are doing has yet to be found out.
    pub(crate) asks_children: bool,
    /// Children whose creation, end or cancellation is already being seen to.
    pub(crate) starting: BTreeSet<RunId>,
    pub(crate) awaiting: BTreeSet<RunId>,
    /// How many of them a loaded run has yet to hear of.
    pub(crate) checking: usize,
    pub(crate) cancelling: BTreeSet<RunId>,
    /// The memory scope and the workspace this run reads and writes.
    pub(crate) ledgers: RunStores,
    /// What the tree of this run spends from, if that is bounded.
    pub(crate) account: Option<Arc<Account>>,
    /// What is being read for a node that asks, and what was read.
    pub(crate) requesting: Option<Arc<NodeRequest>>,
    pub(crate) prepared: Option<(Arc<NodeRequest>, Prepared)>,
    /// What a node asks in the state with this many records.
    pub(crate) asked: Option<(u64, Option<Arc<NodeRequest>>)>,
    /// The tool call in this process that was let through and is being answered.
    pub(crate) admitted: Option<String>,
    pub(crate) ahead: Ahead,
    /// A write that must become durable together with the next records.
    pub(crate) attached: Option<CommitHook>,
}

/// Made from the run's status, and the instant, once the step it belongs to is folded.
pub(crate) type CommitHook = Box<dyn FnOnce(RunStatus, Timestamp) -> Write + Send>;

impl RunHandle {
    pub(crate) fn new(head: LiveRun, committed: u64) -> Self {
        let (root, tenant) = (root_of(&head.row).clone(), head.row.tenant.clone());
        Self {
            root,
            tenant,
            stepping: tokio::sync::Mutex::new(()),
            head: tokio::sync::Mutex::new(head),
            abandoned: CancellationToken::new(),
            progress: Progress::new(committed),
        }
    }

    /// Waits until nobody else steps the run. `None` if the run was abandoned meanwhile.
    pub(crate) async fn stepping(&self) -> Option<MutexGuard<'_, ()>> {
        self.unless_abandoned(&self.stepping).await
    }

    /// Waits for the run's lock. `None` if the run was abandoned meanwhile.
    pub(crate) async fn head(&self) -> Option<MutexGuard<'_, LiveRun>> {
        self.unless_abandoned(&self.head).await
    }

    async fn unless_abandoned<'a, T>(&'a self, lock: &'a tokio::sync::Mutex<T>) -> Option<MutexGuard<'a, T>> {
        if let Ok(taken) = lock.try_lock() {
            return Some(taken);
        }
        tokio::select! {
            biased;
            taken = lock.lock() => Some(taken),
            () = self.abandoned.cancelled() => None,
        }
    }

    /// The same for a look that need not be the newest: `None` too if the run is being stepped for long.
    pub(crate) async fn head_soon(&self) -> Option<MutexGuard<'_, LiveRun>> {
        tokio::time::timeout(LOOK_TIMEOUT, self.head()).await.ok().flatten()
    }

    /// Whether somebody steps the run, or is about to.
    pub(crate) fn is_stepping(&self) -> bool {
        self.stepping.try_lock().is_err()
    }

    /// The lock, if nobody has it.
    pub(crate) fn head_now(&self) -> Option<MutexGuard<'_, LiveRun>> {
        self.head.try_lock().ok()
    }

    /// Lets go of everybody who waits for the lock.
    pub(crate) fn abandon(&self) {
        self.abandoned.cancel();
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.is_cancelled()
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress.committed()
    }

    /// Waits until the first `count` records are on disk.
    pub(crate) async fn durable(&self, ending: &Ending, count: u64) -> Result<(), Error> {
        self.progress.durable(ending, count).await
    }
}

impl LiveRun {
    /// What a node asks, written out once for each state: it may hold everything that an agent sees.
    pub(crate) fn node_request(&mut self) -> Option<Arc<NodeRequest>> {
        let records = self.state.next_seq();
        let known = self.asked.take().filter(|(of, _)| *of == records);
        let (_, asked) = self.asked.insert(known.unwrap_or_else(|| (records, wanted(&self.state).map(Arc::new))));
        asked.clone()
    }

    pub(crate) fn new(state: Arc<RunState>, row: RunRow, ledgers: RunStores, recovered: bool) -> Self {
        Self {
            queued: state.next_seq(),
            state,
            row,
            ledgers,
            account: None,
            requesting: None,
            asked: None,
            prepared: None,
            admitted: None,
            gone: false,
            recovered,
            asks_children: recovered,
            starting: BTreeSet::new(),
            awaiting: BTreeSet::new(),
            checking: 0,
            cancelling: BTreeSet::new(),
            ahead: Ahead::default(),
            attached: None,
        }
    }
}
