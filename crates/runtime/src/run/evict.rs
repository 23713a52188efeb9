//! Live runs that nobody needs leave memory a little after their records are on disk.

use crate::run::eviction_queue::EvictionQueue;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;

use crate::clock::Clock;
use crate::history::checkpoints::queue::CheckpointQueue;
use crate::journal::storage::Storage;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::timers::HORIZON_MS;
use crate::tasks::Tasks;

/// Ended runs kept in memory for the reads that usually follow.
const KEEP_ENDED: usize = 1024;
/// How long their logs may be together: a long log is what makes a state large, and reading it again slow.
const KEEP_RECORDS: u64 = 200_000;
/// When a live run that somebody had is looked at again. There are as many of them as step threads and readers.
const BUSY_FOR: Duration = Duration::from_millis(100);

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

/// Takes live runs out of memory that nobody needs.
pub(crate) struct Evictor {
    pub(crate) checkpoint_queue: Arc<CheckpointQueue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) trees: Arc<TreeSizes>,
}

impl Evictor {
    /// Everything about a run can be derived again from its log, so a live run whose records are all on disk and which
    /// has nothing to do soon is only a cache. Ended runs stay for a while; waiting ones leave at once.
    pub(crate) async fn tidy(&self) {
        let mut ended = Ended::default();
        let mut busy = BTreeSet::new();
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.eviction_queue.work.notified() => {}
                () = tokio::time::sleep(BUSY_FOR), if !busy.is_empty() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            let visits = std::mem::take(&mut *self.eviction_queue.visits.lock());
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
        let live = self.storage.current();
        let Some(handle) = live.run(run) else { return Verdict::Stay };
        if handle.is_stepping() {
            return Verdict::Busy;
        }
        let Some(head) = handle.head_now() else { return Verdict::Busy };
        if head.gone {
            return if handle.committed() < head.queued { Verdict::Stay } else { Verdict::Leave };
        }
        if handle.committed() < head.state.next_seq() {
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

    /// Takes a live run out of memory if it is still not needed. False if somebody has it, so that it must be asked again.
    fn drop_head(&self, run: &RunId) -> bool {
        let live = self.storage.current();
        let Some(handle) = live.run(run) else { return true };
        if handle.is_stepping() {
            return false;
        }
        let Some(mut head) = handle.head_now() else { return false };
        let needed = head.checking > 0 || head.state.has_ready_work() || head.state.is_moving_children();
        let left = head.gone && handle.committed() >= head.queued;
        if left || (handle.committed() >= head.state.next_seq() && !needed) {
            if !head.gone {
                self.checkpoint_queue.leaves(&head.state, &head.row, head.checkpointed);
            }
            head.gone = true;
            live.drop_run(run, &handle);
            if head.state.status().is_terminal() {
                self.trees.forget(run);
            }
        }
        true
    }
}
