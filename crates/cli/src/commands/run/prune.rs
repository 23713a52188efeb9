use baton_client::{BulkPrune, BulkPrunedRun, Client, PrunedRun, RetentionDue, RunFilter, RunListItem};
use baton_model::{RunId, RunStatus, Timestamp};
use serde_json::{Value, json};

use crate::age::{ago, now, span};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::{confirm, duration, run_ref};

const PAGE: usize = 200;
const ENDED: [RunStatus; 3] = [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Delete the events too; the run stays in lists
    #[arg(long)]
    log: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Only show what would be pruned
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// Ended top-level run: its id, or the beginning of it
    run: Option<String>,
    /// All top-level runs that ended longer ago than this, for example 12h or 30d
    #[arg(long, value_name = "TIME", value_parser = duration::millis)]
    older_than: Option<u64>,
    /// What the host's retention rules do not keep, now instead of at the host's next pass; always with the events
    #[arg(long)]
    retention: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let output = &context.output;
    if args.which.retention {
        return by_rules(&client, output, &args).await;
    }
    let Some(age) = args.which.older_than else {
        return one(&client, output, &args).await;
    };
    let runs = ended_before(&client, before(now(), age)).await?;
    if runs.is_empty() {
        if output.is_json() {
            output.json(&json!({ "pruned": [], "skipped": [] }))?;
        }
        output.note(format_args!("no run ended more than {} ago", span(age)));
        return Ok(Exit::Ok);
    }
    if args.dry_run {
        return show(output, &runs);
    }
    if !agreed(output, &args, &format!("{} and everything below", counted(runs.len(), "run")))? {
        return Ok(Exit::Ok);
    }
    let ids: Vec<RunId> = runs.into_iter().map(|run| run.run_id).collect();
    all(&client, output, &ids, args.log).await
}

async fn one(client: &Client, output: &Output, args: &Args) -> Result<Exit, Failure> {
    let id = run_ref::find(client, args.which.run.as_deref().unwrap_or_default()).await?;
    if args.dry_run {
        let filter = RunFilter { id_prefix: Some(id.clone()), limit: Some(1), ..RunFilter::default() };
        let found = client.runs_filled(&filter).await?.runs;
        let Some(run) = found.first() else {
            return Err(Failure::new(Exit::NotFound, format!("there is no run {id}")));
        };
        return match refusal(run) {
            None => show(output, &found),
            Some(why) => Err(Failure::new(Exit::Conflict, format!("{id} would not be pruned: {why}"))),
        };
    }
    if !agreed(output, args, &format!("{id} and its children"))? {
        return Ok(Exit::Ok);
    }
    let pruned = client.prune(&id, args.log).await.map_err(refused)?;
    if output.is_json() {
        output.json(&pruned)?;
    } else {
        output.line(describe(&pruned))?;
    }
    Ok(Exit::Ok)
}

/// Prunes many at a time, telling each as it is done. One that cannot be pruned does not stop the others.
async fn all(client: &Client, output: &Output, ids: &[RunId], log: bool) -> Result<Exit, Failure> {
    let (mut done, mut skipped) = (Vec::new(), Vec::new());
    let width = ids.len().to_string().len();
    let mut index = 0;
    for some in ids.chunks(PAGE) {
        let pruned = client.bulk_prune(&BulkPrune { run_ids: some.to_vec(), log }).await?;
        for BulkPrunedRun { run_id, pruned_runs, error, .. } in pruned.results {
            index += 1;
            let progress = format!("[{index:>width$}/{}]", ids.len());
            if let Some(error) = error {
                // Not ended after all, or gone meanwhile.
                output.note(format_args!("{progress} {run_id} skipped: {} [{}]", error.message, error.code));
                skipped.push(json!({ "runId": run_id, "reason": error.message }));
                continue;
            }
            let pruned = PrunedRun { run_id, pruned_runs, log };
            // What an earlier pass has pruned is not worth a line each time.
            if !output.is_json() && pruned.pruned_runs > 0 {
                output.line(format_args!("{progress} {}", describe(&pruned)))?;
            }
            done.push(pruned);
        }
    }
    let runs: usize = done.iter().map(|pruned| pruned.pruned_runs).sum();
    let trees = done.iter().filter(|pruned| pruned.pruned_runs > 0).count();
    let before = done.len() - trees;
    output.note(format_args!(
        "pruned {}, {} in all; {before} pruned before, {} skipped",
        counted(trees, "tree"),
        counted(runs, "run"),
        skipped.len()
    ));
    if output.is_json() {
        output.json(&json!({ "pruned": done, "skipped": skipped }))?;
    }
    Ok(Exit::Ok)
}

