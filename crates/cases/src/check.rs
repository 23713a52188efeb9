//! What came of a run, held against what the case expects.

use baton_model::{NodeId, RunSnapshot};
use serde_json::{Value, json};

use crate::case::{Case, ChildDef, EventDef, Expect, ToolCallDef, named};
use crate::compare::{diff_lines, difference, holds};
use crate::report::Problem;
use crate::run::{Child, Observed};

/// How many of the events that were found a message lists.
const SHOWN_EVENTS: usize = 40;

/// Everything that is not as it should be; nothing if the case passes.
pub(crate) fn check(case: &Case, observed: &Observed) -> Vec<Problem> {
    let expect = &case.expect;
    let mut problems = observed.problems.clone();
    problems.extend(status(expect, &observed.snapshot));
    problems.extend(values(expect, &observed.snapshot));
    problems.extend(events(expect, &observed.events));
    problems.extend(expect.tools.as_ref().and_then(|wanted| tool_calls(wanted, &observed.tool_calls)));
    problems.extend(children(&expect.children, &observed.children));
    problems.extend(usage(expect, observed));
    if problems.is_empty() {
        problems.extend(observed.leftovers.iter().cloned());
        problems.extend(observed.unused_answers.iter().map(|number| {
            let message = format!("answer {} answers nothing: no such question was asked", number + 1);
            Problem::new("answers", message).hint("take it out, or correct its `node` or `key`")
        }));
    }
    problems
}

fn status(expect: &Expect, snapshot: &RunSnapshot) -> Option<Problem> {
    let wanted = expect.status.as_deref().unwrap_or("completed");
    let found = snapshot.status.as_str();
    if wanted == found {
        return None;
    }
    let mut message = format!("expected `{wanted}`, found `{found}`");
    if let Some(error) = &snapshot.error {
        message.push_str(&format!(": {} [{}]", error.message, error.code));
    }
    let failed = snapshot.node_states.iter().find(|(_, state)| json!(state)["status"] == "failed");
    if let Some((node, _)) = failed {
        message.push_str(&format!(" at `{}`", node.as_str()));
    }
    Some(Problem::new("status", message))
}

fn values(expect: &Expect, snapshot: &RunSnapshot) -> Vec<Problem> {
    let nodes: serde_json::Map<String, Value> = snapshot
        .node_states
        .iter()
        .map(|(node, state): (&NodeId, _)| (node.as_str().to_owned(), json!(state)))
        .collect();
    let found = [
        ("outputs", &expect.outputs, snapshot.outputs.clone().unwrap_or(Value::Null)),
        ("variables", &expect.variables, Value::Object(snapshot.variables.clone())),
        ("error", &expect.error, json!(snapshot.error)),
        ("nodes", &expect.nodes, Value::Object(nodes)),
    ];
    found.into_iter().filter_map(|(name, wanted, found)| value(name, wanted.as_ref()?, &found)).collect()
}

fn value(name: &str, wanted: &Value, found: &Value) -> Option<Problem> {
    if holds(wanted, found) {
        return None;
    }
    Some(Problem::new(name, format!("{name} are not as expected")).diff(difference(wanted, found)))
}

impl EventDef {
    fn is(&self, event: &Value) -> bool {
        event["type"] == self.kind.as_str()
            && self.node.as_deref().is_none_or(|node| event["nodeId"] == node)
            && self.payload.as_ref().is_none_or(|payload| holds(payload, &event["payload"]))
    }

    /// The same event, whatever it says.
    fn is_like(&self, event: &Value) -> bool {
        Self { payload: None, ..self.clone() }.is(event)
    }

    fn shown(&self) -> String {
        match &self.node {
            Some(node) => format!("{} {node}", self.kind),
            None => self.kind.clone(),
        }
    }
}

/// Each expected event after the one before it, and none of those that must not be.
fn events(expect: &Expect, events: &[Value]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut from = 0;
    for (number, wanted) in expect.events.iter().enumerate() {
        let rest = &events[from..];
        match rest.iter().position(|event| wanted.is(event)) {
            Some(at) => from += at + 1,
            None => {
                problems.push(missing(number, wanted, rest));
                break;
            }
        }
    }
    for unwanted in &expect.no_events {
        if let Some(event) = events.iter().find(|event| unwanted.is(event)) {
            let message = format!("`{}` happened (event {})", unwanted.shown(), event["sequence"]);
            problems.push(Problem::new("noEvents", message));
        }
    }
    problems
}

