//! A run as a person wants to see it: where it stands, why, and what its nodes did.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use baton_model::{ForkedFrom, NodeId, NodeStateView, NodeStatus, RunSnapshot, SideEffects, Timestamp};
use comfy_table::Table;
use serde_json::{Map, Value};

use super::{brief, usage};
use crate::age::{ago, span};
use crate::output::{Output, table};

const LONGEST_VALUE: usize = 120;

pub(crate) fn print(output: &Output, run: &RunSnapshot, now: Timestamp) -> io::Result<()> {
    output.line(head(run, now).trim_end())?;
    if !run.node_states.is_empty() {
        output.line("")?;
        output.table(&nodes(&run.node_states))?;
    }
    if !run.child_runs.is_empty() {
        let mut children = table(&["CHILD", "WORKFLOW", "STATUS", "NODE"]);
        for child in &run.child_runs {
            children.add_row([
                child.run_id.as_str(),
                child.workflow_id.as_str(),
                child.status.as_str(),
                child.node_id.as_str(),
            ]);
        }
        output.line("")?;
        output.table(&children)?;
    }
    Ok(())
}

pub(super) fn nodes(states: &BTreeMap<NodeId, NodeStateView>) -> Table {
    let mut nodes = table(&["NODE", "STATUS", "VISIT", "NOTE"]);
    for (id, state) in states {
        let mut note = String::new();
        if state.attempt > 0 {
            let _ = write!(note, "attempt {} ", state.attempt + 1);
        }
        if let Some(error) = &state.error {
            let _ = write!(note, "{}: {}", error.code, error.message);
        }
        nodes.add_row([id.as_str(), node_status(state.status), &state.visit.to_string(), note.trim_end()]);
    }
    nodes
}

fn head(run: &RunSnapshot, now: Timestamp) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    row("run", run.run_id.as_str());
    row("workflow", run.workflow_id.as_str());
    row("status", run.status.as_str());
    if let Some(node) = run.current_node_id.as_ref().filter(|_| !run.status.is_terminal()) {
        row("at", node.as_str());
    }
    if let Some(at) = run.started_at {
        row("started", &ago(at, now));
        let end = run.completed_at.unwrap_or(now);
        row(if run.completed_at.is_some() { "took" } else { "for" }, &span(end.millis_since(at)));
    }
    if let (Some(parent), Some(node)) = (&run.parent_run_id, &run.parent_node_id) {
        row("parent", &format!("{parent} (node {node})"));
    }
    if let Some(source) = &run.forked_from {
        row("forked", &forked(source));
    }
    if !run.tags.is_empty() {
        row("tags", &run.tags.join(", "));
    }
    if let Some(error) = &run.error {
        row("error", &format!("{}: {}", error.code, error.message));
    }
    if let Some(outputs) = &run.outputs {
        row("outputs", &brief(outputs, LONGEST_VALUE));
    }
    if let Some(used) = run.metrics.as_ref().and_then(usage::of_run) {
        row("tokens", &used);
    }
    if let Some(retention) = &run.retention {
        let missing = "its events are here, what it remembered and which files it saw are not";
        row("pruned", &format!("{}: {missing}", ago(retention.pruned_at, now)));
    }
    if !run.workspace.is_empty() {
        let files = run.workspace.iter().map(|file| format!("{} (version {})", file.path, file.version));
        row("workspace", &brief(&files.collect::<Vec<_>>().join(", ").into(), LONGEST_VALUE));
    }
    row_map(&mut text, "variables", &run.variables);
    row_map(&mut text, "channels", &run.channels);
    text
}

/// Where a fork comes from, and what it has otherwise.
fn forked(source: &ForkedFrom) -> String {
    let ForkedFrom { run_id, from_seq, requested_from_seq, mode, .. } = source;
    let mut text = format!("{} of {run_id} at {from_seq}", mode.as_str());
    if let Some(asked) = requested_from_seq {
        let _ = write!(text, " (asked for {asked})");
    }
    if source.side_effects == Some(SideEffects::Real) {
        text.push_str(", side effects real");
    }
    if !source.overlaid.is_empty() {
        let _ = write!(text, ", with its own {}", source.overlaid.join(", "));
    }
    text
}

pub(super) fn row_map(text: &mut String, name: &str, map: &Map<String, Value>) {
    for (index, (key, value)) in map.iter().enumerate() {
        let label = if index == 0 { name } else { "" };
        let _ = writeln!(text, "{label:<10} {key} = {}", brief(value, LONGEST_VALUE));
    }
}

const fn node_status(status: NodeStatus) -> &'static str {
    match status {
        NodeStatus::Pending => "pending",
        NodeStatus::Running => "running",
        NodeStatus::Retrying => "retrying",
        NodeStatus::Suspended => "suspended",
        NodeStatus::Completed => "completed",
        NodeStatus::Failed => "failed",
        NodeStatus::Skipped => "skipped",
        NodeStatus::Cancelled => "cancelled",
    }
}