/// What the host's rules do not keep, as the host itself would prune it.
async fn by_rules(client: &Client, output: &Output, args: &Args) -> Result<Exit, Failure> {
    let due = client.retention_due(PAGE).await?;
    if !due.enabled {
        let why = "the host has no retention rules";
        return Err(Failure::new(Exit::Conflict, why).hint("set retention.max_age_days, max_runs or max_bytes"));
    }
    if args.dry_run || due.runs.is_empty() {
        return show_due(output, &due);
    }
    let many = if due.more { format!("more than {PAGE} runs") } else { counted(due.runs.len(), "run") };
    let question = format!("Prune {many} and everything below? Their memory and their events are deleted for good.");
    if !(args.yes || confirm::sure(&question)?) {
        output.note("nothing was pruned");
        return Ok(Exit::Ok);
    }
    let (mut trees, mut runs, mut due) = (0, 0, due);
    loop {
        let run_ids = due.runs.iter().map(|run| run.run_id.clone()).collect();
        let pruned = client.bulk_prune(&BulkPrune { run_ids, log: true }).await?.results;
        let some = pruned.iter().filter(|run| run.ok && run.pruned_runs > 0).count();
        trees += some;
        runs += pruned.iter().map(|run| run.pruned_runs).sum::<usize>();
        // None of them: somebody else holds on to them, and would next time.
        if some == 0 || !due.more {
            break;
        }
        output.note(format_args!("pruned {} so far", counted(trees, "tree")));
        due = client.retention_due(PAGE).await?;
        if due.runs.is_empty() {
            break;
        }
    }
    if output.is_json() {
        output.json(&json!({ "prunedTrees": trees, "prunedRuns": runs }))?;
    }
    output.note(format_args!("pruned {}, {} in all", counted(trees, "tree"), counted(runs, "run")));
    Ok(Exit::Ok)
}

fn show_due(output: &Output, due: &RetentionDue) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(due)?;
        return Ok(Exit::Ok);
    }
    let now = now();
    if !due.runs.is_empty() {
        let mut rows = table(&["RUN", "WORKFLOW", "STATUS", "ENDED", "RUNS", "RECORDS", "WHY"]);
        for run in &due.runs {
            let (ended, runs, records) = (ago(run.ended_at, now), run.runs.to_string(), run.records.to_string());
            let (id, workflow, status) = (run.run_id.as_str(), run.workflow_id.as_str(), run.status.as_str());
            rows.add_row([id, workflow, status, &ended, &runs, &records, &run.reason]);
        }
        output.table(&rows)?;
    }
    let more = if due.more { ", and more" } else { "" };
    output.note(format_args!("{} would be pruned{more}; nothing was pruned", due.runs.len()));
    Ok(Exit::Ok)
}

/// The top-level runs that ended before an instant, oldest last.
async fn ended_before(client: &Client, instant: Timestamp) -> Result<Vec<RunListItem>, Failure> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let filter = RunFilter {
            status: ENDED.to_vec(),
            created_until: Some(instant),
            cursor,
            limit: Some(PAGE),
            ..RunFilter::default()
        };
        let page = client.runs(&filter).await?;
        all.extend(page.runs.into_iter().filter(|run| run.parent_run_id.is_none() && run.updated_at <= instant));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

fn show(output: &Output, runs: &[RunListItem]) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(&json!({ "wouldPrune": runs }))?;
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["RUN", "WORKFLOW", "STATUS", "ENDED"]);
    for run in runs {
        let ended = ago(run.updated_at, now);
        rows.add_row([run.run_id.as_str(), run.workflow_id.as_str(), run.status.as_str(), &ended]);
    }
    output.table(&rows)?;
    output.note(format_args!("{} would be pruned, with their children; nothing was pruned", runs.len()));
    Ok(Exit::Ok)
}

/// A refusal with what to type instead.
fn refused(error: baton_client::Error) -> Failure {
    let named = |name: &str| match &error {
        baton_client::Error::Api { details, .. } => details.get(name).and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let hint = named("rootRunId").map(|top| format!("baton run prune {top}"));
    let hint = hint.or_else(|| named("runId").map(|open| format!("baton run cancel {open}")));
    match hint {
        Some(hint) => Failure::from(error).hint(hint),
        None => Failure::from(error),
    }
}

/// Why the host would refuse, as far as the run itself tells.
fn refusal(run: &RunListItem) -> Option<String> {
    if let Some(parent) = &run.parent_run_id {
        return Some(format!("it belongs to {parent}; prune the run at the top of its tree"));
    }
    (!run.status.is_terminal()).then(|| format!("it is {}", run.status))
}

fn agreed(output: &Output, args: &Args, what: &str) -> Result<bool, Failure> {
    let also = if args.log { "and so are their events" } else { "their events stay" };
    let question = format!("Prune {what}? Their memory is deleted for good, {also}.");
    let yes = args.yes || confirm::sure(&question)?;
    if !yes {
        output.note("nothing was pruned");
    }
    Ok(yes)
}

fn describe(pruned: &PrunedRun) -> String {
    match pruned.pruned_runs {
        0 => format!("{} had nothing left to prune", pruned.run_id),
        1 => format!("{} pruned", pruned.run_id),
        runs => format!("{} pruned, {} in its tree", pruned.run_id, counted(runs, "run")),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn before(now: Timestamp, millis: u64) -> Timestamp {
    let micros = i64::try_from(millis.saturating_mul(1000)).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros).max(0))
}
