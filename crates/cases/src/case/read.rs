//! A case is read, and judged as far as that goes without running it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_model::{RunStatus, Timestamp};
use baton_provider::{Price, ScriptRule};
use jiff::{Span, SpanRelativeTo};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{AnswerDef, Case, EventDef, Expect, ModelRule, Subject, ToolDef};
use crate::file::FileProblem;
use crate::file::Place;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Written {
    name: String,
    workflow: Option<String>,
    agent: Option<String>,
    inputs: Map<String, Value>,
    configurable: Map<String, Value>,
    model: Vec<Map<String, Value>>,
    recording: Option<PathBuf>,
    tools: BTreeMap<String, ToolDef>,
    answers: Vec<AnswerDef>,
    prices: BTreeMap<String, Price>,
    starts_at: Option<String>,
    timeout_seconds: Option<u64>,
    expect: Expect,
}

pub(crate) fn read_case(
    written: &Map<String, Value>,
    place: &Place<'_>,
    file: &Path,
    folder: &Path,
) -> Result<Case, FileProblem> {
    let mut case: Written = typed(Value::Object(written.clone()), "", place)?;
    if case.name.trim().is_empty() {
        return Err(place.problem("/name", "the case has no name").hint("write `- name: what it shows`"));
    }
    let subject = match (&case.workflow, &case.agent) {
        (Some(workflow), None) if workflow.contains('/') || workflow.ends_with(".json") => {
            Subject::WorkflowFile(folder.join(workflow))
        }
        (Some(workflow), None) => Subject::Workflow(workflow.clone()),
        (None, Some(agent)) => Subject::Agent(agent.clone()),
        (None, None) => {
            return Err(place
                .problem("", "the case starts nothing")
                .hint("add `workflow: ID`, `workflow: path/to/file.json` or `agent: ID`"));
        }
        (Some(_), Some(_)) => {
            return Err(place.problem("/agent", "a case starts a workflow or an agent, not both"));
        }
    };
    let model = model_rules(std::mem::take(&mut case.model), place)?;
    if case.recording.is_some() && !model.is_empty() {
        let problem = place.problem("/recording", "a case has `model` or a `recording`, not both");
        return Err(problem.hint("say `recording: null` in a case that does not use the file's recording"));
    }
    for (id, tool) in &mut case.tools {
        check_tool(id, tool, place)?;
    }
    for (number, answer) in case.answers.iter_mut().enumerate() {
        let pointer = format!("/answers/{number}");
        if answer.ways() != 1 {
            let message = "an answer says one thing";
            let hint = "give it one of `value`, `accept`, `reject`, `refine`, `edit`, `answers` or `nobody`";
            return Err(place.problem(&pointer, message).hint(hint));
        }
        answer.after_ms = millis(answer.after.as_deref(), &format!("{pointer}/after"), place)?;
    }
    let starts_at = match &case.starts_at {
        None => None,
        Some(text) => Some(Timestamp::parse(text).ok_or_else(|| {
            place.problem("/startsAt", format!("`{text}` is no instant")).hint("write it like 2026-01-01T09:00:00Z")
        })?),
    };
    check_expect(&case.expect, place)?;
    if case.timeout_seconds == Some(0) {
        return Err(place.problem("/timeoutSeconds", "a case needs at least a second"));
    }
    Ok(Case {
        name: case.name,
        file: file.to_owned(),
        folder: folder.to_owned(),
        position: place.of(""),
        subject,
        inputs: case.inputs,
        configurable: case.configurable,
        model,
        recording: case.recording.map(|path| folder.join(path)),
        tools: case.tools,
        answers: case.answers,
        prices: case.prices,
        starts_at,
        timeout_seconds: case.timeout_seconds,
        expect: case.expect,
    })
}

/// Each rule is one of a script, and may say how often it counts: once unless it says so.
fn model_rules(written: Vec<Map<String, Value>>, place: &Place<'_>) -> Result<Vec<ModelRule>, FileProblem> {
    let mut rules = Vec::new();
    for (number, mut rule) in written.into_iter().enumerate() {
        let pointer = format!("/model/{number}");
        let times = match rule.remove("times") {
            None => Some(1),
            Some(Value::String(word)) if word == "any" => None,
            Some(times) => {
                match times.as_u64().and_then(|times| u32::try_from(times).ok()).filter(|times| *times > 0) {
                    Some(times) => Some(times),
                    None => {
                        let problem =
                            place.problem(&format!("{pointer}/times"), "`times` is a number from 1 on, or `any`");
                        return Err(problem);
                    }
                }
            }
        };
        if !rule.contains_key("reply") && !rule.contains_key("when") {
            // Without `when`, the reply may stand by itself.
            rule = Map::from_iter([("reply".to_owned(), Value::Object(rule))]);
        }
        let rule: ScriptRule = typed(Value::Object(rule), &pointer, place)?;
        rule.check().map_err(|why| place.problem(&pointer, format!("the reply {why}")))?;
        rules.push(ModelRule { rule, times, position: place.of(&pointer) });
    }
    Ok(rules)
}

