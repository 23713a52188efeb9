//! What happens after a commit: waiters and subscribers are told at once, heads that nobody needs leave memory a
//! little later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use baton_model::RunId;
use baton_store::{CommitError, Committed, LedgerCommitted, Observer};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::inner::Inner;
use crate::services::notifications::Hub;
use crate::services::timers::HORIZON_MS;

/// Ended runs kept in memory for the reads that usually follow.
const KEEP_ENDED: usize = 1024;
/// How long their logs may be together: a long log is what makes a state large, and reading it again slow.
const KEEP_RECORDS: u64 = 200_000;
/// When a head that somebody had is looked at again. There are as many of them as step threads and readers.
const BUSY_FOR: Duration = Duration::from_millis(100);

pub(crate) struct CommitWatch {
    inner: Weak<Inner>,
    hub: Arc<Hub>,
}

impl CommitWatch {
    pub(crate) fn new(inner: Weak<Inner>, hub: Arc<Hub>) -> Self {
        Self { inner, hub }
    }
}

impl Observer for CommitWatch {
    fn committed(&self, runs: &[Committed], ledgers: &[LedgerCommitted]) {
        let Some(inner) = self.inner.upgrade() else { return };
        let world = inner.current_world();
        for committed in ledgers {
            if let Some(ledger) = world.ledgers.get(&committed.ledger) {
                ledger.on_disk(committed.version);
            }
        }
        for committed in runs {
            if let Some(observing) = &inner.observing {
                observing.grew(&world, committed);
            }
            world.committed(&committed.run, committed.next_seq);
            self.hub.committed(&committed.run, committed.next_seq);
            inner.webhooks.committed(&committed.run, committed.next_seq);
        }
        inner.janitor().visit(runs.iter().map(|committed| committed.run.clone()));
    }

    fn failed(&self, generation: u64, error: &CommitError) {
        if let Some(inner) = self.inner.upgrade() {
            inner.lost(generation, error);
        }
    }
}

/// Runs whose records have just become durable and may be able to leave memory.
#[derive(Default)]
pub(crate) struct Janitor {
    visits: Mutex<Vec<RunId>>,
    work: Notify,
}

impl Janitor {
    pub(crate) fn visit(&self, runs: impl IntoIterator<Item = RunId>) {
        self.visits.lock().extend(runs);
        self.work.notify_one();
    }
}

impl Inner {
    /// Everything about a run can be derived again from its log, so a head whose records are all on disk and which
    /// has nothing to do soon is only a cache. Ended runs stay for a while; waiting ones leave at once.
    pub(crate) async fn tidy(&self) {
        let mut ended = Ended::default();
        let mut busy = BTreeSet::new();
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.janitor().work.notified() => {}
                () = tokio::time::sleep(BUSY_FOR), if !busy.is_empty() => {}
                () = self.stop.cancelled() => return,
            }
            let visits = std::mem::take(&mut *self.janitor().visits.lock());
            for run in std::mem::take(&mut busy).into_iter().chain(visits) {
                match self.judge_head(&run) {
                    Verdict::Busy => drop(busy.insert(run)),
                    Verdict::Leave => busy.extend((!self.drop_head(&run)).then_some(run)),
                    Verdict::Ended { records } => {
                        for oldest in ended.add(run, records) {
                            busy.extend((!self.drop_head(&oldest)).then_some(oldest));
                        }
                    }
                    Verdict::Stay => {}
                }
            }
        }
    }

    fn judge_head(&self, run: &RunId) -> Verdict {
        let world = self.current_world();
        let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot)) else { return Verdict::Stay };
        if slot.is_stepping() {
            return Verdict::Busy;
        }
        let Some(head) = slot.head_now() else { return Verdict::Busy };
        if head.gone {
            return if slot.committed() < head.queued { Verdict::Stay } else { Verdict::Leave };
        }
        if slot.committed() < head.state.next_seq() {
            return Verdict::Stay;
        }
        if head.state.status().is_terminal() {
            return Verdict::Ended { records: head.state.next_seq() };
        }
        let soon = self.clock.now().plus_millis(HORIZON_MS);
        let due_soon = head.state.wake_at().is_some_and(|at| at <= soon);
        if due_soon || head.checking > 0 || head.state.has_ready_work() || head.state.is_moving_children() {
            Verdict::Stay
        } else {
            Verdict::Leave
        }
    }

    /// Takes a head out of memory if it is still not needed. False if somebody has it, so that it must be asked again.
    fn drop_head(&self, run: &RunId) -> bool {
        let world = self.current_world();
        let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot)) else { return true };
        if slot.is_stepping() {
            return false;
        }
        let Some(mut head) = slot.head_now() else { return false };
        let needed = head.checking > 0 || head.state.has_ready_work() || head.state.is_moving_children();
        let left = head.gone && slot.committed() >= head.queued;
        if left || (slot.committed() >= head.state.next_seq() && !needed) {
            head.gone = true;
            world.slots.remove_if(run, |_, current| Arc::ptr_eq(current, &slot));
            if head.state.status().is_terminal() {
                self.trees.remove(run);
            }
        }
        true
    }
}

enum Verdict {
    Stay,
    /// Somebody has it, or is about to: it is looked at again a little later.
    Busy,
    Leave,
    Ended {
        records: u64,
    },
}

/// The ended runs in memory, oldest first.
#[derive(Default)]
struct Ended {
    order: VecDeque<RunId>,
    records: BTreeMap<RunId, u64>,
    total: u64,
}

impl Ended {
    /// Takes one in. Returns the oldest, as long as there are too many.
    fn add(&mut self, run: RunId, records: u64) -> Vec<RunId> {
        if self.records.insert(run.clone(), records).is_none() {
            self.order.push_back(run);
            self.total += records;
        }
        let mut leave = Vec::new();
        while (self.order.len() > KEEP_ENDED || (self.total > KEEP_RECORDS && self.order.len() > 1))
            && let Some(oldest) = self.order.pop_front()
        {
            self.total -= self.records.remove(&oldest).unwrap_or(0);
            leave.push(oldest);
        }
        leave
    }
}
