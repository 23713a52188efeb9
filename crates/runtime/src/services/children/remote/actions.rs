//! The mandates that are under way. They belong to the host and not to a run's head: a head that leaves memory comes
//! back and finds its mandate still there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_engine::{RemoteChildAction, RemoteChildTask};
use baton_model::RunId;
use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

/// What the task on a mandate holds.
pub(super) struct Ticket {
    number: u64,
    pub(super) cancelled: CancellationToken,
}

/// One mandate of a run: the child, and what is wished for.
type Key = (RunId, Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Create,
    Withdraw,
    Follow,
    Cancel,
}

struct UnderWay {
    number: u64,
    stage: Stage,
    cancelled: CancellationToken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// For the commit of what it follows from, in this generation. If that is lost, so is the mandate.
    Waiting(u64),
    /// Out; it follows from what is on disk, whatever becomes of the generation.
    Out,
    /// Back, and on its way to the log. It is neither repeated nor called off.
    Telling,
}

#[derive(Default)]
pub(crate) struct Mandates {
    runs: DashMap<RunId, BTreeMap<Key, UnderWay>>,
    numbers: AtomicU64,
}

impl Mandates {
    /// Calls off what is not wanted any more, and returns what must be begun. A paused run keeps its mandates and begins
    /// none: it would not take in what they bring.
    pub(super) fn reconcile(
        &self,
        run: &RunId,
        generation: u64,
        paused: bool,
        wanted: Vec<RemoteChildTask>,
    ) -> Vec<(RemoteChildTask, Ticket)> {
        if wanted.is_empty() && !self.runs.contains_key(run) {
            return Vec::new();
        }
        let mut all = self.runs.entry(run.clone()).or_default();
        all.retain(|key, mandate| {
            let keep = mandate.stage == Stage::Telling || wanted.iter().any(|wanted| key_of(wanted) == *key);
            if !keep {
                mandate.cancelled.cancel();
            }
            keep
        });
        let mut begin = Vec::new();
        for wanted in wanted {
            match all.get(&key_of(&wanted)) {
                Some(UnderWay { stage: Stage::Waiting(of), cancelled, .. }) if *of != generation => cancelled.cancel(),
                Some(_) => continue,
                None => {}
            }
            if paused {
                continue;
            }
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let cancelled = CancellationToken::new();
            let stage = Stage::Waiting(generation);
            all.insert(key_of(&wanted), UnderWay { number, stage, cancelled: cancelled.clone() });
            begin.push((wanted, Ticket { number, cancelled }));
        }
        let none = all.is_empty();
        drop(all);
        if none {
            self.runs.remove_if(run, |_, all| all.is_empty());
        }
        begin
    }

    /// Whether anything is being seen to for a run.
    pub(crate) fn any(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// Lets a run look at its children afresh: while it was paused it took in nothing about them.
    pub(crate) fn look_again(&self, run: &RunId) {
        if let Some(mut all) = self.runs.get_mut(run) {
            all.retain(|(_, kind), mandate| {
                let keep = *kind != Kind::Follow || mandate.stage == Stage::Telling;
                if !keep {
                    mandate.cancelled.cancel();
                }
                keep
            });
        }
    }

    /// The mandate sets out. Says whether it is still wanted.
    pub(super) fn out(&self, run: &RunId, mandate: &RemoteChildTask, ticket: &Ticket) -> bool {
        self.turn(run, mandate, ticket, Stage::Out)
    }

    /// The mandate is back. Says whether what it brings is still wanted.
    pub(super) fn telling(&self, run: &RunId, mandate: &RemoteChildTask, ticket: &Ticket) -> bool {
        self.turn(run, mandate, ticket, Stage::Telling)
    }

    fn turn(&self, run: &RunId, mandate: &RemoteChildTask, ticket: &Ticket, stage: Stage) -> bool {
        let Some(mut all) = self.runs.get_mut(run) else { return false };
        match all.get_mut(&key_of(mandate)).filter(|mandate| mandate.number == ticket.number) {
            Some(mandate) => {
                mandate.stage = stage;
                true
            }
            None => false,
        }
    }

    /// The mandate is over.
    pub(super) fn forget(&self, run: &RunId, mandate: &RemoteChildTask, ticket: &Ticket) {
        if let Some(mut all) = self.runs.get_mut(run) {
            let key = key_of(mandate);
            if all.get(&key).is_some_and(|mandate| mandate.number == ticket.number) {
                all.remove(&key);
            }
        }
        self.runs.remove_if(run, |_, all| all.is_empty());
    }
}

fn key_of(mandate: &RemoteChildTask) -> Key {
    let kind = match mandate.wish {
        RemoteChildAction::Create(_) => Kind::Create,
        RemoteChildAction::Withdraw(_) => Kind::Withdraw,
        RemoteChildAction::Follow { .. } => Kind::Follow,
        RemoteChildAction::Cancel => Kind::Cancel,
    };
    (mandate.child.clone(), kind)
}
