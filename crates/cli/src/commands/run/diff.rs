use baton_client::{EventDiff, RunDiff};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::render::{brief, event_pair};
use crate::run_ref;

const LONGEST_VALUE: usize = 60;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// First run: its id, or the beginning of it
    a: String,
    /// Second run
    b: String,
    /// Show at most this many events that differ
    #[arg(long, value_name = "N", default_value_t = 20)]
    events: usize,
    /// Exit with 9 if the runs differ [default: exit with 0]
    #[arg(long)]
    exit_code: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (a, b) = (run_ref::find(&client, &args.a).await?, run_ref::find(&client, &args.b).await?);
    let diff = client.diff(&a, &b).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&diff)?;
    } else {
        print(output, &diff, args.events)?;
    }
    let equal = diff.diverged_at_seq.is_none() && diff.state_diff.is_empty();
    Ok(if args.exit_code && !equal { Exit::Diverged } else { Exit::Ok })
}

fn print(output: &Output, diff: &RunDiff, most: usize) -> Result<(), Failure> {
    let RunDiff { a, b, event_diffs, state_diff, .. } = diff;
    match diff.diverged_at_seq {
        None => output.note(format_args!("{a} and {b} are equal")),
        Some(seq) => {
            output.line(format_args!("--- {a}\n+++ {b}"))?;
            output.line(format_args!("the runs differ from sequence {seq} on"))?;
            for event in event_diffs.iter().take(most) {
                print_event(output, event)?;
            }
        }
    }
    let rows = state_rows(state_diff);
    if !rows.is_empty() {
        let mut states = table(&["STATE", "A", "B"]);
        for row in rows {
            states.add_row(row);
        }
        output.line("")?;
        output.table(&states)?;
    }
    let hidden = event_diffs.len().saturating_sub(most);
    if hidden > 0 {
        output.note(format_args!("{hidden} more events differ; --events {} shows them", event_diffs.len()));
    }
    if diff.truncated {
        output.note("only the beginning was compared: a run has not ended, or there are too many differences");
    }
    Ok(())
}

fn print_event(output: &Output, diff: &EventDiff) -> Result<(), Failure> {
    output.line("")?;
    let (a, b) = (diff.a_event.as_ref(), diff.b_event.as_ref());
    output.line(format_args!("@ {} {}", diff.seq, event_pair::heading(a, b)))?;
    for line in event_pair::lines(a, b) {
        output.line(line)?;
    }
    Ok(())
}

/// `{status: {a, b}, variables: {name: {a, b}}}` as rows of name, a and b.
fn state_rows(state: &Map<String, Value>) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    for (name, value) in state {
        match sides(name, value) {
            Some(row) => rows.push(row),
            None => rows.extend(
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter_map(|(key, value)| sides(&format!("{name}.{key}"), value)),
            ),
        }
    }
    rows
}

/// A variable may be called `a` as well, but then it holds an object with the two sides.
fn sides(name: &str, value: &Value) -> Option<[String; 3]> {
    let both = value.as_object().filter(|sides| sides.len() == 2)?;
    let (a, b) = (both.get("a")?, both.get("b")?);
    let grouped = matches!(name, "variables" | "channels");
    let side = |value: &Value| if value.is_null() { "-".to_owned() } else { brief(value, LONGEST_VALUE) };
    (!grouped).then(|| [name.to_owned(), side(a), side(b)])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_are_printed_by_name() {
        let state = json!({
            "status": {"a": "completed", "b": "failed"},
            "error": {"a": null, "b": {"code": "boom"}},
            "variables": {"a": {"a": 1, "b": 2}, "b": {"a": "x", "b": null}},
        });
        let rows = state_rows(state.as_object().unwrap());
        let row = |name: &str, a: &str, b: &str| [name.to_owned(), a.to_owned(), b.to_owned()];
        assert_eq!(
            rows,
            [
                row("error", "-", "{\"code\":\"boom\"}"),
                row("status", "completed", "failed"),
                row("variables.a", "1", "2"),
                row("variables.b", "x", "-"),
            ]
        );
    }
}
