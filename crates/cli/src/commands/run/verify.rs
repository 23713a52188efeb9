use baton_client::{Client, RunEvent, Verified};
use baton_model::Timestamp;
use serde_json::Value;

use super::list::instant;
use super::verify_all;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::event_pair;
use crate::render::event_pair::place;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// With --all: only runs of this workflow
    #[arg(long, value_name = "ID", conflicts_with = "run")]
    workflow: Option<String>,
    /// With --all: only runs created at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = instant, conflicts_with = "run")]
    since: Option<Timestamp>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The run's id, or the beginning of it
    run: Option<String>,
    /// All runs, including children
    #[arg(long)]
    all: bool,
}

/// Asks the host to go through a log again. Nothing is written and nobody is asked.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let output = &context.output;
    let Some(run) = &args.which.run else {
        return verify_all::run(&client, output, args.workflow, args.since).await;
    };
    let id = run_ref::find(&client, run).await?;
    let found = client.verify(&id).await?;
    if output.is_json() {
        output.json(&found)?;
    } else {
        print(&client, output, &found).await?;
    }
    Ok(if found.equal { Exit::Ok } else { Exit::Diverged })
}

async fn print(client: &Client, output: &Output, found: &Verified) -> Result<(), Failure> {
    let Verified { run_id, events, decided, .. } = found;
    let Some(difference) = &found.difference else {
        output.line(format_args!("{run_id} equal: {events} events, {decided} decided again"))?;
        return Ok(());
    };
    let recorded = event_at(client, run_id.as_str(), difference.seq).await;
    let (original, replayed) = (with_node(&difference.original, &recorded), with_node(&difference.replayed, &recorded));
    let title = event_pair::heading(original.as_ref(), replayed.as_ref());
    output.line(format_args!("{run_id} DIFFERS {}: {title}", place(difference)))?;
    output.line(format_args!("{events} events checked, {decided} decided again"))?;
    output.line("")?;
    output.line("--- recorded\n+++ decided again")?;
    let mut lines = event_pair::lines(original.as_ref(), replayed.as_ref());
    if lines.is_empty() {
        // What is said of it is the same, but not what stands around that.
        lines = event_pair::surroundings(difference.original.as_ref(), difference.replayed.as_ref());
    }
    for line in lines {
        output.line(line)?;
    }
    Ok(())
}

/// The recorded event says which node it is about; the decided one is about the same, if it is of the same type.
fn with_node(event: &Option<Value>, recorded: &Option<RunEvent>) -> Option<Value> {
    let mut event = event.clone()?;
    if let (Some(recorded), Some(fields)) = (recorded, event.as_object_mut())
        && fields.get("type").and_then(Value::as_str) == Some(recorded.kind.as_str())
    {
        // Unless that is what they differ in.
        fields.entry("nodeId").or_insert_with(|| recorded.node_id.clone().into());
    }
    Some(event)
}

/// The recorded event of a sequence, if it can be had.
async fn event_at(client: &Client, run: &str, seq: u64) -> Option<RunEvent> {
    let page = client.events(run, seq.checked_sub(1), 1).await.ok()?;
    page.events.into_iter().next().filter(|event| event.sequence == seq)
}
