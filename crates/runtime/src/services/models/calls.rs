//! The calls that are under way. They belong to the host and not to a run's head: a head that leaves memory, or is
//! thrown away with its generation, comes back and finds its call still there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use baton_engine::ToolCall;
use baton_model::{ModelRequest, NodeId, RunId, Timestamp};
use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::services::tools::ToolInvocation;

/// A call that a run wants made.
pub(crate) enum Wanted {
    /// `hears`: how much of what the model thinks the run wants to be told meanwhile.
    Model {
        node: NodeId,
        visit: u32,
        attempt: u32,
        call: u32,
        request: Box<ModelRequest>,
        hears: usize,
        /// How often it has been made before, and when it is made this time.
        again: u32,
        not_before: Option<Timestamp>,
    },
    Tool(ToolInvocation),
}

impl Wanted {
    /// Names this try of this call.
    fn key(&self) -> String {
        match self {
            // An attempt that goes on where the last one stopped makes the same call, and is another try of it.
            Self::Model { request, attempt, again, .. } => format!("{}#{attempt}.{again}", request.key),
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

/// Who may have made a call before.
pub(super) enum Whose {
    /// Nobody: whoever asks is the first.
    Ours,
    /// This process, before it lost what it knew, or another one.
    Anybodys,
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

/// The calls of one run, by the try they are.
#[derive(Default)]
struct OfRun {
    under_way: BTreeMap<String, Call>,
    /// Tool calls whose intent this process has recorded itself, and which it has not begun to make. Of any other that
    /// is open, nobody here knows whether it was made.
    intended: BTreeSet<String>,
}

impl OfRun {
    fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.intended.is_empty()
    }
}

#[derive(Default)]
pub(crate) struct Calls {
    runs: DashMap<RunId, OfRun>,
    numbers: AtomicU64,
    /// The newest generation that had something to say.
    newest: AtomicU64,
}

impl Calls {
    /// Gives up what is not wanted any more, and returns what must be begun.
    pub(super) fn reconcile(&self, run: &RunId, generation: u64, wanted: Vec<Wanted>) -> Vec<(Wanted, Ticket)> {
        if wanted.is_empty() && !self.runs.contains_key(run) {
            return Vec::new();
        }
        let mut of_run = self.runs.entry(run.clone()).or_default();
        if self.is_over(generation) {
            return Vec::new();
        }
        let OfRun { under_way, intended } = &mut *of_run;
        let is_wanted = |attempt: &String| wanted.iter().any(|wanted| wanted.key() == *attempt);
        intended.retain(is_wanted);
        under_way.retain(|attempt, call| {
            let keep = call.stage == Stage::Answering || is_wanted(attempt);
            if !keep {
                call.cancelled.cancel();
            }
            keep
        });
        let mut begin = Vec::new();
        for wanted in wanted {
            match under_way.get(&wanted.key()) {
                Some(Call { stage: Stage::Waiting(of), cancelled, .. }) if *of != generation => cancelled.cancel(),
                Some(_) => continue,
                None => {}
            }
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let cancelled = CancellationToken::new();
            let call = Call { number, stage: Stage::Waiting(generation), cancelled: cancelled.clone() };
            under_way.insert(wanted.key(), call);
            begin.push((wanted, Ticket { number, cancelled }));
        }
        drop(of_run);
        self.runs.remove_if(run, |_, of_run| of_run.is_empty());
        begin
    }

    /// This process has just recorded that it is going to make this call.
    pub(crate) fn intend(&self, run: &RunId, generation: u64, call: &ToolCall) {
        let mut of_run = self.runs.entry(run.clone()).or_default();
        if !self.is_over(generation) {
            of_run.intended.insert(try_key(call));
        }
    }

    /// Whether anything is under way for a run, or about to be.
    pub(crate) fn any(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// Somebody else may have made the calls that were intended here.
    pub(crate) fn forget_intentions(&self) {
        self.runs.iter_mut().for_each(|mut of_run| of_run.intended.clear());
    }

    /// A head of a generation that is over may still be at work for a moment, and knows nothing of what is wanted now.
    /// Asked with the run's calls in hand, so that nobody newer comes in between.
    fn is_over(&self, generation: u64) -> bool {
        self.newest.fetch_max(generation, Ordering::SeqCst) > generation
    }

    /// The call is about to be made, unless it is not wanted any more.
    pub(super) fn calling(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) -> Option<Whose> {
        let mut of_run = self.runs.get_mut(run)?;
        of_run.turn(wanted, ticket, Stage::Calling)?;
        Some(match wanted {
            Wanted::Model { .. } => Whose::Ours,
            Wanted::Tool(errand) if errand.simulated => Whose::Ours,
            // From here on it may have been made, whatever becomes of it.
            Wanted::Tool(_) if of_run.intended.remove(&wanted.key()) => Whose::Ours,
            Wanted::Tool(_) => Whose::Anybodys,
        })
    }

    /// The answer is there. Says whether it is still wanted.
    pub(super) fn answering(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) -> bool {
        self.runs.get_mut(run).is_some_and(|mut of_run| of_run.turn(wanted, ticket, Stage::Answering).is_some())
    }

    /// The call is over. What was intended and never begun may still be.
    pub(super) fn forget(&self, run: &RunId, wanted: &Wanted, ticket: &Ticket) {
        if let Some(mut of_run) = self.runs.get_mut(run) {
            let attempt = wanted.key();
            if of_run.under_way.get(&attempt).is_some_and(|call| call.number == ticket.number) {
                of_run.under_way.remove(&attempt);
            }
        }
        self.runs.remove_if(run, |_, of_run| of_run.is_empty());
    }
}

impl OfRun {
    /// Moves a call on, if it is still this one that is wanted.
    fn turn(&mut self, wanted: &Wanted, ticket: &Ticket, stage: Stage) -> Option<()> {
        let call = self.under_way.get_mut(&wanted.key()).filter(|call| call.number == ticket.number)?;
        call.stage = stage;
        Some(())
    }
}
