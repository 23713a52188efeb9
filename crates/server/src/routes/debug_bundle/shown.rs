//! What of a run and its events may leave the host. Everything is left out unless it is listed here: ids, states,
//! counts and codes are the host's own words, while inputs, variables, outputs, answers, tags and texts are somebody
//! else's and may hold anything.

use std::collections::BTreeSet;

use baton_model::event::REDACTED;
use baton_model::{Secret, redact};
use serde_json::{Map, Value};

/// Members with a scalar, or a list of scalars, of the host's own making.
const PLAIN: &[&str] = &[
    "agentId",
    "artifactType",
    "atSeq",
    "atSequence",
    "attempt",
    "attempts",
    "cancelledCount",
    "causationId",
    "channel",
    "childCount",
    "childRunId",
    "childStatus",
    "childWorkflowId",
    "code",
    "completedAt",
    "completedCount",
    "confidence",
    "currentNodeId",
    "delayMs",
    "divergenceKind",
    "divergencePoint",
    "drainPolicy",
    "escalationKind",
    "eventId",
    "eventLogSchemaVersion",
    "expiresAt",
    "failedCount",
    "failedNodeId",
    "fanOutPolicy",
    "floor",
    "fromSeq",
    "harvestedKeys",
    "interruptId",
    "isLast",
    "iteration",
    "iterations",
    "joinMode",
    "joinOutcome",
    "kind",
    "limit",
    "maxConcurrency",
    "memoryId",
    "mergeOrder",
    "mode",
    "name",
    "nextWorkerIds",
    "nodeId",
    "observed",
    "originalEventId",
    "outcome",
    "parentNodeId",
    "parentRunId",
    "phase",
    "prunedAt",
    "reducer",
    "replayEventId",
    "requestedAt",
    "requiredApprovals",
    "runId",
    "schemaVersion",
    "sequence",
    "sideEffects",
    "sourceRunId",
    "startedAt",
    "status",
    "tenant",
    "threshold",
    "timeoutMs",
    "timestamp",
    "transport",
    "type",
    "typeId",
    "version",
    "visit",
    "workerId",
    "workflowDigest",
    "workflowId",
    "writtenAt",
];

/// Members that are looked into.
const NESTED: &[&str] = &[
    "childRuns",
    "decision",
    "error",
    "forkedFrom",
    "interrupt",
    "lastError",
    "originalDecision",
    "owner",
    "payload",
    "retention",
    "runOrchestrator",
];

/// A map whose keys are node ids.
const BY_NODE: &str = "nodeStates";
/// Sentences of the host, which may quote what it was given.
const TEXT: &str = "message";

/// Shorter texts are words that any sentence may hold.
const MIN_QUOTED_BYTES: usize = 6;
/// More values than this are not looked for; sentences are then left out altogether.
const MAX_QUOTED: usize = 10_000;

/// Shows what may be shown, and remembers what it left out: no sentence may quote it.
pub(super) struct BundleRedactor<'a> {
    secrets: &'a [Secret],
    left_out: BTreeSet<String>,
}

impl<'a> BundleRedactor<'a> {
    pub(super) fn new(secrets: &'a [Secret]) -> Self {
        Self { secrets, left_out: BTreeSet::new() }
    }

    /// A run or an event without what must stay.
    pub(super) fn shown(&mut self, value: Value) -> Value {
        match value {
            Value::Object(map) => {
                // Sentences last: what they may not quote is beside them.
                let (texts, others): (Map<_, _>, Map<_, _>) = map.into_iter().partition(|(key, _)| key == TEXT);
                let members = others.into_iter().chain(texts);
                members.filter_map(|(key, value)| Some((key.clone(), self.member(&key, value)?))).collect()
            }
            Value::Array(items) => items.into_iter().map(|item| self.shown(item)).collect(),
            scalar => scalar,
        }
    }

