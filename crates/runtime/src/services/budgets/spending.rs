//! What one run adds to what its tree has spent: a fold of its log. It is noted in the store now and then, together with
//! the records that it is a fold of, so that an account is added up from notes and not from all logs of its tree.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::budget::{Dimension, nanos};
use baton_model::event::{InterruptRequested, Outcome};
use baton_model::{Amount, Event, NodeId};
use baton_store::{RunRow, SpendingRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::counts::Counts;
use crate::run::tree::root_of;

/// After how many records it is noted again. Whoever adds up an account reads at most about so many of each run that has
/// not ended.
const NOTE_EVERY: u64 = 64;
/// The layout of a note. One of another is as good as none.
const FORMAT: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunSpending {
    pub(super) consumed: Counts,
    /// How far somebody has extended the tree's budget.
    pub(super) raised: BTreeMap<Dimension, u64>,
    pub(super) crossed: BTreeSet<Dimension>,
    /// What is asked, and how much would do.
    pub(super) asking: BTreeMap<NodeId, (Dimension, u64)>,
    /// A human would not extend it.
    pub(super) closed: bool,
}

/// The same of a live run, and what is noted of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveSpending {
    pub(crate) total: RunSpending,
    /// How many records are in the newest note.
    noted: u64,
}

#[derive(Serialize, Deserialize)]
struct Note {
    format: u32,
    spent: RunSpending,
}

/// What an event uses up.
pub(crate) fn uses(event: &Event) -> Counts {
    let mut counts = Counts::default();
    match event {
        Event::ProviderUsage(usage) => {
            counts.add(Dimension::Tokens, usage.total_tokens);
            counts.add(Dimension::Cost, usage.cost_estimate_usd.map_or(0, nanos));
        }
        Event::AgentToolCalled(_) => counts.add(Dimension::ToolCalls, 1),
        Event::NodeRetried(_) | Event::EnvelopeRetryAttempted(_) | Event::MapItemRetried(_) => {
            counts.add(Dimension::Retries, 1);
        }
        _ => {}
    }
    counts
}

impl RunSpending {
    /// Reads one event of the run's log.
    pub(crate) fn read(&mut self, event: &Event) {
        let counts = uses(event);
        for dimension in Dimension::ALL {
            self.consumed.add(dimension, counts.get(dimension));
        }
        match event {
            Event::BudgetReserved(event) => {
                for dimension in Dimension::ALL {
                    if let Some(units) = event.effective_budget.get(dimension) {
                        let most = self.raised.entry(dimension).or_default();
                        *most = units.max(*most);
                    }
                }
            }
            Event::BudgetThresholdCrossed(event) => drop(self.crossed.insert(event.dimension)),
            Event::InterruptRequested(event) => {
                if let Some(about) = asked_about(event) {
                    self.asking.insert(event.private.node_id.clone(), about);
                }
            }
            Event::InterruptResolved(event) => {
                let ours = self.asking.remove(&event.node_id).is_some();
                self.closed |= ours && event.outcome == Outcome::Rejected;
            }
            _ => {}
        }
    }

    /// Reads one event that a branch has of its source.
    pub(crate) fn read_inherited(&mut self, event: &Event, own_budget: bool) {
        match event {
            // A branch that was given a budget has that one.
            Event::BudgetReserved(_) if own_budget => {}
            // What the runs below its source had used counts too, as far as the source knew.
            Event::BudgetConsumed(said) => self.at_least(said.dimension, units(said.dimension, said.consumed)),
            event => self.read(event),
        }
    }

    /// Somebody knew of this much.
    pub(crate) fn at_least(&mut self, dimension: Dimension, units: u64) {
        let known = self.consumed.get(dimension);
        self.consumed.add(dimension, units.saturating_sub(known));
    }

    /// What is noted, if it is of this log, and how many records are in it.
    pub(crate) fn of_note(row: &SpendingRow, run: &RunRow) -> Option<(Self, u64)> {
        let Note { format, spent } = serde_json::from_str(&row.body).ok()?;
        (format == FORMAT && row.seq <= run.next_seq).then_some((spent, row.seq))
    }
}

impl LiveSpending {
    pub(crate) fn new(total: RunSpending, noted: u64) -> Self {
        Self { total, noted }
    }

    /// A note that is due, of the run as its row says it is.
    pub(crate) fn note(&mut self, run: &RunRow) -> Option<SpendingRow> {
        let due = run.status.is_terminal() || run.next_seq.saturating_sub(self.noted) >= NOTE_EVERY;
        if !due {
            return None;
        }
        let body = serde_json::to_string(&Note { format: FORMAT, spent: self.total.clone() }).ok()?;
        self.noted = run.next_seq;
        Some(SpendingRow { run: run.id.clone(), root: root_of(run).clone(), seq: run.next_seq, body })
    }
}

/// What a question is about, if it is about the budget, and how much would do.
pub(super) fn asked_about(event: &InterruptRequested) -> Option<(Dimension, u64)> {
    let ours = event.data.get("contextType").is_some_and(|context| context == "budget");
    let dimension = event.data.get("dimension").filter(|_| ours)?;
    let dimension = serde_json::from_value(dimension.clone()).ok()?;
    Some((dimension, event.data.get("wanted").and_then(Value::as_u64).unwrap_or(1)))
}

fn units(dimension: Dimension, amount: Amount) -> u64 {
    match (dimension, amount) {
        (Dimension::Cost, amount) => nanos(amount.as_f64()),
        (_, Amount::Whole(n)) => n,
        (_, Amount::Part(n)) => n as u64,
    }
}
