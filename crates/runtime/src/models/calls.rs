//! The calls that are under way. They belong to the host and not to a run's head: a head that leaves memory, or is
//! thrown away with its generation, comes back and finds its call still there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{ModelRequest, NodeId, RunId};
use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

/// A call that a run wants made.
pub(crate) struct Wanted {
    pub(crate) node: NodeId,
    pub(crate) visit: u32,
    pub(crate) attempt: u32,
    pub(crate) request: Box<ModelRequest>,
}

type Attempt = (NodeId, u32, u32);

impl Wanted {
    fn attempt(&self) -> Attempt {
        (self.node.clone(), self.visit, self.attempt)
    }
}

/// What the task that makes a call holds.
pub(crate) struct Ticket {
    number: u64,
    pub(super) cancelled: CancellationToken,
}

struct Call {
    number: u64,
    stage: Stage,
    cancelled: CancellationToken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// For the commit of what it follows from, in this generation. If that is lost, so is the call.
    Waiting(u64),
    /// Made; it follows from what is on disk, whatever becomes of the generation.
    Calling,
    /// The answer is in hand and on its way to the log. It is not asked for again, and not given up.
    Answering,
}

#[derive(Default)]
pub(crate) struct Calls {
    runs: DashMap<RunId, BTreeMap<Attempt, Call>>,
    numbers: AtomicU64,
}

impl Calls {
    /// Gives up what is not wanted any more, and returns what must be begun.
    pub(super) fn reconcile(&self, run: &RunId, generation: u64, wanted: Vec<Wanted>) -> Vec<(Wanted, Ticket)> {
        if wanted.is_empty() && !self.runs.contains_key(run) {
            return Vec::new();
        }
        let mut calls = self.runs.entry(run.clone()).or_default();
        calls.retain(|attempt, call| {
            let keep = call.stage == Stage::Answering || wanted.iter().any(|wanted| wanted.attempt() == *attempt);
            if !keep {
                call.cancelled.cancel();
            }
            keep
        });
        let mut begin = Vec::new();
        for wanted in wanted {
            match calls.get(&wanted.attempt()) {
                Some(Call { stage: Stage::Waiting(of), cancelled, .. }) if *of != generation => cancelled.cancel(),
                Some(_) => continue,
                None => {}
            }
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let cancelled = CancellationToken::new();
            let call = Call { number, stage: Stage::Waiting(generation), cancelled: cancelled.clone() };
            calls.insert(wanted.attempt(), call);
            begin.push((wanted, Ticket { number, cancelled }));
        }
        let none = calls.is_empty();
        drop(calls);
        if none {
            self.runs.remove_if(run, |_, calls| calls.is_empty());
        }
        begin
    }

    /// The call is about to be made. Says whether it is still wanted.
    pub(super) fn calling(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) -> bool {
        self.turn(run, wanted, ticket, Stage::Calling)
    }

    /// The answer is there. Says whether it is still wanted.
    pub(super) fn answering(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) -> bool {
        self.turn(run, wanted, ticket, Stage::Answering)
    }

    fn turn(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket, stage: Stage) -> bool {
        let Some(mut calls) = self.runs.get_mut(run) else { return false };
        match calls.get_mut(&wanted.attempt()).filter(|call| call.number == ticket.number) {
            Some(call) => {
                call.stage = stage;
                true
            }
            None => false,
        }
    }

    /// The call is over.
    pub(super) fn forget(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) {
        if let Some(mut calls) = self.runs.get_mut(run) {
            let attempt = wanted.attempt();
            if calls.get(&attempt).is_some_and(|call| call.number == ticket.number) {
                calls.remove(&attempt);
            }
        }
        self.runs.remove_if(run, |_, calls| calls.is_empty());
    }
}
