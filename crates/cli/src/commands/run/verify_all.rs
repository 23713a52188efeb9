//! Proving many runs, one after the other.

use std::collections::BTreeMap;

use baton_client::{Client, Error, RunFilter, RunListItem, Verified};
use baton_model::Timestamp;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::render::event_pair::{self, place};

const PAGE: usize = 200;
/// How often a long pass says how far it has come.
const PROGRESS_EVERY: usize = 100;

/// What came out for the runs of one workflow.
#[derive(Default)]
struct Tally {
    runs: u64,
    events: u64,
    decided: u64,
    equal: u64,
    different: u64,
    broken: u64,
    skipped: u64,
}

pub(super) async fn run(
    client: &Client,
    output: &Output,
    workflow: Option<String>,
    since: Option<Timestamp>,
) -> Result<Exit, Failure> {
    let runs = runs(client, workflow, since).await?;
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let (mut verified, mut broken, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for (index, run) in runs.iter().enumerate() {
        if index > 0 && index % PROGRESS_EVERY == 0 {
            output.note(format_args!("[{index}/{}] checked", runs.len()));
        }
        let id = run.run_id.as_str();
        let tally = tallies.entry(run.workflow_id.as_str()).or_default();
        tally.runs += 1;
        match client.verify(id).await {
            Ok(found) => {
                tally.add(&found);
                if let Some(difference) = &found.difference {
                    let title = event_pair::heading(difference.original.as_ref(), difference.replayed.as_ref());
                    output.note(format_args!("{id} DIFFERS {}: {title}", place(difference)));
                }
                verified.push(found);
            }
            // Pruned, or gone since it was listed: there is nothing left that could differ.
            Err(Error::Api { status: 404 | 410, message, .. }) => {
                tally.skipped += 1;
                skipped.push(json!({ "runId": id, "reason": message }));
            }
            // A log that cannot even be read as one. The others are still worth a look.
            Err(error @ Error::Api { status: 500, .. }) => {
                tally.broken += 1;
                output.note(format_args!("{id} BROKEN: {error}"));
                broken.push(json!({ "runId": id, "reason": error.to_string() }));
            }
            Err(error) => return Err(Failure::from(error).about(id)),
        }
    }
    let different = verified.iter().find(|found| !found.equal).map(|found| found.run_id.clone());
    let exit = match &different {
        Some(_) => Exit::Diverged,
        None if !broken.is_empty() => Exit::Failed,
        None => Exit::Ok,
    };
    if output.is_json() {
        output.json(&json!({ "verified": verified, "broken": broken, "skipped": skipped }))?;
        return Ok(exit);
    }
    if runs.is_empty() {
        output.note("no runs");
        return Ok(exit);
    }
    output.table(&summary(&tallies))?;
    if let Some(id) = different {
        output.hint(format_args!("baton run verify {id}"));
    }
    Ok(exit)
}

impl Tally {
    fn add(&mut self, found: &Verified) {
        self.events += found.events;
        self.decided += found.decided;
        self.equal += u64::from(found.equal);
        self.different += u64::from(!found.equal);
    }
}

fn summary(tallies: &BTreeMap<&str, Tally>) -> comfy_table::Table {
    let mut rows = table(&["WORKFLOW", "RUNS", "EVENTS", "DECIDED", "EQUAL", "DIFFERENT", "BROKEN", "SKIPPED"]);
    for (workflow, tally) in tallies {
        let Tally { runs, events, decided, equal, different, broken, skipped } = tally;
        let counts = [runs, events, decided, equal, different, broken, skipped].map(ToString::to_string);
        rows.add_row(std::iter::once((*workflow).to_owned()).chain(counts));
    }
    rows
}

async fn runs(
    client: &Client,
    workflow: Option<String>,
    since: Option<Timestamp>,
) -> Result<Vec<RunListItem>, Failure> {
    let mut filter = RunFilter { workflow, created_from: since, limit: Some(PAGE), ..RunFilter::default() };
    let mut all = Vec::new();
    loop {
        let page = client.runs(&filter).await?;
        all.extend(page.runs);
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            return Ok(all);
        }
    }
}
