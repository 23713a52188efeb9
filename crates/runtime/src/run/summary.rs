//! What lists say of a run beyond its row. Made anew only when a record that matters to it was written, and encoded only
//! when something is different; most steps of most runs do neither.

use std::sync::Arc;

use baton_engine::{Interrupt, RunState, list_view};
use baton_model::budget::Dimension;
use baton_model::{BudgetLine, Event, Iteration, Record, RunStatus, RunSummary, UsageSummary, WaitingOn};
use baton_store::RunRow;
use serde_json::Value;

use crate::run::live::LiveRun;
use crate::run::stepper::RunStepper;
use crate::services::budgets::Account;

/// How much of a question is shown.
const QUESTION_CHARS: usize = 160;

impl RunStepper {
    /// Brings the summary of a run's row up to date with records that were just folded.
    pub(crate) fn update_summary(&self, head: &mut LiveRun, records: &[Record]) {
        let shows_progress = head.row.summary.as_deref().is_some_and(|summary| summary.contains("\"progress\""));
        let bounded = head.account.is_some() || shows_progress;
        if records.iter().any(|record| matters(&record.event, bounded)) {
            let account = head.account.as_deref();
            summarise(&mut head.row, &head.state, records, account, self.trees.descendants(&head.state.run));
        }
    }
}

/// Makes a row's summary anew: what follows from the state as it stands, and what only records tell on top of what was
/// known.
pub(crate) fn summarise(
    row: &mut RunRow,
    state: &RunState,
    records: &[Record],
    account: Option<&Account>,
    descendants: u64,
) {
    let mut summary = summary_of(row).unwrap_or_default();
    let was_over = summary.over_budget;
    let limits_before: Vec<_> = summary.budget.iter().map(|(dimension, line)| (*dimension, line.limit)).collect();
    let mut refused = false;
    for record in records {
        match &record.event {
            Event::BudgetReserved(event) => {
                for dimension in Dimension::ALL {
                    if let Some(units) = event.effective_budget.get(dimension) {
                        let limit = dimension.shown(units);
                        let line = BudgetLine { spent: 0.into(), limit };
                        summary.budget.entry(dimension).or_insert(line).limit = limit;
                    }
                }
            }
            Event::BudgetConsumed(event) => {
                let line = BudgetLine { spent: event.consumed, limit: event.limit };
                summary.budget.insert(event.dimension, line);
            }
            Event::BudgetExhausted(event) => {
                refused = true;
                let line = BudgetLine { spent: event.consumed, limit: event.limit };
                summary.budget.insert(event.dimension, line);
            }
            Event::ReplayDiverged(_) | Event::ReplayDivergedAtRefusal(_) => summary.diverged = true,
            _ => {}
        }
    }
    // What runs below this one spent is not on its log.
    for (dimension, spent, limit) in account.into_iter().flat_map(Account::lines) {
        summary.budget.insert(dimension, BudgetLine { spent, limit });
    }
    let seen = list_view(state);
    summary.iteration = seen.turn.map(|(turn, bound)| Iteration { turn, bound });
    summary.progress = seen.progress;
    summary.waiting_on = waiting_on(state);
    summary.usage = seen.cost.map(|cost| UsageSummary {
        input_tokens: cost.tokens.input,
        output_tokens: cost.tokens.output,
        cost_usd: cost.usd,
    });
    summary.pause_reason = seen.pause.and_then(|pause| pause.reason.as_deref()).map(excerpt);
    summary.children = seen.children as u64;
    summary.descendants = summary.descendants.max(descendants);
    let full = summary.budget.values().any(|line| line.spent.as_f64() >= line.limit.as_f64());
    let limits = summary.budget.iter().map(|(dimension, line)| (*dimension, line.limit));
    // A call that does not fit is refused while there is something left. More room is a new beginning.
    summary.over_budget = full || refused || (was_over && limits.eq(limits_before));
    row.summary = encode(&summary);
}

/// What a row says of its run, where it says anything.
pub(crate) fn summary_of(row: &RunRow) -> Option<RunSummary> {
    row.summary.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

/// Counts what a child and the runs below it have used, once its end is on its parent's log.
pub(crate) fn add_usage_below(row: &mut RunRow, usage: UsageSummary) {
    let mut summary = summary_of(row).unwrap_or_default();
    summary.usage_below = Some(summary.usage_below.map_or(usage, |below| below.plus(usage)));
    row.summary = encode(&summary);
}

/// Whether a run came with a file.
pub(crate) fn is_imported(row: &RunRow) -> bool {
    summary_of(row).is_some_and(|summary| summary.imported)
}

/// Nothing where there is nothing to say.
pub(crate) fn encode(summary: &RunSummary) -> Option<Arc<str>> {
    if summary.is_empty() {
        return None;
    }
    serde_json::to_string(summary).ok().map(Into::into)
}

/// Whether a record may change what a summary says.
fn matters(event: &Event, bounded: bool) -> bool {
    match event {
        Event::OrchestratorDecided(_)
        | Event::InterruptRequested(_)
        | Event::InterruptResolved(_)
        | Event::NodeCancelled(_)
        | Event::NodeDispatched(_)
        | Event::NodeSuspended(_)
        | Event::NodeResumed(_)
        | Event::ProviderUsage(_)
        | Event::MapStarted(_)
        | Event::MapItemCompleted(_)
        | Event::MapItemFailed(_)
        | Event::BudgetReserved(_)
        | Event::BudgetConsumed(_)
        | Event::BudgetExhausted(_)
        | Event::RunPaused(_)
        | Event::RunResumed(_)
        | Event::RunCompleted(_)
        | Event::RunFailed(_)
        | Event::RunCancelled(_)
        | Event::ReplayDiverged(_)
        | Event::ReplayDivergedAtRefusal(_) => true,
        Event::NodeCompleted(_) | Event::NodeFailed(_) | Event::ChainEvent(_) => bounded,
        _ => false,
    }
}

fn waiting_on(state: &RunState) -> Option<WaitingOn> {
    let seen = list_view(state);
    if matches!(state.status(), RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled) {
        return None;
    }
    if let Some(interrupt) = seen.question {
        return Some(WaitingOn {
            kind: interrupt.kind.clone(),
            node_id: interrupt.node.clone(),
            question: question(interrupt),
            open: seen.open as u64,
            requested_at: Some(interrupt.requested_at),
            expires_at: interrupt.expires_at,
            run_id: None,
        });
    }
    seen.waits_below.map(|(node, run)| WaitingOn {
        kind: "child".to_owned(),
        node_id: node.clone(),
        question: None,
        open: 0,
        requested_at: None,
        expires_at: None,
        run_id: Some(run.clone()),
    })
}

/// The question in words, wherever its kind keeps them.
fn question(interrupt: &Interrupt) -> Option<String> {
    let data = &interrupt.data;
    let named = ["title", "question", "prompt", "message"].into_iter().find_map(|name| data.get(name)?.as_str());
    let first = || data.pointer("/questions/0/question").and_then(Value::as_str);
    named.or_else(first).map(excerpt)
}

fn excerpt(text: &str) -> String {
    let mut letters = text.chars();
    let mut short: String = letters.by_ref().take(QUESTION_CHARS).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}
