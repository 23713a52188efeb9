//! How people answer the questions of a run.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Answers the first open question that it is for: of a node, with a key, or any. Each answers once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AnswerDef {
    pub node: Option<String>,
    pub key: Option<String>,
    /// The answer as it stands.
    pub value: Option<Value>,
    pub accept: bool,
    pub reject: bool,
    pub refine: Option<String>,
    pub edit: Option<Value>,
    pub feedback: Option<String>,
    /// Of a clarification, by question.
    pub answers: Option<Map<String, Value>>,
    /// How long people take, in simulated time.
    pub after: Option<String>,
    /// Nobody answers: time passes until the question times out.
    pub nobody: bool,
    #[serde(skip)]
    pub after_ms: u64,
}

/// Of one question: what of it matters here.
pub(crate) struct Asked<'a> {
    pub(crate) node: &'a str,
    pub(crate) key: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) data: &'a Value,
}

impl AnswerDef {
    /// How often it says what the answer is.
    pub(crate) fn ways(&self) -> usize {
        [
            self.value.is_some(),
            self.accept,
            self.reject,
            self.refine.is_some(),
            self.edit.is_some(),
            self.answers.is_some(),
            self.nobody,
        ]
        .into_iter()
        .filter(|given| *given)
        .count()
    }

    pub(crate) fn is_for(&self, asked: &Asked<'_>) -> bool {
        self.node.as_deref().is_none_or(|node| node == asked.node)
            && self.key.as_deref().is_none_or(|key| key == asked.key)
    }

    /// What is sent; the words of an action depend on the kind of question.
    pub(crate) fn value_for(&self, asked: &Asked<'_>) -> Value {
        if let Some(value) = &self.value {
            return value.clone();
        }
        if let Some(answers) = &self.answers {
            return json!({ "answers": answers });
        }
        let mut action = if let Some(text) = &self.refine {
            json!({ "action": "refine", "refineFeedback": { "scope": "whole", "text": text } })
        } else if let Some(edited) = &self.edit {
            json!({ "action": "edit-accept", "editedArtifactData": edited })
        } else {
            json!({ "action": if self.accept { "accept" } else { "reject" } })
        };
        if let Some(feedback) = &self.feedback {
            action["feedback"] = feedback.as_str().into();
        }
        let holds_decision = asked.data.get("contextType").and_then(Value::as_str) == Some("orchestrator-decision");
        if asked.kind == "clarification" && holds_decision {
            return json!({ "answers": { "decision": action } });
        }
        action
    }
}
