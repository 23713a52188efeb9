use baton_client::{Client, Interrupt};
use serde_json::{Map, Value, json};

use super::show::find;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::question::Question;
use crate::{input, run_ref};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// Node that asks; needed only if several ask
    node: Option<String>,
    #[command(flatten)]
    answer: Answer,
    /// Id of the question, from `baton interrupt show`; needed from a node's second question on
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Comment for --accept, --reject or --edit
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["answers", "value", "refine"])]
    feedback: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Answer {
    /// Approve the proposal
    #[arg(long)]
    accept: bool,
    /// Reject the proposal
    #[arg(long)]
    reject: bool,
    /// Ask for changes: send it back with this comment
    #[arg(long, value_name = "TEXT")]
    refine: Option<String>,
    /// Approve this JSON value instead of the proposed one
    #[arg(long, value_name = "JSON")]
    edit: Option<String>,
    /// Answer one question of a clarification; may be repeated
    #[arg(long = "answer", value_name = "ID=VALUE", value_parser = pair)]
    answers: Vec<(String, Value)>,
    /// Answer as JSON, for any other kind of question
    #[arg(long, value_name = "JSON")]
    value: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let reply = reply(&args)?;
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let meant = args.id.as_deref();
    let (node, value) = match (args.node, reply) {
        (Some(node), Reply::Value(value)) => (node, value),
        (None, Reply::Value(value)) => (only_open(&client, &id, meant).await?.node_id.to_string(), value),
        // How an action is said depends on the kind of question. One that is not open any more is for the host to
        // refuse: it knows whether it was answered, cancelled, or never there.
        (Some(node), Reply::Action(action)) => match find(&client, &id, Some(&node)).await {
            Ok(open) if meant.is_none_or(|meant| meant == open.interrupt_id) => {
                (node, said_to(&Question::from(open), action)?)
            }
            Ok(_) => (node, action),
            Err(failure) if failure.exit == Exit::NotFound => (node, action),
            Err(failure) => return Err(failure),
        },
        (None, Reply::Action(action)) => {
            let open = only_open(&client, &id, meant).await?;
            (open.node_id.to_string(), said_to(&Question::from(open), action)?)
        }
    };
    let resolved = match client.resolve_interrupt(&id, &node, meant, &value).await {
        Err(error) if error.code() == Some("interrupt_already_resolved") => {
            return Err(late(&client, &id, &node, error.into()).await);
        }
        resolved => resolved?,
    };
    if context.output.is_json() {
        context.output.json(&resolved)?;
    } else {
        context.output.line(format_args!("{} {}", resolved.run_id, resolved.status))?;
        // A child's answer moves its parent: that is where to look next.
        let parent = client.run(&id).await.ok().and_then(|run| run.parent_run_id);
        let next = parent.unwrap_or(resolved.run_id);
        context.output.hint(format_args!("baton run show {next}"));
    }
    Ok(Exit::Ok)
}

/// Somebody has answered. Where the node asks something else now, that is shown, with the command that answers it.
async fn late(client: &Client, run: &str, node: &str, failure: Failure) -> Failure {
    match find(client, run, Some(node)).await {
        Ok(open) => {
            let open = Question::from(open);
            failure.and(&format!("It asks: {}", open.title())).hint(open.command())
        }
        Err(_) => failure,
    }
}

/// The only open question, or the one that is meant. Where there was one and it is too late, that is a conflict, as it is
/// when the node is named.
async fn only_open(client: &Client, run: &str, meant: Option<&str>) -> Result<Interrupt, Failure> {
    if let Some(meant) = meant {
        let open = client.interrupts(Some(run)).await?.interrupts;
        let found = open.into_iter().find(|open| open.run_id.as_str() == run && open.interrupt_id == meant);
        return found.ok_or_else(|| {
            let message = format!("{run} does not ask `{meant}`: it was answered, or never asked");
            Failure::new(Exit::Conflict, message).hint(format!("baton interrupt list {run}"))
        });
    }
    let missing = match find(client, run, None).await {
        Err(failure) if failure.exit == Exit::NotFound => failure,
        found => return found,
    };
    let Ok(snapshot) = client.run(run).await else { return Err(missing) };
    let status = snapshot.status;
    let late = if status.is_terminal() {
        Some(format!("{run} has ended ({status}) and waits for no answer"))
    } else if Exit::of_run(status, None) == Exit::Waiting {
        // The question is somebody else's, and still open there.
        None
    } else {
        answered(client, run, snapshot.at_seq).await?.then(|| format!("what {run} asked has been answered"))
    };
    Err(late.map_or(missing, |late| Failure::new(Exit::Conflict, late).hint(format!("baton run show {run}"))))
}

