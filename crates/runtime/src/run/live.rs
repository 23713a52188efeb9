//! A run in memory. When a write of its tree is lost, or one that it builds on, it is thrown away and loaded again from
//! what is durable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_engine::{NodeRequest, RunState, wanted};
use baton_model::{RunId, RunStatus, TenantId, Timestamp};
use baton_store::{Chains, CommitError, RunRow, VersionedStoreId, Write, WriteChain};
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::journal::dependents::Linked;
use crate::journal::durable::Progress;
use crate::journal::ending::Ending;
use crate::run::Ahead;
use crate::run::tree::root_of;
use crate::services::budgets::Account;
use crate::services::budgets::spending::LiveSpending;
use crate::services::versioned::prepared::Prepared;
use crate::services::versioned::run_stores::RunStores;

/// How long whoever only looks waits for a run that is being stepped. A step takes milliseconds; what is on disk can be
/// shown without it.
const LOOK_TIMEOUT: Duration = Duration::from_millis(500);

/// One run in memory.
pub(crate) struct RunHandle {
    id: RunId,
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
    /// What its writes are links of, with those of the other runs of its tree.
    pub(crate) chain: Arc<WriteChain>,
    /// Those of its memory scope and its workspace.
    stores: [Arc<WriteChain>; 2],
}

pub(crate) struct LiveRun {
    /// What its writes are links of.
    pub(crate) chain: Arc<WriteChain>,
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
    /// What the run itself has spent of that.
    pub(crate) spending: LiveSpending,
    /// What is being read for a node that asks, and what was read.
    pub(crate) requesting: Option<Arc<NodeRequest>>,
    pub(crate) prepared: Option<(Arc<NodeRequest>, Prepared)>,
    /// What a node asks in the state with this many records.
    pub(crate) asked: Option<(u64, Option<Arc<NodeRequest>>)>,
    /// The tool call in this process that was let through and is being answered.
    pub(crate) admitted: Option<String>,
    pub(crate) ahead: Ahead,
    /// Where its newest checkpoint is, or will be soon.
    pub(crate) checkpointed: u64,
    /// A write that must become durable together with the next records.
    pub(crate) attached: Option<CommitHook>,
}

/// Made from the run's status, and the instant, once the step it belongs to is folded.
pub(crate) type CommitHook = Box<dyn FnOnce(RunStatus, Timestamp) -> Write + Send>;

impl Linked for RunHandle {
    fn chains(&self) -> impl Iterator<Item = &Arc<WriteChain>> {
        std::iter::once(&self.chain).chain(&self.stores)
    }
}

impl RunHandle {
    pub(crate) fn new(head: LiveRun, committed: u64) -> Self {
        let (root, tenant) = (root_of(&head.row).clone(), head.row.tenant.clone());
        let stores = [&head.ledgers.memory, &head.ledgers.workspace].map(|store| Arc::clone(&store.chain));
        Self {
            chain: Arc::clone(&head.chain),
            stores,
            id: head.row.id.clone(),
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

    /// Something that this was derived from was lost: nothing more of it becomes durable.
    pub(crate) fn is_lost(&self) -> bool {
        self.chain.is_broken() || self.stores.iter().any(|chain| chain.is_broken())
    }

    /// It is lost: nothing more of its tree is written from here. Whoever waits for it is told when what was written
    /// before is known.
    pub(crate) fn give_up(&self) {
        self.chain.break_untold(&CommitError::Stale);
    }

    /// Waits until the first `count` records are on disk.
    pub(crate) async fn durable(&self, ending: &Ending, count: u64) -> Result<(), Error> {
        self.progress.durable(ending, &self.chain, count).await.map_err(|error| match error {
            // Another run of the tree wrote what was refused: whoever asked for this one may ask again.
            CommitError::Refused { run: Some(run), .. } if run != self.id => CommitError::Stale.into(),
            error => error.into(),
        })
    }
}

impl LiveRun {
    /// What a write of this run belongs to: its tree, the versioned store it changes, and those of which it may have seen
    /// what is not on disk.
    pub(crate) fn chains(&self, changed: Option<&VersionedStoreId>) -> Chains {
        let mut chains = Chains::link(Arc::clone(&self.chain));
        for store in [&self.ledgers.memory, &self.ledgers.workspace] {
            if changed == Some(&store.id) {
                chains.links.push(Arc::clone(&store.chain));
            } else if store.version() > store.committed() {
                chains.builds_on.push(Arc::clone(&store.chain));
            }
        }
        chains
    }

    /// What a node asks, written out once for each state: it may hold everything that an agent sees.
    pub(crate) fn node_request(&mut self) -> Option<Arc<NodeRequest>> {
        let records = self.state.next_seq();
        let known = self.asked.take().filter(|(of, _)| *of == records);
        let (_, asked) = self.asked.insert(known.unwrap_or_else(|| (records, wanted(&self.state).map(Arc::new))));
        asked.clone()
    }

    pub(crate) fn new(
        chain: Arc<WriteChain>,
        state: Arc<RunState>,
        row: RunRow,
        ledgers: RunStores,
        recovered: bool,
    ) -> Self {
        Self {
            chain,
            queued: state.next_seq(),
            state,
            row,
            ledgers,
            account: None,
            spending: LiveSpending::default(),
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
            checkpointed: 0,
            attached: None,
        }
    }
}
