//! Where the supervisor loop stands: the newest decision, and the workers it set to work.

use std::sync::Arc;

use baton_model::{Decision, Fault, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::{Dispatch, FanOutPolicy, OnWorkerFailure};
use baton_model::event::{Attestation, JoinMode};

/// The newest decision on the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) iteration: u64,
    /// Its place on the log: what its effects point at.
    pub(crate) seq: u64,
}

/// The workers of one decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerBatch {
    pub(crate) node: usize,
    pub(crate) iteration: u64,
    pub(crate) workers: Vec<Worker>,
    /// Workers in the order their ends were observed.
    pub(crate) ended: Vec<usize>,
    /// The fan-out is on the log.
    pub(crate) announced: bool,
    /// The join is on the log.
    pub(crate) joined: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Worker {
    pub(crate) id: WorkflowId,
    pub(crate) stage: Stage,
    /// Position among the run's children.
    pub(crate) child: Option<usize>,
    /// The newest chain event of this worker: what the next one is caused by.
    pub(crate) last_seq: u64,
    /// What the child produced, until it is harvested, and what attests it.
    pub(crate) outputs: Map<String, Value>,
    pub(crate) attestation: Option<Attestation>,
    /// What it failed of, as much as is told of it, and which variables its outputs went to.
    pub(crate) error: Option<Arc<Fault>>,
    pub(crate) harvested: Vec<String>,
}

/// The four states of a handoff, and how they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Pending,
    Dispatching,
    Running,
    Completed,
    Harvested,
    /// Completed, but a human refused the merge.
    Withheld,
    Failed,
    Cancelled,
    /// Could not be created.
    Refused,
}

/// Whether a fan-out may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Open,
    Met,
    /// Fail-fast tripped, or the mode can no longer be met.
    Failed,
}

impl WorkerBatch {
    /// The worker whose outputs are in question: the first that is complete, in merge order.
    pub(crate) fn awaiting_merge(&self, dispatch: &Dispatch) -> Option<usize> {
        let ready = |&worker: &usize| {
            self.workers[worker].stage == Stage::Completed && dispatch.harvests(&self.workers[worker].id)
        };
        self.ended.iter().copied().find(ready)
    }

    pub(crate) fn new(node: usize, iteration: u64, workers: &[WorkflowId]) -> Self {
        let workers = workers
            .iter()
            .map(|id| Worker {
                id: id.clone(),
                stage: Stage::Pending,
                child: None,
                last_seq: 0,
                outputs: Map::new(),
                attestation: None,
                error: None,
                harvested: Vec::new(),
            })
            .collect();
        Self { node, iteration, workers, ended: Vec::new(), announced: false, joined: false }
    }

    pub(crate) fn is_parallel(&self, dispatch: &Dispatch) -> bool {
        dispatch.policy == FanOutPolicy::Parallel && self.workers.len() > 1
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.count(|stage| matches!(stage, Stage::Dispatching | Stage::Running))
    }

    pub(crate) fn count(&self, wanted: impl Fn(Stage) -> bool) -> usize {
        self.workers.iter().filter(|worker| wanted(worker.stage)).count()
    }

    pub(crate) fn next_pending(&self) -> Option<usize> {
        self.workers.iter().position(|worker| worker.stage == Stage::Pending)
    }

    /// What the join policy says now.
    pub(crate) fn verdict(&self, dispatch: &Dispatch) -> Verdict {
        let total = self.workers.len();
        let completed = self.count(|s| matches!(s, Stage::Completed | Stage::Harvested | Stage::Withheld));
        let lost = self.count(|s| matches!(s, Stage::Failed | Stage::Cancelled | Stage::Refused));
        let settled = completed + lost;
        if dispatch.join.on_failure == OnWorkerFailure::FailFast && lost > 0 && !self.met_before_loss(dispatch) {
            return Verdict::Failed;
        }
        let needed = match dispatch.join.mode {
            JoinMode::WaitAll => return if settled == total { Verdict::Met } else { Verdict::Open },
            JoinMode::Race => return if settled > 0 { Verdict::Met } else { Verdict::Open },
            JoinMode::First => 1,
            JoinMode::Quorum => dispatch.join.quorum as usize,
        };
        if completed >= needed {
            Verdict::Met
        } else if total - lost < needed {
            Verdict::Failed
        } else {
            Verdict::Open
        }
    }

    /// Losers that the join itself cancelled are not failures: only what ended before the mode was met counts.
    fn met_before_loss(&self, dispatch: &Dispatch) -> bool {
        let needed = match dispatch.join.mode {
            JoinMode::WaitAll => return false,
            JoinMode::Race | JoinMode::First => 1,
            JoinMode::Quorum => dispatch.join.quorum as usize,
        };
        let first_loss = self
            .ended
            .iter()
            .position(|&w| matches!(self.workers[w].stage, Stage::Failed | Stage::Cancelled | Stage::Refused));
        let before = first_loss.unwrap_or(self.ended.len());
        before >= needed
    }

    /// Workers that ended badly by themselves, not because the join had no more use for them.
    pub(crate) fn own_losses(&self, dispatch: &Dispatch) -> usize {
        let needed = match dispatch.join.mode {
            JoinMode::WaitAll => usize::MAX,
            JoinMode::Race => 1,
            JoinMode::First => 1,
            JoinMode::Quorum => dispatch.join.quorum as usize,
        };
        let mut completed = 0;
        let mut losses = 0;
        for &worker in &self.ended {
            let good = matches!(self.workers[worker].stage, Stage::Completed | Stage::Harvested | Stage::Withheld);
            let met = match dispatch.join.mode {
                JoinMode::Race => completed + losses >= needed,
                _ => completed >= needed,
            };
            if good {
                completed += 1;
            } else if !met {
                losses += 1;
            }
        }
        losses
    }
}
