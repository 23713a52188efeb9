//! The run heads in memory. One generation of them: when a commit fails, the whole world is thrown away and what is
//! needed is loaded again from what is durable.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_engine::{Consult, RunState};
use baton_model::{RunId, RunStatus, Timestamp};
use baton_store::{LedgerId, RunRow, Write};
use dashmap::{DashMap, DashSet};
use parking_lot::Mutex;

use crate::Error;
use crate::budgets::{Account, Budgets};
use crate::ledgers::{Ledger, Ledgers, Prepared, RunLedgers};
use crate::outbox::Outbox;
use crate::progress::Progress;

/// How many ledgers stay in memory after a caller wrote to them.
const KEPT_LEDGERS: usize = 256;

pub(crate) struct World {
    pub(crate) generation: u64,
    pub(crate) slots: DashMap<RunId, Arc<Slot>>,
    pub(crate) outbox: Outbox,
    pub(crate) ledgers: Ledgers,
    /// What trees of runs may still spend.
    pub(crate) budgets: Budgets,
    /// Ledgers that callers wrote to lately, oldest first: the next write finds them as they stand.
    kept: Mutex<VecDeque<Arc<Ledger>>>,
    /// Ledgers that other hosts must ask for before they write, on a store that is shared.
    pub(crate) claimed: DashSet<LedgerId>,
    dead: AtomicBool,
}

/// One run in memory.
pub(crate) struct Slot {
    pub(crate) head: Mutex<Head>,
    /// How many records are on disk.
    progress: Progress,
}

pub(crate) struct Head {
    /// Ahead of the disk by whatever is still queued.
    pub(crate) state: Arc<RunState>,
    pub(crate) row: RunRow,
    /// No longer in the map: whoever holds this slot must fetch a fresh one.
    pub(crate) gone: bool,
    /// Loaded from disk: what its children are doing has to be found out.
    pub(crate) recovered: bool,
    /// Children whose creation, end or cancellation is already being seen to.
    pub(crate) starting: BTreeSet<RunId>,
    pub(crate) awaiting: BTreeSet<RunId>,
    /// How many of them a loaded run has yet to hear of.
    pub(crate) checking: usize,
    pub(crate) cancelling: BTreeSet<RunId>,
    /// The memory scope and the workspace this run reads and writes.
    pub(crate) ledgers: RunLedgers,
    /// What the tree of this run spends from, if that is bounded.
    pub(crate) account: Option<Arc<Account>>,
    /// What is being read for a node that asks, and what was read.
    pub(crate) consulting: Option<Box<Consult>>,
    pub(crate) prepared: Option<(Consult, Prepared)>,
    /// The tool call in this process that was let through and is being answered.
    pub(crate) admitted: Option<String>,
    /// A write that must become durable together with the next records.
    pub(crate) attached: Option<Attached>,
}

/// Made from the run's status, and the instant, once the step it belongs to is folded.
pub(crate) type Attached = Box<dyn FnOnce(RunStatus, Timestamp) -> Write + Send>;

impl World {
    pub(crate) fn new(generation: u64, shared: bool) -> Self {
        Self {
            generation,
            slots: DashMap::new(),
            outbox: Outbox::default(),
            ledgers: Ledgers::new(shared),
            claimed: DashSet::new(),
            budgets: Budgets::default(),
            kept: Mutex::new(VecDeque::new()),
            dead: AtomicBool::new(false),
        }
    }

    /// Keeps a ledger in memory for a while, though nobody holds it.
    pub(crate) fn keep(&self, ledger: &Arc<Ledger>) {
        let mut kept = self.kept.lock();
        if !kept.iter().rev().take(8).any(|known| Arc::ptr_eq(known, ledger)) {
            kept.push_back(Arc::clone(ledger));
        }
        while kept.len() > KEPT_LEDGERS {
            kept.pop_front();
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// A commit of this generation failed: nobody may rely on these heads any more.
    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Release);
        for slot in &self.slots {
            slot.progress.ring();
        }
        self.ledgers.kill();
    }

    pub(crate) fn committed(&self, run: &RunId, next_seq: u64) {
        if let Some(slot) = self.slots.get(run) {
            slot.progress.reached(next_seq);
        }
    }
}

impl Slot {
    pub(crate) fn new(head: Head, committed: u64) -> Self {
        Self { head: Mutex::new(head), progress: Progress::new(committed) }
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress.committed()
    }

    /// Waits until the first `count` records are on disk.
    pub(crate) async fn durable(&self, world: &World, count: u64) -> Result<(), Error> {
        self.progress.durable(world, count).await
    }
}

impl Head {
    pub(crate) fn new(state: Arc<RunState>, row: RunRow, ledgers: RunLedgers, recovered: bool) -> Self {
        Self {
            state,
            row,
            ledgers,
            account: None,
            consulting: None,
            prepared: None,
            admitted: None,
            gone: false,
            recovered,
            starting: BTreeSet::new(),
            awaiting: BTreeSet::new(),
            checking: 0,
            cancelling: BTreeSet::new(),
            attached: None,
        }
    }
}
