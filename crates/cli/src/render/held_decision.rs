//! A held decision: what the supervisor wanted, how sure it was, and how sure it had to be. The question itself does
//! not always have room for this; the run's log does.

use baton_client::{Client, RunEvent};
use serde_json::Value;

use super::brief;
use super::decision::{decision, is_decision, share};
use crate::failure::Failure;

/// How far back from the end of a log the hold is looked for before all of it is read.
const TAIL: u64 = 200;
const LONGEST_ANSWER: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HeldDecision {
    pub(crate) decision: Option<Value>,
    pub(crate) confidence: Option<f64>,
    pub(crate) floor: Option<f64>,
}

impl HeldDecision {
    /// What is known about the decision behind a question.
    pub(crate) async fn behind(client: &Client, run: &str, node: &str, data: &Value) -> Result<Self, Failure> {
        let mut held = Self::in_question(data);
        if held.is_whole() {
            return Ok(held);
        }
        let end = client.run(run).await?.at_seq;
        for start in [end.checked_sub(TAIL), None] {
            let mut after = start;
            while after.is_none_or(|seq| seq < end) {
                let page = client.events(run, after, 1).await?;
                let Some(last) = page.events.last() else { break };
                after = Some(last.sequence);
                page.events.iter().for_each(|event| held.learn(event, node));
            }
            if held.is_whole() || start.is_none() {
                break;
            }
        }
        Ok(held)
    }

    pub(super) fn in_question(data: &Value) -> Self {
        let number = |name: &str| data.get(name).and_then(Value::as_f64);
        Self {
            decision: data
                .get("artifactData")
                .or_else(|| data.get("decision"))
                .or_else(|| data.pointer("/questions/0/schema/default"))
                .cloned(),
            confidence: number("observed"),
            floor: number("threshold"),
        }
    }

    fn is_whole(&self) -> bool {
        self.decision.is_some() && self.confidence.is_some() && self.floor.is_some()
    }

    /// The newest hold of the node counts.
    fn learn(&mut self, event: &RunEvent, node: &str) {
        if event.node_id.as_deref() != Some(node) {
            return;
        }
        let number = |name: &str| event.payload.get(name).and_then(Value::as_f64);
        match event.kind.as_str() {
            "core.workflowChain.confidence-escalated" => {
                self.decision = event.payload.get("originalDecision").cloned().or(self.decision.take());
            }
            "node.suspended" => {
                self.confidence = number("observed").or(self.confidence);
                self.floor = number("threshold").or(self.floor);
            }
            _ => {}
        }
    }

    /// Label and text, for a person.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if let Some(wanted) = &self.decision {
            rows.push(match is_decision(wanted) {
                true => ("decision", decision(wanted)),
                false => ("answer", brief(wanted, LONGEST_ANSWER)),
            });
        }
        match (self.confidence, self.floor) {
            (Some(confidence), Some(floor)) => {
                rows.push(("held", format!("confidence {} is below {}", share(confidence), share(floor))));
            }
            (Some(confidence), None) => rows.push(("confidence", share(confidence))),
            _ => {}
        }
        rows
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, node: &str, payload: Value) -> RunEvent {
        serde_json::from_value(json!({
            "eventId": "e", "runId": "run_1", "sequence": 0, "type": kind, "nodeId": node,
            "timestamp": "2026-01-01T00:00:00Z", "payload": payload,
        }))
        .unwrap()
    }

    #[test]
    fn a_low_confidence_question_says_it_all() {
        let data = json!({"agentId": "a", "threshold": 0.7, "observed": 0.5, "decision": {"kind": "terminate"}});
        let held = HeldDecision::in_question(&data);
        assert!(held.is_whole());
        assert_eq!(
            held.rows(),
            [("decision", "terminate".to_owned()), ("held", "confidence 0.50 is below 0.70".to_owned())]
        );
    }

    #[test]
    fn the_log_fills_in_what_a_clarification_leaves_out() {
        let mut held = HeldDecision::in_question(&json!({"questions": []}));
        for (confidence, worker) in [(0.1, "old"), (0.4, "new")] {
            let wanted = json!({"kind": "next-worker", "nextWorkerIds": [worker], "confidence": confidence});
            let escalated = json!({"confidence": confidence, "floor": 0.5, "originalDecision": wanted});
            held.learn(&event("core.workflowChain.confidence-escalated", "lead", escalated), "lead");
            held.learn(&event("node.suspended", "lead", json!({"observed": confidence, "threshold": 0.5})), "lead");
        }
        held.learn(&event("node.suspended", "elsewhere", json!({"observed": 0.2, "threshold": 0.9})), "lead");
        assert_eq!(
            held.rows(),
            [
                ("decision", "next-worker new, confidence 0.40".to_owned()),
                ("held", "confidence 0.40 is below 0.50".to_owned())
            ]
        );
    }
}
