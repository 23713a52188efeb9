//! Of what was asked of models and tools.

use std::collections::BTreeMap;

use baton_model::{Amount, Event, RunId};
use baton_store::RunRow;

use crate::clients::Acknowledged;
use crate::disk::Observer;
use crate::peers::{Outside, SEND};

pub(crate) fn check(disk: &Observer, row: &RunRow, found: &mut Vec<String>) {
    let run = &row.id;
    let mut object = |what: &str, why: String| found.push(format!("{what}: {} {run}: {why}", row.workflow));
    let mut returned: BTreeMap<String, u32> = BTreeMap::new();
    for event in disk.events(run) {
        match event {
            Event::AgentToolReturned(event) => *returned.entry(event.call_id).or_default() += 1,
            Event::BudgetConsumed(said) => {
                if let (Amount::Whole(consumed), Amount::Whole(limit)) = (&said.consumed, &said.limit)
                    && consumed > limit
                {
                    object("a tree spends no more than its budget", format!("{said:?}"));
                }
            }
            _ => {}
        }
    }
    if let Some((call, times)) = returned.iter().find(|(_, times)| **times > 1) {
        object("a recorded answer is not repeated", format!("{call} returned {times} times"));
    }
}

/// What a log says that a tool did was done. Only of the tool for which no human answers, and not in branches: they may
/// pretend.
pub(crate) fn check_done(disk: &Observer, outside: &Outside, found: &mut Vec<String>) {
    let is_branch = |row: &RunRow| {
        let root = row.root.as_ref().and_then(|root| disk.run(root));
        row.origin.is_some() || root.is_some_and(|root| root.origin.is_some())
    };
    for row in disk.runs().into_iter().filter(|row| !is_branch(row)) {
        for event in disk.events(&row.id) {
            if let Event::AgentToolReturned(event) = event
                && event.tool_name == SEND
                && event.error.is_none()
                && event.outcome.is_some()
                && !outside.has_done(&format!("{}/{}", row.id, event.call_id))
            {
                found.push(format!("effects: {} says that {} took place, and it did not", row.id, event.call_id));
            }
        }
    }
}

/// What models took of a tree's budget, by every answer that is on disk.
pub(crate) fn check_budgets(disk: &Observer, known: &Acknowledged, found: &mut Vec<String>) {
    let mut spent: BTreeMap<RunId, u64> = BTreeMap::new();
    for row in disk.runs().into_iter().filter(|row| row.origin.is_none()) {
        let root = row.root.clone().unwrap_or_else(|| row.id.clone());
        for event in disk.events(&row.id) {
            if let Event::ProviderUsage(event) = event {
                *spent.entry(root.clone()).or_default() += event.input_tokens + event.output_tokens;
            }
        }
    }
    for (root, most) in &known.budgets {
        let spent = spent.get(root).copied().unwrap_or(0);
        if spent > *most {
            found.push(format!("a tree spends no more than its budget: {root} spent {spent} of {most}"));
        }
    }
}
