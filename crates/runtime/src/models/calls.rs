//! The calls that are under way. They belong to the host and not to a run's head: a head that leaves memory, or is
//! thrown away with its generation, comes back and finds its call still there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_engine::ToolCall;
use baton_model::{ModelRequest, NodeId, RunId};
use dashmap::{DashMap, DashSet};
use tokio_util::sync::CancellationToken;

use crate::tools::Errand;

/// A call that a run wants made.
pub(crate) enum Wanted {
    Model { node: NodeId, visit: u32, attempt: u32, call: u32, request: Box<ModelRequest> },
    Tool(Errand),
}

impl Wanted {
    /// Names this try of this call.
    fn key(&self) -> String {
        match self {
            Self::Model { request, .. } => request.key.clone(),
            Self::Tool(errand) => try_key(&errand.call),
        }
    }

    pub(crate) fn node(&self) -> &NodeId {
        match self {
            Self::Model { node, .. } => node,
            Self::Tool(errand) => &errand.call.node,
        }
    }
}

/// One try of a tool call: the same call taken up again is another one.
fn try_key(call: &ToolCall) -> String {
    format!("{}#{}", call.key, call.again)
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
    runs: DashMap<RunId, BTreeMap<String, Call>>,
    /// Tool calls whose intent this process has recorded itself. Of any other that is open, nobody here knows whether
    /// it was made.
    intended: DashSet<String>,
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
            let keep = call.stage == Stage::Answering || wanted.iter().any(|wanted| wanted.key() == *attempt);
            if !keep {
                call.cancelled.cancel();
            }
            keep
        });
        let mut begin = Vec::new();
        for wanted in wanted {
            match calls.get(&wanted.key()) {
                Some(Call { stage: Stage::Waiting(of), cancelled, .. }) if *of != generation => cancelled.cancel(),
                Some(_) => continue,
                None => {}
            }
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let cancelled = CancellationToken::new();
            let call = Call { number, stage: Stage::Waiting(generation), cancelled: cancelled.clone() };
            calls.insert(wanted.key(), call);
            begin.push((wanted, Ticket { number, cancelled }));
        }
        let none = calls.is_empty();
        drop(calls);
        if none {
            self.runs.remove_if(run, |_, calls| calls.is_empty());
        }
        begin
    }

    /// This process has just recorded that it is going to make this call.
    pub(crate) fn intend(&self, call: &ToolCall) {
        self.intended.insert(try_key(call));
    }

    /// Whether it is certain that nobody else has made this call.
    pub(super) fn is_ours(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Model { .. } => true,
            Wanted::Tool(errand) => errand.simulated || self.intended.contains(&try_key(&errand.call)),
        }
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
        match calls.get_mut(&wanted.key()).filter(|call| call.number == ticket.number) {
            Some(call) => {
                call.stage = stage;
                true
            }
            None => false,
        }
    }

    /// The call is over.
    pub(super) fn forget(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) {
        self.intended.remove(&wanted.key());
        if let Some(mut calls) = self.runs.get_mut(run) {
            let attempt = wanted.key();
            if calls.get(&attempt).is_some_and(|call| call.number == ticket.number) {
                calls.remove(&attempt);
            }
        }
        self.runs.remove_if(run, |_, calls| calls.is_empty());
    }
}
