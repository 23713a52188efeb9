use std::collections::BTreeSet;

use baton_client::{Client, RunEvent, StreamMode};
use serde_json::Value;

use super::start::conclude;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::event::EventLines;
use crate::render::question::Question;
use crate::{run_ref, terminal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
}

/// Streams a run until it ends. Stopping to watch (Ctrl-C) does not touch the run.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let output = &context.output;
    let mut progress = Progress::new(node_count(&client, &id).await?);
    let mut lines = EventLines::fitting(terminal::width().map(|width| width.saturating_sub(progress.width())));
    let mut hinted = None;
    let mut stream = client.stream(&id, None, StreamMode::Debug);
    loop {
        let event = tokio::select! {
            event = stream.next() => event,
            _ = tokio::signal::ctrl_c() => {
                output.note(format_args!("stopped watching; {id} continues"));
                output.hint(format_args!("baton run watch {id}"));
                return Ok(Exit::Ok);
            }
        };
        let Some(event) = event.transpose()? else { break };
        progress.see(&event);
        if output.is_json() {
            output.json_line(&event)?;
        } else {
            output.line(format_args!("{}  {}", progress, lines.line(&event)))?;
        }
        if let Some(question) = asked(&client, &id, &event).await
            && hinted.as_ref() != Some(&question)
        {
            question.say(output, &id);
            hinted = Some(question);
        }
    }
    let ended = client.run(&id).await?;
    output.note(format_args!("{} is {}", ended.run_id, ended.status));
    conclude(&client, context, &ended).await
}

/// The question behind a suspension, if it is still open: history is full of answered ones. It may be asked by a child.
async fn asked(client: &Client, run: &str, event: &RunEvent) -> Option<Question> {
    match event.kind.as_str() {
        "interrupt.requested" => {
            let node = event.node_id.as_ref()?;
            let open = client.interrupts(Some(run)).await.ok()?.interrupts;
            open.into_iter().find(|interrupt| interrupt.node_id.as_str() == node).map(Question::from)
        }
        "node.suspended" if event.payload.get("childStatus").is_some() => {
            Question::of_run(client, &client.run(run).await.ok()?).await
        }
        _ => None,
    }
}

/// How many nodes the run's workflow has; unknown when the key may not read workflows.
async fn node_count(client: &Client, run: &str) -> Result<Option<usize>, Failure> {
    let snapshot = client.run(run).await?;
    let definition = client.workflow(snapshot.workflow_id.as_str()).await.ok();
    Ok(definition.as_ref().and_then(|found| found.get("nodes")).and_then(Value::as_array).map(Vec::len))
}

/// Settled nodes of all nodes. A loop visits a node again; it counts once.
struct Progress {
    settled: BTreeSet<String>,
    total: Option<usize>,
}

impl Progress {
    fn new(total: Option<usize>) -> Self {
        Self { settled: BTreeSet::new(), total }
    }

    /// How much of a line it takes.
    fn width(&self) -> usize {
        self.to_string().chars().count() + 2
    }

    fn see(&mut self, event: &RunEvent) {
        let Some(node) = &event.node_id else { return };
        match event.kind.as_str() {
            "node.completed" | "node.failed" | "node.skipped" | "node.cancelled" => {
                self.settled.insert(node.clone());
            }
            "node.started" => {
                self.settled.remove(node);
            }
            _ => {}
        }
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.total {
            Some(total) => write!(f, "[{:>2}/{total}]", self.settled.len()),
            None => write!(f, "[{:>2}]", self.settled.len()),
        }
    }
}