fn missing(number: usize, wanted: &EventDef, rest: &[Value]) -> Problem {
    let message = format!("event {} is not there: `{}`", number + 1, wanted.shown());
    // One of this kind that says something else is what was meant most often.
    if let (Some(payload), Some(event)) = (&wanted.payload, rest.iter().find(|event| wanted.is_like(event))) {
        return Problem::new("events", format!("{message} with this payload"))
            .diff(difference(payload, &event["payload"]));
    }
    let line = |event: &Value| match event["nodeId"].as_str() {
        Some(node) => format!("{} {node}", event["type"].as_str().unwrap_or_default()),
        None => event["type"].as_str().unwrap_or_default().to_owned(),
    };
    let mut found: Vec<String> = rest.iter().take(SHOWN_EVENTS).map(line).collect();
    if rest.len() > SHOWN_EVENTS {
        found.push(format!("… and {} more", rest.len() - SHOWN_EVENTS));
    }
    let after = if number == 0 { "the run began with" } else { "after the event before it came" };
    Problem::new("events", message).hint(format!("{after}: {}", found.join(", ")))
}

fn tool_calls(wanted: &[ToolCallDef], found: &[(String, Value)]) -> Option<Problem> {
    let is = |(wanted, (tool, arguments)): (&ToolCallDef, &(String, Value))| {
        wanted.tool == *tool && wanted.arguments.as_ref().is_none_or(|expected| holds(expected, arguments))
    };
    if wanted.len() == found.len() && wanted.iter().zip(found).all(is) {
        return None;
    }
    // Arguments that nobody asked about are left out, so that only what is wrong differs.
    let line = |tool: &str, arguments: &Value| format!("{tool} {arguments}\n");
    let expected: String = wanted
        .iter()
        .enumerate()
        .map(|(i, wanted)| match (&wanted.arguments, found.get(i)) {
            (_, Some(call)) if is((wanted, call)) => line(&call.0, &call.1),
            (Some(arguments), _) => line(&wanted.tool, arguments),
            (None, _) => format!("{}\n", wanted.tool),
        })
        .collect();
    let called: String = found.iter().map(|(tool, arguments)| line(tool, arguments)).collect();
    Some(Problem::new("tools", "the calls of tools are not as expected").diff(diff_lines(&expected, &called)))
}

fn children(wanted: &[ChildDef], found: &[Child]) -> Vec<Problem> {
    let mut free: Vec<&Child> = found.iter().collect();
    let mut problems = Vec::new();
    for wanted in wanted {
        let of_it = |child: &&Child| child.snapshot.workflow_id.as_str() == wanted.workflow;
        if let Some(at) = free.iter().position(|child| of_it(child) && fits(wanted, &child.snapshot)) {
            free.remove(at);
            continue;
        }
        let problem = Problem::new("children", format!("no run of `{}` is as expected", wanted.workflow));
        problems.push(match free.iter().copied().find(|child| of_it(child)) {
            Some(child) => problem.diff(difference(&shown(wanted), &seen(&child.snapshot))),
            None => {
                let names: Vec<&str> = found.iter().map(|child| child.snapshot.workflow_id.as_str()).collect();
                problem.hint(if names.is_empty() {
                    "the run started no others".to_owned()
                } else {
                    format!("the run started {}", names.join(", "))
                })
            }
        });
    }
    problems
}

fn fits(wanted: &ChildDef, child: &RunSnapshot) -> bool {
    holds(&shown(wanted), &seen(child))
}

fn shown(wanted: &ChildDef) -> Value {
    let mut shown = serde_json::Map::new();
    shown.insert("status".to_owned(), wanted.status.as_deref().unwrap_or("completed").into());
    shown.extend(wanted.outputs.clone().map(|outputs| ("outputs".to_owned(), outputs)));
    shown.extend(wanted.variables.clone().map(|variables| ("variables".to_owned(), variables)));
    Value::Object(shown)
}

fn seen(child: &RunSnapshot) -> Value {
    json!({"status": child.status.as_str(), "outputs": child.outputs, "variables": child.variables})
}

fn usage(expect: &Expect, observed: &Observed) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(bound) = expect.seconds.filter(|bound| !bound.holds(observed.seconds)) {
        problems.push(Problem::new("seconds", format!("expected {bound} s, found {} s", observed.seconds)));
    }
    for (name, bound) in expect.usage.as_ref().map(named).unwrap_or_default() {
        #[expect(clippy::cast_precision_loss, reason = "counts of a test are small")]
        let found = match name {
            "inputTokens" => Some(observed.usage.input_tokens as f64),
            "outputTokens" => Some(observed.usage.output_tokens as f64),
            "costUsd" => observed.usage.cost_usd,
            "modelCalls" => Some(observed.model_calls as f64),
            _ => Some(observed.tool_calls.len() as f64),
        };
        match found {
            Some(found) if bound.holds(found) => {}
            Some(found) => {
                problems.push(Problem::new("usage", format!("{name}: expected {bound}, found {found}")));
            }
            None => problems.push(
                Problem::new("usage", format!("{name}: expected {bound}, and nothing has a price"))
                    .hint("give the model a price: `prices: {scripted/test: {input: 1, output: 5}}` in US dollars for a million tokens"),
            ),
        }
    }
    problems
}