fn check_tool(id: &str, tool: &mut ToolDef, place: &Place<'_>) -> Result<(), FileProblem> {
    let pointer = format!("/tools/{}", escaped(id));
    let is_id = id.split_once(':').is_some_and(|(scope, name)| !scope.is_empty() && !name.is_empty());
    if !is_id {
        let problem = place.problem(&pointer, format!("`{id}` is no id of a tool"));
        return Err(problem.hint("write it like mcp:shop.lookup, runner:workers.score or openwop:http.request"));
    }
    if id.starts_with("openwop:memory.") || id.starts_with("openwop:workspace.") || id == "openwop:envelope" {
        let problem = place.problem(&pointer, format!("`{id}` is part of the host and works in tests"));
        return Err(problem.hint("leave it out of `tools`"));
    }
    tool.takes_ms = millis(tool.takes.as_deref(), &format!("{pointer}/takes"), place)?;
    let both = |returns: bool, fails: bool| returns && fails;
    if both(tool.returns.is_some(), tool.fails.is_some()) {
        return Err(place.problem(&pointer, "a tool has `returns` or `fails`, not both"));
    }
    for (number, call) in tool.calls.iter_mut().enumerate() {
        let pointer = format!("{pointer}/calls/{number}");
        call.takes_ms = millis(call.takes.as_deref(), &format!("{pointer}/takes"), place)?;
        if call.returns.is_some() == call.fails.is_some() {
            return Err(place.problem(&pointer, "a call needs `returns` or `fails`, and not both"));
        }
    }
    Ok(())
}

fn check_expect(expect: &Expect, place: &Place<'_>) -> Result<(), FileProblem> {
    let statuses =
        expect.children.iter().enumerate().map(|(i, child)| (format!("/expect/children/{i}/status"), &child.status));
    for (pointer, status) in std::iter::once(("/expect/status".to_owned(), &expect.status)).chain(statuses) {
        if let Some(status) = status.as_deref().filter(|status| RunStatus::parse(status).is_none()) {
            let known: Vec<&str> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
            let hint = format!("there are {}", known.join(", "));
            return Err(place.problem(&pointer, format!("`{status}` is no status of a run")).hint(hint));
        }
    }
    let nameless = |list: &str, events: &[EventDef]| {
        let at = events.iter().position(|event| event.kind.is_empty())?;
        Some(place.problem(&format!("/expect/{list}/{at}"), "an event needs a `type`").hint("such as node.completed"))
    };
    match nameless("events", &expect.events).or_else(|| nameless("noEvents", &expect.no_events)) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

fn millis(text: Option<&str>, pointer: &str, place: &Place<'_>) -> Result<u64, FileProblem> {
    let Some(text) = text else { return Ok(0) };
    let read = || {
        let span: Span = text.trim().parse().ok()?;
        // A day is 24 hours here.
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        u64::try_from(duration.as_millis()).ok()
    };
    read().ok_or_else(|| {
        place.problem(pointer, format!("`{text}` is no duration")).hint("write it like 90s, 10m, 1h30m or 3d")
    })
}

/// Reads a part of the case, or says where in it the problem is.
fn typed<T: DeserializeOwned>(value: Value, base: &str, place: &Place<'_>) -> Result<T, FileProblem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path: String = error.path().iter().filter_map(segment).map(|part| format!("/{}", escaped(&part))).collect();
        let message = error.inner().to_string();
        let problem = place.problem(&format!("{base}{path}"), message.clone());
        match suggestion(&message) {
            Some(known) => problem.hint(format!("did you mean `{known}`?")),
            None => problem,
        }
    })
}

fn segment(segment: &serde_path_to_error::Segment) -> Option<String> {
    use serde_path_to_error::Segment;
    match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

fn escaped(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// Of an unknown field, the known one that looks most like it.
fn suggestion(message: &str) -> Option<String> {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (unknown, known) = names.split_first().filter(|_| message.starts_with("unknown"))?;
    let close = known.iter().map(|name| (strsim::damerau_levenshtein(unknown, name), name));
    let (distance, name) = close.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + unknown.len() / 4).then(|| (*name).to_owned())
}
