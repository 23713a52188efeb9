use baton_client::RunFilter;
use baton_model::{NodeId, RunStatus, Timestamp};

use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only runs in this status; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Vec<RunStatus>,
    /// Only runs of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Only runs with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only runs created at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<Timestamp>,
    /// Only runs created before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<Timestamp>,
    /// Only runs that wait for a person or an external event
    #[arg(long)]
    waiting: bool,
    /// Only replays that differ from their source
    #[arg(long)]
    diverged: bool,
    /// Only runs whose budget is used up
    #[arg(long)]
    over_budget: bool,
    /// Only quarantined runs, with the reason
    #[arg(long, conflicts_with_all = ["status", "workflow", "tag", "since", "until", "waiting", "diverged", "over_budget", "quiet_for", "prefix"])]
    quarantined: bool,
    /// Only runs without events for this long, for example 10m
    #[arg(long, value_name = "SPAN", value_parser = crate::duration::millis)]
    quiet_for: Option<u64>,
    /// Only runs whose id, or whose workflow's id, starts with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Continue where the previous page ended
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    if args.quarantined {
        return quarantined(&args, context).await;
    }
    let filter = RunFilter {
        status: args.status,
        workflow: args.workflow,
        tag: args.tag,
        created_from: args.since,
        created_until: args.until,
        updated_until: args.quiet_for.map(|ms| before(now(), ms)),
        waiting: args.waiting.then_some(true),
        diverged: args.diverged.then_some(true),
        over_budget: args.over_budget.then_some(true),
        text_prefix: args.prefix,
        cursor: args.cursor,
        limit: Some(usize::from(args.limit)),
        ..RunFilter::default()
    };
    let page = context.client()?.runs_filled(&filter).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&page)?;
        return Ok(Exit::Ok);
    }
    if page.runs.is_empty() {
        output.note("no runs");
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["RUN", "WORKFLOW", "STATUS", "AT", "CREATED"]);
    for run in &page.runs {
        rows.add_row([
            run.run_id.as_str(),
            run.workflow_id.as_str(),
            run.status.as_str(),
            run.current_node_id.as_ref().filter(|_| !run.status.is_terminal()).map_or("-", NodeId::as_str),
            &ago(run.created_at, now),
        ]);
    }
    output.table(&rows)?;
    if let Some(cursor) = &page.next_cursor {
        output.hint(format_args!("there are more; add --cursor {cursor} for the next page"));
    }
    Ok(Exit::Ok)
}

async fn quarantined(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let page = context.client()?.quarantined(usize::from(args.limit), args.cursor.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&page)?;
        return Ok(Exit::Ok);
    }
    if page.trees.is_empty() {
        output.note("no runs are quarantined");
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["RUN", "FAILED", "AT EVENT", "CAUSE", "SINCE", "WHY"]);
    for held in &page.trees {
        let failed = if held.run_id == held.root_run_id { "itself" } else { held.run_id.as_str() };
        let (at, since) = (held.seq.to_string(), ago(held.since, now));
        rows.add_row([held.root_run_id.as_str(), failed, &at, &held.cause, &since, &held.detail]);
    }
    output.table(&rows)?;
    output.hint(format_args!("`baton run release RUN` tries again, `baton run cancel RUN` ends the run"));
    if let Some(cursor) = &page.next_cursor {
        output.hint(format_args!("there are more; add --cursor {cursor} for the next page"));
    }
    Ok(Exit::Ok)
}

fn status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text).ok_or_else(|| format!("one of {}", RunStatus::ALL.map(RunStatus::as_str).join(", ")))
}

pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "write it like 2026-01-31T09:00:00Z".to_owned())
}

fn before(at: Timestamp, ms: u64) -> Timestamp {
    let micros = i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1000);
    Timestamp::from_micros(at.as_micros().saturating_sub(micros).max(0))
}
