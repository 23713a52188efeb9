//! Asking named questions, and reading the answers.

use serde_json::{Map, Value, json};

use super::outcome::{Ask, Outcome};
use crate::plan::ClarificationGate;

impl ClarificationGate {
    pub(super) fn run(&self) -> Outcome {
        let ask = Ask::new("clarification", json!({ "questions": self.questions }));
        Outcome::Ask(Ask { timeout_ms: self.timeout_ms, ..ask })
    }
}

/// Answers by question id; the list form `[{id, answer}]` is accepted too.
pub(crate) fn read_answers(value: &Value) -> Option<Map<String, Value>> {
    match value.get("answers")? {
        Value::Object(answers) => Some(answers.clone()),
        Value::Array(list) => {
            list.iter().map(|item| Some((item.get("id")?.as_str()?.to_owned(), item.get("answer")?.clone()))).collect()
        }
        _ => None,
    }
}
