//! What came of a run, gathered once it is over.

use baton_model::{RunId, RunSnapshot, UsageSummary};
use baton_runtime::{Clock as _, Error, Host};
use baton_store::RunFilter;
use serde_json::Value;

use super::host::CaseHost;
use crate::report::Problem;

/// Events of a page.
const PAGE: usize = 1_000;
/// Runs of a case that are looked at: a map may have this many children.
const MOST_RUNS: usize = 10_001;

/// Everything that expectations are held against.
pub(crate) struct Observed {
    pub(crate) snapshot: RunSnapshot,
    /// The run's own log, as clients see it.
    pub(crate) events: Vec<Value>,
    pub(crate) children: Vec<Child>,
    pub(crate) usage: UsageSummary,
    pub(crate) model_calls: u64,
    pub(crate) tool_calls: Vec<(String, Value)>,
    /// Simulated time.
    pub(crate) seconds: f64,
    /// What was noticed on the way.
    pub(crate) problems: Vec<Problem>,
    /// What the case prepared and nobody asked for.
    pub(crate) leftovers: Vec<Problem>,
    /// Which answers nobody asked for.
    pub(crate) unused_answers: Vec<usize>,
}

/// A run that the run started, directly or not.
pub(crate) struct Child {
    pub(crate) snapshot: RunSnapshot,
}

pub(super) async fn observe(
    case_host: &CaseHost,
    run: RunId,
    problems: Vec<Problem>,
    unused_answers: &[usize],
) -> Result<Observed, Error> {
    let CaseHost { host, who, .. } = case_host;
    let snapshot = host.snapshot(&who.tenant, &run).await?;
    let events = events(host, who, &run).await?;
    let mut children = Vec::new();
    let mut filter = RunFilter { tenant: Some(who.tenant.clone()), limit: MOST_RUNS, ..RunFilter::default() };
    loop {
        let page = host.runs(&filter).await?;
        for row in page.items.into_iter().filter(|row| row.id != run) {
            children.push(Child { snapshot: host.snapshot(&who.tenant, &row.id).await? });
        }
        filter.cursor = page.next;
        if filter.cursor.is_none() || children.len() >= MOST_RUNS {
            break;
        }
    }
    // Lists are newest first.
    children.reverse();
    let usage = snapshot.metrics.as_ref().and_then(|metrics| metrics.used()).unwrap_or_default();
    let mut leftovers = case_host.model.leftovers();
    leftovers.extend(case_host.tools.leftovers());
    Ok(Observed {
        snapshot,
        events,
        children,
        usage,
        model_calls: case_host.notes.model_calls(),
        tool_calls: case_host.notes.tool_calls(),
        seconds: case_host.clock.now().millis_since(case_host.started) as f64 / 1000.0,
        problems,
        leftovers,
        unused_answers: unused_answers.to_vec(),
    })
}

async fn events(host: &Host, who: &baton_model::Principal, run: &RunId) -> Result<Vec<Value>, Error> {
    let mut events = Vec::new();
    let mut after = None;
    loop {
        let page = host.events(&who.tenant, run, after, PAGE).await?;
        events.extend(page.events.iter().filter_map(|line| serde_json::from_str::<Value>(&line.body).ok()));
        if page.reaches_end(after) {
            return Ok(events);
        }
        after = page.events.last().map(|line| line.seq).or(after);
    }
}
