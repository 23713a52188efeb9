use baton_client::{Client, Interrupt};
use serde_json::Value;

use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::brief;
use crate::render::held_decision::HeldDecision;
use crate::render::question::Question;
use crate::run_ref;

const LONGEST_VALUE: usize = 200;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// Node that asks; needed only if several ask
    node: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let open = find(&client, &id, args.node.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&open)?;
        return Ok(Exit::Ok);
    }
    let mut rows = vec![
        ("run", open.run_id.to_string()),
        ("workflow", open.workflow_id.to_string()),
        ("node", open.node_id.to_string()),
        ("id", open.interrupt_id.clone()),
        ("kind", open.kind.clone()),
        ("asked", ago(open.requested_at, now())),
    ];
    rows.extend(open.expires_at.map(|at| ("expires", at.to_string())));
    let question = Question::from(open);
    if question.holds_decision() {
        rows.push(("question", question.title()));
        rows.extend(HeldDecision::behind(&client, &question.run, &question.node, &question.data).await?.rows());
    } else if question.gates_merge() {
        rows.push(("question", question.title()));
        rows.extend(merge(&question.data));
    }
    for (name, value) in rows {
        output.line(format_args!("{name:<10} {value}"))?;
    }
    if !question.holds_decision() && !question.gates_merge() {
        output.line(serde_json::to_string_pretty(&question.data).unwrap_or_default())?;
    }
    question.say_answers(output);
    Ok(Exit::Ok)
}

/// What a worker made, and the seal on it.
fn merge(data: &Value) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(outputs) = data.pointer("/artifactData/outputs").and_then(Value::as_object) {
        rows.extend(
            outputs.iter().map(|(name, value)| ("output", format!("{name} = {}", brief(value, LONGEST_VALUE)))),
        );
    }
    if let Some(checksum) = data.pointer("/artifactData/attestation/checksum").and_then(Value::as_str) {
        rows.push(("sha256", checksum.to_owned()));
    }
    rows
}

/// The open interrupt of a run: the one at `node`, or the only one.
pub(crate) async fn find(client: &Client, run: &str, node: Option<&str>) -> Result<Interrupt, Failure> {
    let mut open = client.interrupts(Some(run)).await?.interrupts;
    open.retain(|one| one.run_id.as_str() == run && node.is_none_or(|node| one.node_id.as_str() == node));
    match open.len() {
        0 => Err(nothing_open(client, run, node).await),
        1 => Ok(open.remove(0)),
        _ => {
            let nodes: Vec<String> = open.into_iter().map(|interrupt| interrupt.node_id.to_string()).collect();
            Err(Failure::usage(format!("several nodes of {run} ask: {}", nodes.join(", "))).hint("name the node"))
        }
    }
}

/// A parent that waits mostly waits for a child's question: then that is the one to name.
async fn nothing_open(client: &Client, run: &str, node: Option<&str>) -> Failure {
    let missing = |text: String| Failure::new(Exit::NotFound, text);
    let asked = match client.run(run).await {
        Ok(snapshot) if node.is_none() => Question::of_run(client, &snapshot).await,
        _ => None,
    };
    match asked {
        Some(question) if question.run != run => missing(format!(
            "{run} has no open question; its descendant {} ({}) has one",
            question.run, question.workflow
        ))
        .hint(question.command()),
        _ => missing(format!("{run} has no open question{}", at(node)))
            .hint("`baton interrupt list` shows the open questions"),
    }
}

fn at(node: Option<&str>) -> String {
    node.map(|node| format!(" at node {node}")).unwrap_or_default()
}
