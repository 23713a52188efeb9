//! An open interrupt as something a person can answer: what is asked, and the command to type.

use baton_client::{Client, Interrupt};
use baton_model::RunSnapshot;
use serde_json::Value;

use super::brief;
use super::decision::is_decision;
use super::held_decision::HeldDecision;
use crate::output::Output;

/// How deep a parent's wait is traced to the child that asks.
const DEEPEST: usize = 16;

/// What became of a call that nobody heard back from; the engine gives it this name.
const UNKNOWN_EFFECT: &str = "x-host-baton-effect-unknown";

/// One question, wherever it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) node: String,
    /// What an answer names it by; empty where the host is too old to say.
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl From<Interrupt> for Question {
    fn from(open: Interrupt) -> Self {
        Self {
            run: open.run_id.to_string(),
            workflow: open.workflow_id.to_string(),
            node: open.node_id.to_string(),
            id: open.interrupt_id,
            kind: open.kind,
            data: open.data,
        }
    }
}

impl Question {
    /// The question a waiting run asks, or the one asked by the child it waits for.
    pub(crate) async fn of_run(client: &Client, run: &RunSnapshot) -> Option<Self> {
        if !run.status.is_waiting() {
            return None;
        }
        let mut run = run.clone();
        for _ in 0..DEEPEST {
            if let Some(open) = run.interrupt {
                return Some(Self {
                    run: run.run_id.as_str().to_owned(),
                    workflow: run.workflow_id.as_str().to_owned(),
                    node: open.node_id.as_str().to_owned(),
                    id: open.interrupt_id,
                    kind: open.kind,
                    data: open.data,
                });
            }
            let child = run.child_runs.iter().find(|child| child.status.is_waiting())?;
            run = client.run(child.run_id.as_str()).await.ok()?;
        }
        None
    }

    /// Tells what a waiting run asks and the command that answers; says nothing about other runs.
    pub(crate) async fn print(client: &Client, output: &Output, run: &RunSnapshot) {
        if let Some(question) = Self::of_run(client, run).await {
            question.say(output, run.run_id.as_str());
        }
    }

    /// What is asked, whose question it is when it is not `watched`'s own, and the command that answers.
    pub(crate) fn say(&self, output: &Output, watched: &str) {
        output.note(format_args!("waiting for {}: {}", self.kind, self.title()));
        if self.run != watched {
            output.note(format_args!(
                "asked by {} ({}, node {}), a descendant of this run",
                self.run, self.workflow, self.node
            ));
        }
        self.say_answers(output);
    }

    /// The command that answers, and its alternatives.
    pub(crate) fn say_answers(&self, output: &Output) {
        output.hint(self.command());
        if let Some(others) = self.other_answers() {
            output.note(format_args!("or answer with {others}"));
        }
    }

    /// Whether this asks a human to ratify what a supervisor was not sure enough about.
    pub(crate) fn holds_decision(&self) -> bool {
        let says = |name: &str| self.data.get(name).and_then(Value::as_str) == Some("orchestrator-decision");
        match self.kind.as_str() {
            "clarification" => says("contextType"),
            "low-confidence" => self.data.get("decision").is_some(),
            _ => says("artifactType"),
        }
    }

    /// Whether this asks a human to ratify an agent's answer to its task.
    fn doubts_answer(&self) -> bool {
        self.kind == "low-confidence" && self.data.get("decision").is_some_and(|answer| !is_decision(answer))
    }

    /// Whether this asks if a worker's outputs may be taken over.
    pub(crate) fn gates_merge(&self) -> bool {
        self.data.get("artifactType").and_then(Value::as_str) == Some("sub-run-output")
    }

    /// Whether `--accept` and its like are answers to it.
    pub(crate) fn takes_actions(&self) -> bool {
        self.holds_decision() || matches!(self.kind.as_str(), "approval" | "low-confidence")
    }

