//! States that wait to be written. What does not fit is dropped: the next one will do.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::RunState;
use baton_model::{Digest, RunId, TenantId};
use baton_store::{Checkpoint, RunRow};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::journal::generation::Generation;
use crate::run::live::RunHandle;
use crate::run::tree::is_replay;

/// How many states may wait. They are as large as runs are, and only worth something while they are new.
const MOST_WAITING: usize = 32;
/// How large they may be together.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// How many bytes of a state a record is worth: a large state is written less often, so that what is written for
/// checkpoints is in proportion to the log.
pub(super) const BYTES_PER_RECORD: u64 = 1024;
/// A run that leaves memory, or ends, leaves a checkpoint after this part of the usual number of records: folding fewer
/// costs less than reading one.
pub(super) const LEAVING_PART: u64 = 4;

/// The states that wait, one for each run.
pub(crate) struct CheckpointQueue {
    /// After how many records a run is written again; 0 for never.
    every: u64,
    jobs: Mutex<VecDeque<Job>>,
    pub(super) work: Notify,
}

pub(super) enum Job {
    Write(Box<Offered>),
    /// It was found not to be what it should be.
    Delete {
        run: RunId,
        tenant: TenantId,
        key: String,
        seq: u64,
        /// What was found there: what it says its digest is, and what that is.
        said: Digest,
        body: Digest,
    },
}

/// A state, and the row of its run.
pub(super) struct Offered {
    pub(super) state: Arc<RunState>,
    pub(super) row: RunRow,
    /// Who knows when its records are on disk, and the generation in which they were queued; none if they are there
    /// already.
    pub(super) queued: Option<(Arc<RunHandle>, u64)>,
}

impl CheckpointQueue {
    pub(crate) fn new(every: u64) -> Self {
        Self { every, jobs: Mutex::default(), work: Notify::new() }
    }

    /// Looks for none and takes none.
    pub(crate) fn off() -> Self {
        Self::new(0)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.every > 0
    }

    /// A step was queued. `last` is where the run's last checkpoint is; returns where the next one will be, if there is
    /// one.
    pub(crate) fn stepped(&self, live: &Generation, state: &Arc<RunState>, row: &RunRow, last: u64) -> Option<u64> {
        let ended = row.status.is_terminal();
        if !self.is_due(state, row, last, ended) {
            return None;
        }
        let queued = (live.run(&row.id)?, live.generation);
        self.offer(state, row, last, ended, Some(queued))
    }

    /// The run leaves memory, and all of it is on disk.
    pub(crate) fn leaves(&self, state: &Arc<RunState>, row: &RunRow, last: u64) {
        self.offer(state, row, last, true, None);
    }

    /// A log was folded to its end.
    pub(crate) fn folded(&self, state: &RunState, row: &RunRow, last: u64) -> Option<u64> {
        // A row may be older than the records that were read after it.
        if state.next_seq() != row.next_seq || !self.is_due(state, row, last, false) {
            return None;
        }
        self.offer(&Arc::new(state.clone()), row, last, false, None)
    }

    fn is_due(&self, state: &RunState, row: &RunRow, last: u64, leaving: bool) -> bool {
        if self.every == 0 || is_replay(row) || row.pruned.is_some_and(|pruned| pruned.log) {
            return false;
        }
        let usual = self.every.max(state.weight() / BYTES_PER_RECORD);
        let least = if leaving { usual.div_ceil(LEAVING_PART) } else { usual };
        state.next_seq().saturating_sub(last) >= least
    }

    fn offer(
        &self,
        state: &Arc<RunState>,
        row: &RunRow,
        last: u64,
        leaving: bool,
        queued: Option<(Arc<RunHandle>, u64)>,
    ) -> Option<u64> {
        if !self.is_due(state, row, last, leaving) {
            return None;
        }
        let mut jobs = self.jobs.lock();
        jobs.retain(|job| !matches!(job, Job::Write(other) if other.row.id == row.id));
        let waiting: u64 = jobs.iter().map(Job::weight).sum();
        if jobs.len() >= MOST_WAITING || waiting.saturating_add(state.weight()) > MOST_BYTES {
            metrics::counter!("baton_checkpoints_total", "outcome" => "dropped").increment(1);
            return None;
        }
        jobs.push_back(Job::Write(Box::new(Offered { state: Arc::clone(state), row: row.clone(), queued })));
        drop(jobs);
        self.work.notify_one();
        Some(state.next_seq())
    }

    /// Nobody shall read this one again.
    pub(super) fn delete(&self, found: &Checkpoint, tenant: &TenantId) {
        let (run, key, body) = (found.run.clone(), found.key.clone(), Digest::of_bytes(&found.body));
        let mut jobs = self.jobs.lock();
        if self.is_on() && jobs.len() < MOST_WAITING {
            let (tenant, seq, said) = (tenant.clone(), found.seq, found.digest.clone());
            jobs.push_back(Job::Delete { run, tenant, key, seq, said, body });
            drop(jobs);
            self.work.notify_one();
        }
    }

    pub(super) fn next(&self) -> Option<Job> {
        self.jobs.lock().pop_front()
    }
}

impl Job {
    fn weight(&self) -> u64 {
        match self {
            Self::Write(offered) => offered.state.weight(),
            Self::Delete { .. } => 0,
        }
    }
}
