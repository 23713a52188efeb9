//! What a log is made of: parts that several runs wrote, and the places where it became another run's.

use std::collections::VecDeque;

use baton_engine::RunState;
use baton_model::{ForkMode, Origin, RunId};
use baton_store::RunRow;

/// One run's part of a log: its records from `from` to `until`.
pub(crate) struct LogSegment {
    pub(crate) run: RunId,
    pub(crate) origin: Option<Origin>,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

impl LogSegment {
    pub(crate) fn is_replay(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.mode == ForkMode::Replay)
    }
}

/// Where a log passes into a branch: the state folded up to `at` is made the beginning of `run`.
#[derive(Clone, Debug)]
pub(crate) struct BranchPoint {
    pub(crate) at: u64,
    pub(crate) run: RunId,
    pub(crate) origin: Origin,
    /// Which segment it belongs to.
    pub(crate) segment: usize,
}

/// The crossings that are still ahead, nearest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct BranchPoints(VecDeque<BranchPoint>);

impl BranchPoints {
    pub(crate) fn new(all: VecDeque<BranchPoint>) -> Self {
        Self(all)
    }

    /// Makes the state the branches' own that begin at this sequence.
    pub(crate) fn cross(&mut self, mut state: RunState, seq: u64) -> RunState {
        while let Some(branch_point) = self.0.pop_front_if(|branch_point| branch_point.at <= seq) {
            state = state.branch(branch_point.run, &branch_point.origin);
        }
        state
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &BranchPoint> {
        self.0.iter()
    }

    /// A state has passed the nearest of them already.
    pub(crate) fn passed(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
    }

    /// Leaves out what lies at or before this sequence.
    pub(crate) fn after(mut self, seq: u64) -> Self {
        self.0.retain(|branch_point| branch_point.at > seq);
        self
    }

    /// A replay that says where it differs has one record more than its source from there on.
    pub(crate) fn shift(&mut self, segment: usize) {
        let older = self.0.iter_mut().filter(|branch_point| branch_point.segment < segment);
        older.for_each(|branch_point| branch_point.at += 1);
    }
}

/// A log, and how much of it is wanted.
pub(crate) struct WantedLog<'a> {
    pub(crate) row: &'a RunRow,
    pub(crate) segments: &'a [LogSegment],
    /// The run that it began as, and where it became others'.
    pub(crate) name: &'a RunId,
    pub(crate) points: &'a BranchPoints,
    /// Before which record it ends.
    pub(crate) end: u64,
}