    /// The flags that answer it besides the one in [`Question::command`].
    fn other_answers(&self) -> Option<String> {
        if self.kind == UNKNOWN_EFFECT {
            return Some(r#"--value '{"action":"done","result":…}', --value '{"action":"fail"}'"#.to_owned());
        }
        let offered: Vec<&str> = match self.data.get("actions").and_then(Value::as_array) {
            Some(actions) => actions.iter().filter_map(Value::as_str).collect(),
            // An agent's answer is taken or not; only a supervisor's turn can be taken again.
            None if self.doubts_answer() => vec!["accept", "reject", "edit-accept"],
            None if self.holds_decision() => vec!["accept", "reject", "refine", "edit-accept"],
            None => return None,
        };
        let flags: Vec<&str> = offered
            .into_iter()
            .filter_map(|action| match action {
                "reject" => Some("--reject"),
                "refine" => Some("--refine TEXT"),
                "edit-accept" => Some("--edit JSON"),
                _ => None,
            })
            .collect();
        (!flags.is_empty()).then(|| flags.join(", "))
    }

    /// What is asked, in one line.
    pub(crate) fn title(&self) -> String {
        let field = |name: &str| self.data.get(name).map(|value| brief(value, 100));
        match self.kind.as_str() {
            "clarification" if self.holds_decision() => {
                questions(&self.data).map(|(_, question)| question).collect::<Vec<_>>().join("; ")
            }
            "clarification" => {
                questions(&self.data).map(|(id, question)| format!("{id}: {question}")).collect::<Vec<_>>().join("; ")
            }
            "external-event" => field("eventType").unwrap_or_default(),
            UNKNOWN_EFFECT => {
                let tool = field("toolName").unwrap_or_default();
                let inputs = field("inputs").unwrap_or_default();
                format!("did this call of {tool} take place? {inputs}")
            }
            "low-confidence" if self.doubts_answer() => {
                let held = HeldDecision { decision: None, ..HeldDecision::in_question(&self.data) };
                let why = held.rows().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ");
                format!("{} is not sure enough of its answer: {why}", field("agentId").unwrap_or_default())
            }
            "low-confidence" => HeldDecision::in_question(&self.data)
                .rows()
                .into_iter()
                .map(|(_, text)| text)
                .collect::<Vec<_>>()
                .join("; "),
            _ => field("title").or_else(|| field("customKind")).unwrap_or_else(|| brief(&self.data, 100)),
        }
    }

    /// The exact command that answers it. It names the question: typed twice, it answers no other.
    pub(crate) fn command(&self) -> String {
        let answer = match self.kind.as_str() {
            _ if self.takes_actions() => "--accept".to_owned(),
            "clarification" => {
                questions(&self.data).map(|(id, _)| format!("--answer {id}=…")).collect::<Vec<_>>().join(" ")
            }
            "external-event" => {
                let correlation = self.data.get("correlation").map_or_else(|| "{}".to_owned(), Value::to_string);
                format!("--value '{}'", correlation.replace('\'', "'\\''"))
            }
            UNKNOWN_EFFECT => r#"--value '{"action":"retry"}'"#.to_owned(),
            _ => "--value '{…}'".to_owned(),
        };
        let mut command = format!("baton interrupt resolve {} {} {answer}", self.run, self.node);
        if !self.id.is_empty() {
            command.push_str(&format!(" --id {}", quoted(&self.id)));
        }
        command
    }
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/@".contains(letter);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn questions(data: &Value) -> impl Iterator<Item = (&str, &str)> {
    let list = data.get("questions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|question| {
        let text = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
        (text("id"), text("question"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(kind: &str, data: Value) -> Question {
        Question {
            run: "run_1".to_owned(),
            workflow: "w".to_owned(),
            node: "gate".to_owned(),
            id: "int:gate:1".to_owned(),
            kind: kind.to_owned(),
            data,
        }
    }

    #[test]
    fn every_kind_has_a_command() {
        let approval = question("approval", json!({"title": "Ship it?"}));
        assert_eq!(approval.title(), "Ship it?");
        assert_eq!(approval.command(), "baton interrupt resolve run_1 gate --accept --id int:gate:1");

        let asks = json!({"questions": [{"id": "a", "question": "Who?"}, {"id": "b", "question": "When?"}]});
        let clarification = question("clarification", asks);
        assert_eq!(clarification.title(), "a: Who?; b: When?");
        assert_eq!(
            clarification.command(),
            "baton interrupt resolve run_1 gate --answer a=… --answer b=… --id int:gate:1"
        );

        let event = question("external-event", json!({"eventType": "paid", "correlation": {"order": "o'1"}}));
        assert_eq!(event.title(), "paid");
        assert_eq!(
            event.command(),
            "baton interrupt resolve run_1 gate --value '{\"order\":\"o'\\''1\"}' --id int:gate:1"
        );

        assert_eq!(question("custom", json!({"customKind": "x"})).title(), "x");
        let odd = Question { id: "int:it's 1:1".to_owned(), ..question("approval", json!({})) };
        assert!(odd.command().ends_with(r"--accept --id 'int:it'\''s 1:1'"), "{}", odd.command());
        let unnamed = Question { id: String::new(), ..question("approval", json!({})) };
        assert!(unnamed.command().ends_with("gate --accept"), "{}", unnamed.command());

        let data = json!({"toolName": "openwop:http.request", "inputs": {"method": "POST"}, "actions": ["retry"]});
        let lost = question(UNKNOWN_EFFECT, data);
        assert_eq!(lost.title(), "did this call of openwop:http.request take place? {\"method\":\"POST\"}");
        assert_eq!(
            lost.command(),
            "baton interrupt resolve run_1 gate --value '{\"action\":\"retry\"}' --id int:gate:1"
        );
        assert!(lost.other_answers().is_some_and(|others| others.contains("\"done\"")));
    }
    #[test]
    fn held_decisions_are_accepted_whatever_kind_they_come_as() {
        let decision = json!({"kind": "terminate", "confidence": 0.3});
        let artifact = json!({"artifactType": "orchestrator-decision", "title": "t", "artifactData": decision,
            "actions": ["accept", "reject", "refine", "edit-accept"]});
        let asks = json!({"contextType": "orchestrator-decision", "questions": [{"id": "decision", "question": "t"}]});
        let doubt = json!({"agentId": "a", "threshold": 0.7, "observed": 0.5, "decision": decision});
        for (kind, data) in [
            ("approval", artifact.clone()),
            ("x-host-baton-low-confidence", artifact),
            ("clarification", asks),
            ("low-confidence", doubt),
        ] {
            let held = question(kind, data);
            assert!(held.holds_decision() && held.takes_actions(), "{kind}");
            assert_eq!(held.command(), "baton interrupt resolve run_1 gate --accept --id int:gate:1", "{kind}");
            assert_eq!(held.other_answers().as_deref(), Some("--reject, --refine TEXT, --edit JSON"), "{kind}");
        }
    }

    #[test]
    fn an_unsure_answer_cannot_be_refined() {
        let data = json!({"agentId": "a.b", "threshold": 0.7, "observed": 0.3, "decision": {"verdict": "accept"}});
        let doubt = question("low-confidence", data);
        assert_eq!(doubt.title(), "a.b is not sure enough of its answer: confidence 0.30 is below 0.70");
        assert_eq!(doubt.command(), "baton interrupt resolve run_1 gate --accept --id int:gate:1");
        assert_eq!(doubt.other_answers().as_deref(), Some("--reject, --edit JSON"));
    }

    #[test]
    fn a_merge_cannot_be_refined_and_a_plain_question_not_accepted() {
        let merge = question(
            "approval",
            json!({"artifactType": "sub-run-output", "title": "t", "actions": ["accept", "reject", "edit-accept"]}),
        );
        assert!(merge.gates_merge() && !merge.holds_decision());
        assert_eq!(merge.other_answers().as_deref(), Some("--reject, --edit JSON"));
        assert!(!question("clarification", json!({"contextType": "ask-user"})).takes_actions());
    }
}
