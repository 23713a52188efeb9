//! One tree's account: what it may spend, what it has spent, and what calls in flight may yet spend.

use crate::services::budgets::counts::Counts;
use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{Shortage, Spent};
use baton_model::budget::{Ceilings, Dimension, OnExhaustion};
use baton_model::event::Outcome;
use baton_model::{Amount, Budget, Draft, Event, NodeId, RunId};
use baton_store::RunRow;
use parking_lot::Mutex;
use tokio::sync::futures::Notified;

use super::estimate::Estimate;
use super::in_flight::{InFlight, Reservation};
use super::spending::{RunSpending, asked_about, uses};

pub(crate) struct Account {
    root: RunId,
    budget: Budget,
    book: Mutex<BudgetTotals>,
    /// Locked after the book.
    in_flight: Arc<InFlight>,
}

/// What is written down. All of it follows from the logs of the tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetTotals {
    ceilings: Ceilings,
    consumed: Counts,
    crossed: BTreeMap<Dimension, bool>,
    /// Who asks a human about what.
    asking: BTreeMap<(RunId, NodeId), (Dimension, u64)>,
    /// A human would not extend it.
    closed: bool,
}

/// Whether a call may be made.
pub(crate) enum Answer {
    Granted(Reservation),
    /// Calls in flight may use up what is left.
    Wait,
    Short(Shortage),
}

/// What a step did to the account.
#[derive(Debug, Default)]
pub(crate) struct Charged {
    pub(crate) spent: Vec<Spent>,
    /// The node that used some.
    pub(crate) node: Option<NodeId>,
    /// Questions of the tree that are decided now, and whether the budget was extended.
    pub(crate) decided: Vec<(RunId, NodeId, bool)>,
    used: Counts,
}

impl Account {
    pub(crate) fn new(root: RunId, budget: Budget, in_flight: Arc<InFlight>) -> Self {
        let book = BudgetTotals::new(budget.ceilings);
        Self::with(root, budget, book, in_flight)
    }

    pub(crate) fn with(root: RunId, budget: Budget, book: BudgetTotals, in_flight: Arc<InFlight>) -> Self {
        Self { root, budget, book: Mutex::new(book), in_flight }
    }

    pub(crate) fn root(&self) -> &RunId {
        &self.root
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(crate) fn bounds_money(&self) -> bool {
        self.book.lock().ceilings.max_cost_usd.is_some()
    }

    /// What is bounded, how much of it is spent, and how much may be.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Dimension, Amount, Amount)> + use<> {
        let (consumed, ceilings) = {
            let book = self.book.lock();
            (book.consumed, book.ceilings)
        };
        Dimension::ALL.into_iter().filter_map(move |dimension| {
            let limit = ceilings.get(dimension)?;
            Some((dimension, dimension.shown(consumed.get(dimension)), dimension.shown(limit)))
        })
    }

    pub(crate) fn changed(&self) -> Notified<'_> {
        self.in_flight.changed.notified()
    }

    /// Sets aside all that a call may use. Where that does not fit, the answer gets what room is left, once no call in
    /// flight may leave more; and where not even that is enough to say anything, the call is not made.
    pub(crate) fn reserve(&self, call: &Estimate) -> Answer {
        let book = self.book.lock();
        let bounded: Vec<(Dimension, u64)> = [Dimension::Tokens, Dimension::Cost]
            .into_iter()
            .filter_map(|dimension| {
                let limit = book.ceilings.get(dimension)?;
                Some((dimension, limit.saturating_sub(book.consumed.get(dimension))))
            })
            .collect();
        let least = call.least_room();
        for &(dimension, free) in &bounded {
            let wanted = call.takes(dimension, least);
            if wanted > free {
                return Answer::Short(self.shortage(&book, dimension, wanted));
            }
        }
        let mut all = self.in_flight.set_aside.lock();
        let mut room = call.room;
        for &(dimension, free) in &bounded {
            let reserved = all.get(dimension);
            if call.takes(dimension, call.room).saturating_add(reserved) <= free {
                continue;
            }
            if reserved > 0 {
                return Answer::Wait;
            }
            room = room.min(call.room_in(dimension, free)).max(least);
        }
        let mut own = Counts::default();
        for &(dimension, _) in &bounded {
            let units = call.takes(dimension, room);
            own.add(dimension, units);
            all.add(dimension, units);
        }
        let cap = (!bounded.is_empty()).then_some(room);
        Answer::Granted(Reservation::new(Arc::clone(&self.in_flight), own, cap))
    }

    /// Charges what a step uses, unless it calls more tools or tries more often than is left: then nothing is charged.
    /// What a model used is charged whatever is left, for it has been used.
    pub(crate) fn charge(&self, run: &RunId, drafts: &[Draft]) -> Result<Charged, Shortage> {
        let mut book = self.book.lock();
        let mut charged = Charged::default();
        for event in drafts.iter().map(|draft| &draft.event) {
            let counts = uses(event);
            for dimension in Dimension::ALL {
                charged.used.add(dimension, counts.get(dimension));
            }
            if counts != Counts::default() {
                charged.node = event.node_id().cloned();
            }
            if let Event::BudgetReserved(event) = event {
                // Extended for the whole tree, even if this step is short of something else.
                book.extend(&event.effective_budget);
                self.in_flight.changed.notify_waiters();
            }
        }
        for dimension in [Dimension::ToolCalls, Dimension::Retries] {
            let wanted = charged.used.get(dimension);
            let after = book.consumed.get(dimension).saturating_add(wanted);
            if wanted > 0 && book.ceilings.get(dimension).is_some_and(|limit| after > limit) {
                return Err(self.shortage(&book, dimension, wanted));
            }
        }
        for dimension in Dimension::ALL {
            let units = charged.used.get(dimension);
            book.consumed.add(dimension, units);
            if units > 0
                && let Some(limit) = book.ceilings.get(dimension)
            {
                let consumed = book.consumed.get(dimension);
                let crossed = book.crosses(dimension, limit, self.budget.threshold_percent);
                charged.spent.push(Spent { dimension, consumed, limit, crossed });
            }
        }
        for event in drafts.iter().map(|draft| &draft.event) {
            book.note_question(run, event);
        }
        charged.decided = book.take_decided();
        Ok(charged)
    }

    /// The step that was charged never happened.
    pub(crate) fn refund(&self, charged: &Charged) {
        let mut book = self.book.lock();
        for dimension in Dimension::ALL {
            book.consumed.take(dimension, charged.used.get(dimension));
        }
    }

    /// Questions that were decided before anybody told them.
    pub(crate) fn take_decided(&self) -> Vec<(RunId, NodeId, bool)> {
        self.book.lock().take_decided()
    }

    fn shortage(&self, book: &BudgetTotals, dimension: Dimension, wanted: u64) -> Shortage {
        let (limit, most) = (book.ceilings.get(dimension).unwrap_or(0), self.budget.most.get(dimension));
        let consumed = book.consumed.get(dimension);
        let asks = self.budget.on_exhaustion == OnExhaustion::Interrupt;
        // Nobody is asked for what nobody may grant.
        let needs = match dimension {
            Dimension::Tokens | Dimension::Cost => consumed.saturating_add(wanted),
            Dimension::ToolCalls | Dimension::Retries => consumed.saturating_add(1),
        };
        let asks = asks && !book.closed && most.is_none_or(|most| limit < most && needs <= most);
        Shortage { dimension, consumed, limit, wanted, ceilings: book.ceilings, asks }
    }
}

