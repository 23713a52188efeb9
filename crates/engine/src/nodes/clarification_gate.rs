use serde_json::{Map, Value, json};

use super::config::Config;
use super::{Ask, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::Problem;

/// `core.clarificationGate`: waits for answers to named questions.
#[derive(Debug)]
pub(crate) struct ClarificationGate {
    questions: Vec<Value>,
    timeout_ms: Option<u64>,
}

impl ClarificationGate {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let wrong = || config.problem("questions", "`questions` lists one or more of {id, question}.");
        let questions = config.get("questions").and_then(Value::as_array).ok_or_else(wrong)?;
        let well_formed = |question: &Value| {
            question.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty())
                && question.get("question").is_some_and(Value::is_string)
        };
        if questions.is_empty() || !questions.iter().all(well_formed) {
            return Err(wrong());
        }
        let timeout_ms = config.whole("timeoutMs", 0, 31_536_000_000)?.filter(|&ms| ms > 0);
        Ok(Self { questions: questions.clone(), timeout_ms })
    }

    pub(super) fn run(&self, _: &EvalContext<'_>) -> Outcome {
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