/// Whether a question was answered in the log as far as `until`.
async fn answered(client: &Client, run: &str, until: u64) -> Result<bool, Failure> {
    let mut after = None;
    loop {
        let page = client.events(run, after, 0).await?;
        if page.events.iter().any(|event| event.kind == "interrupt.resolved") {
            return Ok(true);
        }
        match page.events.last() {
            Some(last) if last.sequence < until => after = Some(last.sequence),
            _ => return Ok(false),
        }
    }
}

/// What was typed.
#[derive(Debug, PartialEq)]
enum Reply {
    /// Goes to the host as it stands.
    Value(Value),
    /// Accept, reject, refine or edit.
    Action(Value),
}

fn reply(args: &Args) -> Result<Reply, Failure> {
    let answer = &args.answer;
    if let Some(text) = &answer.value {
        return input::parse(text, "--value").map(Reply::Value);
    }
    if !answer.answers.is_empty() {
        let answers: Map<String, Value> = answer.answers.iter().cloned().collect();
        return Ok(Reply::Value(json!({ "answers": answers })));
    }
    let mut action = if let Some(text) = &answer.refine {
        json!({ "action": "refine", "refineFeedback": { "scope": "whole", "text": text } })
    } else if let Some(text) = &answer.edit {
        json!({ "action": "edit-accept", "editedArtifactData": input::parse(text, "--edit")? })
    } else {
        json!({ "action": if answer.accept { "accept" } else { "reject" } })
    };
    if let Some(feedback) = &args.feedback {
        action["feedback"] = feedback.as_str().into();
    }
    Ok(Reply::Action(action))
}

/// The action in the words of the question.
fn said_to(question: &Question, action: Value) -> Result<Value, Failure> {
    match question.kind.as_str() {
        "clarification" if question.holds_decision() => Ok(json!({ "answers": { "decision": action } })),
        "clarification" | "external-event" => {
            Err(Failure::usage("this is not a yes-or-no question").hint(question.command()))
        }
        _ => Ok(action),
    }
}

fn pair(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some((id, value)) if !id.is_empty() => Ok((id.to_owned(), input::loose(value))),
        _ => Err("write it ID=VALUE".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn typed(words: &[&str]) -> Option<Value> {
        let line = Line::try_parse_from(["resolve", "run_1", "gate"].iter().chain(words)).ok()?;
        reply(&line.args).ok().map(|reply| match reply {
            Reply::Value(value) | Reply::Action(value) => value,
        })
    }

    fn question(kind: &str, data: Value) -> Question {
        let id = "int:gate:1".into();
        Question { run: "run_1".into(), workflow: "w".into(), node: "gate".into(), id, kind: kind.into(), data }
    }

    #[test]
    fn an_action_is_said_in_the_words_of_the_question() {
        let accept = json!({"action": "accept"});
        let held = question("clarification", json!({"contextType": "orchestrator-decision", "questions": []}));
        assert_eq!(said_to(&held, accept.clone()).unwrap(), json!({"answers": {"decision": {"action": "accept"}}}));
        for kind in ["approval", "low-confidence", "x-host-baton-low-confidence", "custom"] {
            assert_eq!(said_to(&question(kind, json!({})), accept.clone()).unwrap(), accept, "{kind}");
        }
        for kind in ["clarification", "external-event"] {
            assert_eq!(said_to(&question(kind, json!({})), accept.clone()).unwrap_err().exit, Exit::Usage, "{kind}");
        }
    }

    #[test]
    fn each_way_to_answer() {
        assert_eq!(typed(&["--accept"]), Some(json!({"action": "accept"})));
        assert_eq!(
            typed(&["--reject", "--feedback", "too long"]),
            Some(json!({"action": "reject", "feedback": "too long"}))
        );
        assert_eq!(
            typed(&["--answer", "a=1", "--answer", "b=next week"]),
            Some(json!({"answers": {"a": 1, "b": "next week"}}))
        );
        assert_eq!(
            typed(&["--refine", "shorter"]),
            Some(json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "shorter"}}))
        );
        assert_eq!(
            typed(&["--edit", r#"{"kind":"terminate"}"#]),
            Some(json!({"action": "edit-accept", "editedArtifactData": {"kind": "terminate"}}))
        );
        assert_eq!(typed(&["--value", "[1]"]), Some(json!([1])));
    }

    #[test]
    fn an_answer_is_needed_and_only_one_kind() {
        for words in [&[][..], &["--accept", "--reject"], &["--answer", "x"], &["--value", "{"], &["--edit", "{"]] {
            assert_eq!(typed(words), None, "{words:?}");
        }
    }
}