impl BudgetTotals {
    pub(crate) fn new(ceilings: Ceilings) -> Self {
        Self { ceilings, ..Self::default() }
    }

    /// Adds what a run of the tree has spent.
    pub(crate) fn add(&mut self, run: &RunRow, spent: &RunSpending) {
        let RunSpending { consumed, raised, crossed, asking, closed } = spent;
        for dimension in Dimension::ALL {
            self.consumed.add(dimension, consumed.get(dimension));
        }
        for (dimension, units) in raised {
            self.raise(*dimension, *units);
        }
        self.crossed.extend(crossed.iter().map(|dimension| (*dimension, true)));
        // A run that has ended asks nothing.
        if !run.status.is_terminal() {
            let asking = asking.iter().map(|(node, about)| ((run.id.clone(), node.clone()), *about));
            self.asking.extend(asking);
        }
        self.closed |= closed;
    }

    /// Ceilings only rise, whoever was faster.
    fn extend(&mut self, to: &Ceilings) {
        for dimension in Dimension::ALL {
            if let Some(then) = to.get(dimension) {
                self.raise(dimension, then);
            }
        }
    }

    fn raise(&mut self, dimension: Dimension, to: u64) {
        if let Some(now) = self.ceilings.get(dimension) {
            self.ceilings.set(dimension, now.max(to));
        }
    }

    fn note_question(&mut self, run: &RunId, event: &Event) {
        match event {
            Event::InterruptRequested(event) => {
                if let Some(about) = asked_about(event) {
                    self.asking.insert((run.clone(), event.private.node_id.clone()), about);
                }
            }
            Event::InterruptResolved(event) => {
                let ours = self.asking.remove(&(run.clone(), event.node_id.clone())).is_some();
                self.closed |= ours && event.outcome == Outcome::Rejected;
            }
            _ => {}
        }
    }

    /// Questions that need no answer any more: there is room again, or somebody has said no.
    fn take_decided(&mut self) -> Vec<(RunId, NodeId, bool)> {
        let (consumed, ceilings, closed) = (self.consumed, self.ceilings, self.closed);
        let room = |(dimension, wanted): (Dimension, u64)| {
            ceilings.get(dimension).is_none_or(|limit| consumed.get(dimension).saturating_add(wanted) <= limit)
        };
        let mut decided = Vec::new();
        self.asking.retain(|(run, node), about| {
            let open = !closed && !room(*about);
            if !open {
                decided.push((run.clone(), node.clone(), room(*about)));
            }
            open
        });
        decided
    }

    fn crosses(&mut self, dimension: Dimension, limit: u64, percent: Option<f64>) -> Option<f64> {
        let percent = percent?;
        let known = self.crossed.entry(dimension).or_default();
        let reached = self.consumed.get(dimension) as f64 * 100.0 >= percent * limit as f64;
        (reached && !std::mem::replace(known, reached)).then_some(percent)
    }
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
