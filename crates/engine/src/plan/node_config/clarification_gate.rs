//! Settings of a node that asks named questions.

use serde_json::Value;

use super::config::Config;
use crate::plan::problem::Problem;

/// `core.clarificationGate`: waits for answers to named questions.
#[derive(Debug)]
pub(crate) struct ClarificationGate {
    pub(crate) questions: Vec<Value>,
    pub(crate) timeout_ms: Option<u64>,
}

impl ClarificationGate {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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
}
