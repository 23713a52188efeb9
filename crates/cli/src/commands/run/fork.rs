use baton_client::{Client, Fork, ForkOverlay, ForkedRun, RunEvent};
use baton_model::{ForkMode, RunStatus, SideEffects};
use clap::ValueEnum;
use serde_json::{Map, Value};

use super::start::conclude;
use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::snapshot;
use crate::{follow, input, run_ref};

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("point").args(["at", "at_node", "replay"]).required(true).multiple(true)))]
pub(crate) struct Args {
    /// Run to fork: its id, or the beginning of it
    run: String,
    /// First sequence that happens again [default with --replay: 0]
    #[arg(long, value_name = "SEQUENCE")]
    at: Option<u64>,
    /// Fork at the last start of this node
    #[arg(long, value_name = "NODE", conflicts_with = "at")]
    at_node: Option<String>,
    /// Replay instead of branching: check that the engine decides the same again. Nothing external is called
    #[arg(long, conflicts_with_all = ["inputs", "set", "configurable", "side_effects"])]
    replay: bool,
    /// Changed inputs as a JSON object, or @FILE (`@-` = stdin)
    #[arg(short, long, value_name = "JSON")]
    inputs: Option<String>,
    /// Changed variable: NAME=VALUE, where VALUE is JSON or text. May be repeated
    #[arg(long, value_name = "NAME=JSON", value_parser = assignment)]
    set: Vec<(String, Value)>,
    /// Changed options as a JSON object, for example recursionLimit
    #[arg(long, value_name = "JSON")]
    configurable: Option<String>,
    /// What happens to calls with side effects [default: simulated]
    #[arg(long, value_enum)]
    side_effects: Option<Effects>,
    /// Idempotency key: the same key makes only one fork
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Wait until the fork ends or needs an answer, then print it
    #[arg(long)]
    wait: bool,
}

/// Why a replay is cancelled that has gone as far as its source.
const SOURCE_GOES_ON: &str = "source-has-not-ended";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Effects {
    /// Use the recorded result, or the tool's stub; without either the node fails
    Simulated,
    /// Make the calls
    Real,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let source = run_ref::find(&client, &args.run).await?;
    let from_seq = match &args.at_node {
        Some(node) => Some(last_start(&client, &source, node).await?),
        None => args.at,
    };
    // How far the source has come: that far a replay goes at least, and its own end comes after that.
    let known = if args.replay && args.wait { Some(client.run(&source).await?.at_seq) } else { None };
    let mode = if args.replay { ForkMode::Replay } else { ForkMode::Branch };
    let request = Fork::new(mode, from_seq, overlay(&args)?);
    let forked = client.fork(&source, &request, args.idempotency_key.as_deref()).await?;
    if let Some(asked) = forked.requested_from_seq {
        context.output.note(moved(asked, forked.from_seq));
    }
    if args.wait {
        return wait(&client, context, &forked, known).await;
    }
    let output = &context.output;
    if output.is_json() {
        output.json(&forked)?;
    } else {
        output.line(&forked.run_id)?;
        hint(context, &forked);
    }
    Ok(Exit::Ok)
}

async fn wait(client: &Client, context: &Context, forked: &ForkedRun, known: Option<u64>) -> Result<Exit, Failure> {
    let output = &context.output;
    output.note(format_args!("forked {}", forked.run_id));
    let (mut differs, mut cut) = (false, false);
    let settled = follow::until_settled(client, forked.run_id.as_str(), |event| {
        differs |= event.kind == "replay.diverged" && event.sequence >= forked.from_seq;
        // Its own end, and not one that its source had: that one may be such a replay itself.
        cut |= event.payload["reason"] == SOURCE_GOES_ON && known.is_some_and(|known| event.sequence > known);
        Ok(())
    })
    .await?;
    if output.is_json() {
        output.json(&settled)?;
    } else {
        snapshot::print(output, &settled, now())?;
        hint(context, forked);
    }
    if forked.mode == ForkMode::Branch {
        return conclude(client, context, &settled).await;
    }
    // A replay that waits or fails as its source did has proved it. The host fails it by itself where a model refused.
    let refused = settled.error.as_ref().is_some_and(|error| error.code.starts_with("replay_diverged"));
    if differs || refused {
        output.note("the replay differs from its source");
        return Ok(Exit::Diverged);
    }
    if cut {
        output.note("the replay equals its source so far; it was cancelled because the source has not ended");
    } else if settled.status != RunStatus::Cancelled
        && client.run(forked.source_run_id.as_str()).await?.status == RunStatus::Cancelled
    {
        output.note(
            "the replay equals its source up to the point where the source was cancelled, and continued from there",
        );
    } else {
        output.note("the replay equals its source");
    }
    Ok(Exit::Ok)
}

/// Why a branch begins before the point that was asked for.
fn moved(asked: u64, from: u64) -> String {
    format!("{asked} is inside a step, or a child was under way there: the branch begins at {from}")
}

fn hint(context: &Context, forked: &ForkedRun) {
    context.output.hint(format_args!("baton run diff {} {}", forked.source_run_id, forked.run_id));
}

/// The sequence of a node's latest start.
async fn last_start(client: &Client, run: &str, node: &str) -> Result<u64, Failure> {
    let end = client.run(run).await?.at_seq;
    let (mut after, mut found) = (None, None);
    while after.is_none_or(|seq| seq < end) {
        let page = client.events(run, after, 1).await?;
        let starts = |event: &&RunEvent| event.kind == "node.started" && event.node_id.as_deref() == Some(node);
        found = page.events.iter().rfind(starts).map(|event| event.sequence).or(found);
        match page.events.last() {
            Some(last) => after = Some(last.sequence),
            None => break,
        }
    }
    found.ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("{run} never started a node `{node}`"))
            .hint(format!("`baton run events {run}` shows what it did"))
    })
}

fn overlay(args: &Args) -> Result<ForkOverlay, Failure> {
    let object = |text: &Option<String>, what: &str| match text {
        Some(text) => input::object_or_file(text, what),
        None => Ok(Map::new()),
    };
    Ok(ForkOverlay {
        inputs: object(&args.inputs, "--inputs")?,
        variables: args.set.iter().cloned().collect(),
        configurable: object(&args.configurable, "--configurable")?,
        side_effects: args.side_effects.map(|effects| match effects {
            Effects::Simulated => SideEffects::Simulated,
            Effects::Real => SideEffects::Real,
        }),
    })
}

fn assignment(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), input::loose(value))),
        _ => Err("write it like topic=\"tides\" or limit=3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_by_name() {
        assert_eq!(assignment("n=3"), Ok(("n".to_owned(), Value::from(3))));
        assert_eq!(assignment("rule=a=b"), Ok(("rule".to_owned(), Value::from("a=b"))));
        assert!(assignment("n").is_err() && assignment("=3").is_err());
    }
}
