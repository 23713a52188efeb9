//! What happens after a commit: waiters and subscribers are told at once, heads that nobody needs leave memory a
//! little later.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use baton_model::RunId;
use baton_store::{CommitError, Committed, LedgerCommitted, Observer};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::hub::Hub;
use crate::inner::Inner;
use crate::timers::HORIZON_MS;

/// Ended runs kept in memory for the reads that usually follow.
const KEEP_ENDED: usize = 1024;
/// How long their logs may be together: a long log is what makes a state large, and reading it again slow.
const KEEP_RECORDS: u64 = 200_000;

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
        }
        inner.janitor().visit(runs.iter().map(|committed| committed.run.clone()));
    }

    fn failed(&self, generation: u64, error: &CommitError) {
        if let Some(inner) = self.inner.upgrade() {
            inner.lost(generation, error.to_string());
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
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.janitor().work.notified() => {}
                () = self.stop.cancelled() => return,
            }
            let visits = std::mem::take(&mut *self.janitor().visits.lock());
            for run in visits {
                match self.judge_head(&run) {
                    Verdict::Leave => self.drop_head(&run),
                    Verdict::Ended { records } => ended.add(run, records, |oldest| self.drop_head(oldest)),
                    Verdict::Stay => {}
                }
            }
        }
    }

    fn judge_head(&self, run: &RunId) -> Verdict {
        let world = self.current_world();
        let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot)) else { return Verdict::Stay };
        let head = slot.head.lock();
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

    /// Takes a head out of memory if it is still not needed.
    fn drop_head(&self, run: &RunId) {
        let world = self.current_world();
        let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot)) else { return };
        let mut head = slot.head.lock();
        let needed = head.checking > 0 || head.state.has_ready_work() || head.state.is_moving_children();
        if slot.committed() >= head.state.next_seq() && !needed {
            head.gone = true;
            world.slots.remove_if(run, |_, current| Arc::ptr_eq(current, &slot));
            if head.state.status().is_terminal() {
                self.trees.remove(run);
            }
        }
    }
}

enum Verdict {
    Stay,
    Leave,
    Ended { records: u64 },
}

/// The ended runs in memory, oldest first.
#[derive(Default)]
struct Ended {
    order: VecDeque<RunId>,
    records: BTreeMap<RunId, u64>,
    total: u64,
}

impl Ended {
    /// Takes one in, and lets the oldest go while there are too many.
    fn add(&mut self, run: RunId, records: u64, leave: impl Fn(&RunId)) {
        if self.records.insert(run.clone(), records).is_none() {
            self.order.push_back(run);
            self.total += records;
        }
        while self.order.len() > KEEP_ENDED || (self.total > KEEP_RECORDS && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { return };
            self.total -= self.records.remove(&oldest).unwrap_or(0);
            leave(&oldest);
        }
    }
}
