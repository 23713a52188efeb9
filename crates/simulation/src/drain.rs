//! After the last fault: clients answer what is asked, resume what is paused, and release or cancel what is in quarantine,
//! until every run has ended. Then every log is gone through again.

use std::collections::BTreeSet;

use baton_model::{RunId, RunStatus};
use baton_store::RunRow;
use baton_store::reads::*;

use crate::clients::{Ask, go_on};
use crate::disk::at_once;
use crate::simulation::{Place, Simulation};
use crate::workflows::POISON;

/// How many logs are gone through again at the end.
const VERIFIED: usize = 3;
/// A run that nobody needs to be told anything about any more.
const LONGEST_VERIFICATION_US: i64 = 600_000_000;

impl Simulation {
    /// Every run has ended, and every caller has an answer.
    pub(crate) fn drained(&self) -> bool {
        let unfinished = |row: &RunRow| !row.status.is_terminal() || row.busy || row.wake_at.is_some();
        self.asked.is_empty()
            && !self.places.iter().any(|place| matches!(place, Place::Down { .. }))
            && self.ground.observer.questions().is_empty()
            && !self.ground.observer.runs().iter().any(unfinished)
    }

    pub(crate) fn what_is_left(&self) -> String {
        let rows = self.ground.observer.runs();
        let unfinished: Vec<String> = rows
            .iter()
            .filter(|row| !row.status.is_terminal() || row.busy || row.wake_at.is_some())
            .map(|row| {
                let Some(last) = self.ground.observer.records(&row.id).pop() else { return row.id.to_string() };
                format!(
                    "{} {} {} busy {} wakes {:?} last {} {}",
                    row.id, row.workflow, row.status, row.busy, row.wake_at, last.seq, last.kind
                )
            })
            .collect();
        let asked: Vec<String> = self.asked.iter().map(|asked| format!("#{} {}", asked.number, asked.ask)).collect();
        let questions = self.ground.observer.questions().len();
        format!("runs {unfinished:#?}, callers {asked:#?}, {questions} open questions")
    }

    fn held(&self) -> BTreeSet<RunId> {
        let held = at_once(self.ground.observer.store().quarantined(None, None, 1000));
        held.into_iter().map(|held| held.root).collect()
    }

    /// Whoever waits for a human gets one.
    pub(crate) fn settle_what_is_left(&mut self) {
        let busy: BTreeSet<String> = self.asked.iter().map(|asked| asked.ask.to_string()).collect();
        let mut asks = Vec::new();
        for again in std::mem::take(&mut self.lost) {
            asks.push(again);
        }
        for question in self.ground.observer.questions() {
            asks.push(Ask::Answer {
                tenant: question.tenant.clone(),
                run: question.run.clone(),
                node: question.node.clone(),
                interrupt: question.interrupt_id.clone(),
                value: go_on(&question),
            });
        }
        let held = self.held();
        for row in self.ground.observer.runs() {
            let (tenant, run) = (row.tenant.clone(), row.id.clone());
            if held.contains(&row.id) {
                let poisoned = self.is_poisoned(&row.id);
                asks.push(if poisoned { Ask::Cancel { tenant, run } } else { Ask::Release { tenant, run } });
            } else if row.status == RunStatus::Paused {
                asks.push(Ask::Resume { tenant, run });
            }
        }
        for ask in asks {
            let index = usize::try_from(self.wishes.below(self.places.len() as u64)).unwrap_or(0);
            if !busy.contains(&ask.to_string()) && !self.ask(index, ask.clone()) && matches!(ask, Ask::Start { .. }) {
                self.lost.push(ask);
            }
        }
    }

    fn is_poisoned(&self, root: &RunId) -> bool {
        let of_tree = |row: &RunRow| row.root.as_ref().unwrap_or(&row.id) == root;
        self.ground.observer.runs().iter().any(|row| of_tree(row) && row.workflow.as_str() == POISON)
    }

    /// A process that begins with what is on disk sees what those before it saw, and decides what they decided.
    pub(crate) fn go_through_again(&mut self) -> Vec<String> {
        for index in 0..self.places.len() {
            self.kill(index, "to be followed by another");
        }
        let rows = self.ground.observer.runs();
        let whole = |row: &&RunRow| row.pruned.is_none();
        let mut whole: Vec<&RunRow> = rows.iter().filter(whole).collect();
        let end = self.now() + LONGEST_VERIFICATION_US;
        let mut wanted = Vec::new();
        while wanted.len() < VERIFIED && !whole.is_empty() {
            let place = self.turns.below(whole.len() as u64);
            let row = whole.swap_remove(usize::try_from(place).unwrap_or(0));
            wanted.push(Ask::Verify { tenant: row.tenant.clone(), run: row.id.clone() });
        }
        self.next_wish = i64::MAX;
        while !wanted.is_empty() || !self.asked.is_empty() {
            if self.now() > end {
                return vec![format!(
                    "no waiter hangs: {} logs were not gone through",
                    wanted.len() + self.asked.len()
                )];
            }
            if let Some(ask) = wanted.last().cloned()
                && self.ask(0, ask)
            {
                wanted.pop();
                self.note("verified", 1);
            }
            if let Err(why) = self.step(false) {
                return vec![why];
            }
        }
        Vec::new()
    }
}