    fn member(&mut self, key: &str, value: Value) -> Option<Value> {
        match value {
            Value::Object(nodes) if key == BY_NODE => {
                Some(nodes.into_iter().map(|(node, state)| (self.clean(&node), self.shown(state))).collect())
            }
            value @ (Value::Object(_) | Value::Array(_)) if NESTED.contains(&key) => Some(self.shown(value)),
            Value::String(text) if key == TEXT => Some(self.sentence(&text).into()),
            Value::String(text) if PLAIN.contains(&key) => Some(self.clean(&text).into()),
            Value::Array(items) if PLAIN.contains(&key) && !items.iter().any(is_nested) => {
                let clean = |item| if let Value::String(text) = item { self.clean(&text).into() } else { item };
                Some(items.into_iter().map(clean).collect())
            }
            value if PLAIN.contains(&key) && !is_nested(&value) => Some(value),
            value => {
                self.leave_out(value);
                None
            }
        }
    }

    fn clean(&self, text: &str) -> String {
        redact(text, self.secrets)
    }

    fn sentence(&self, text: &str) -> String {
        if self.left_out.len() >= MAX_QUOTED {
            return REDACTED.to_owned();
        }
        // Longest first, so that a value inside a longer one does not leave the rest of it behind.
        let mut quoted: Vec<&String> = self.left_out.iter().filter(|value| text.contains(value.as_str())).collect();
        quoted.sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.clean(&quoted.into_iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), REDACTED)))
    }

    fn leave_out(&mut self, value: Value) {
        match value {
            Value::String(text) if text.len() >= MIN_QUOTED_BYTES && self.left_out.len() < MAX_QUOTED => {
                self.left_out.insert(text);
            }
            Value::Object(map) => map.into_iter().for_each(|(_, value)| self.leave_out(value)),
            Value::Array(items) => items.into_iter().for_each(|value| self.leave_out(value)),
            _ => {}
        }
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_listed_stays_however_it_is_wrapped() {
        let mut redactor = BundleRedactor::new(&[]);
        let event = json!({
            "type": "node.completed", "sequence": 3, "surprise": "sk-1",
            "payload": {"nodeId": "n", "outputs": {"nodeId": "sk-2"}, "kind": {"hidden": "sk-3"}, "code": [["sk-4"]]},
        });
        let shown = redactor.shown(event);
        assert_eq!(shown, json!({"type": "node.completed", "sequence": 3, "payload": {"nodeId": "n"}}));
    }

    #[test]
    fn sentences_do_not_quote_what_was_left_out() {
        let mut redactor = BundleRedactor::new(&[]);
        let event = json!({"message": "`hunter2-and-more` is no number; nor is hunter2", "inputs": {"a": "hunter2", "b": "hunter2-and-more"}});
        assert_eq!(redactor.shown(event), json!({"message": "`[REDACTED]` is no number; nor is [REDACTED]"}));
        let later = json!({"error": {"code": "x", "message": "hunter2 again"}});
        assert_eq!(redactor.shown(later), json!({"error": {"code": "x", "message": "[REDACTED] again"}}));
    }

    #[test]
    fn too_many_values_to_look_for_cost_the_sentence() {
        let mut redactor = BundleRedactor::new(&[]);
        let many: Vec<Value> = (0..MAX_QUOTED).map(|n| format!("value-{n}").into()).collect();
        redactor.shown(json!({"inputs": many}));
        assert_eq!(redactor.shown(json!({"message": "all is well"})), json!({"message": "[REDACTED]"}));
    }

    #[test]
    fn a_registered_secret_is_replaced_even_in_a_listed_member() {
        let secrets = [Secret::new("key", "sk-live-123456")];
        let mut redactor = BundleRedactor::new(&secrets);
        let run = json!({
            "workflowId": "sk-live-123456", "nextWorkerIds": ["sk-live-123456"],
            "nodeStates": {"sk-live-123456": {"status": "failed", "error": {"message": "sk-live-123456"}}},
        });
        let mark = "[REDACTED:key]";
        let expected = json!({
            "workflowId": mark, "nextWorkerIds": [mark],
            "nodeStates": {mark: {"status": "failed", "error": {"message": mark}}},
        });
        assert_eq!(redactor.shown(run), expected);
    }
}
