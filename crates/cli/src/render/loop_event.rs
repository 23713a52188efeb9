//! The supervisor loop's events, told as what happened: who was chosen, how sure, how each handoff went.

use baton_client::RunEvent;
use serde_json::Value;

use super::decision::{decision, share};
use super::fault;
use crate::run_ref::short;

/// What stands in the type column: the protocol's names of these events are longer than what they say.
pub(crate) fn label(event: &RunEvent) -> Option<String> {
    Some(match event.kind.as_str() {
        "runOrchestrator.decided" => "decided".to_owned(),
        "core.workflowChain.event" => event.payload.get("phase").and_then(Value::as_str)?.to_owned(),
        "core.workflowChain.confidence-escalated" => "confidence-escalated".to_owned(),
        "core.dispatch.fanOut" => "dispatch.fanOut".to_owned(),
        "core.dispatch.join" => "dispatch.join".to_owned(),
        _ => return None,
    })
}

/// The fact of one of the loop's events; `None` for all others.
pub(crate) fn fact(event: &RunEvent) -> Option<String> {
    let payload = &event.payload;
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match event.kind.as_str() {
        "runOrchestrator.decided" => {
            let turn = payload.get("iteration").and_then(Value::as_u64);
            let decided = payload.get("decision").map(decision).unwrap_or_default();
            turn.map_or(decided.clone(), |turn| format!("turn {turn}: {decided}"))
        }
        "core.workflowChain.confidence-escalated" => {
            let original = payload.get("originalDecision").map(decision);
            let of = original.map(|decision| format!(" ({decision})")).unwrap_or_default();
            format!("{}{of}", held(payload, "confidence", "floor")?)
        }
        "core.workflowChain.event" => handoff(payload),
        "core.dispatch.fanOut" => {
            let number = |name: &str| payload.get(name).and_then(Value::as_u64);
            let mut line = format!("{} workers in parallel", number("childCount").unwrap_or_default());
            if let Some(most) = number("maxConcurrency") {
                line.push_str(&format!(", at most {most} at once"));
            }
            if let Some(mode) = payload.get("joinMode").and_then(Value::as_str) {
                line.push_str(&format!(", join {mode}"));
            }
            line
        }
        "core.dispatch.join" => {
            let count = |name: &str| payload.get(name).and_then(Value::as_u64).unwrap_or_default();
            format!(
                "{}: {} completed, {} failed, {} cancelled",
                text("joinOutcome"),
                count("completedCount"),
                count("failedCount"),
                count("cancelledCount")
            )
        }
        "node.completed" => outcome(payload.get("outputs")?)?,
        "node.suspended" => match text("reason") {
            "low-confidence" => format!("{} ({})", held(payload, "observed", "threshold")?, text("kind")),
            "child-waiting" => format!("child {} is {}", short(text("childRunId")), text("childStatus")),
            _ => return None,
        },
        "node.resumed" if payload.get("resumeValue").is_none() => {
            format!("child {} goes on", short(payload.get("childRunId")?.as_str()?))
        }
        "node.dispatched" => format!("{} as {}", text("childWorkflowId"), short(text("childRunId"))),
        _ => return None,
    })
}

/// "held: confidence 0.30 is below 0.50".
fn held(payload: &Value, observed: &str, threshold: &str) -> Option<String> {
    let number = |name: &str| payload.get(name).and_then(Value::as_f64);
    Some(format!("held: confidence {} is below {}", share(number(observed)?), share(number(threshold)?)))
}

/// What a supervisor or a dispatch node ended with. The events before it told the rest.
fn outcome(outputs: &Value) -> Option<String> {
    if let (Some(_), Some(turn)) = (outputs.get("decision"), outputs.get("iteration").and_then(Value::as_u64)) {
        return Some(format!("turn {turn} is decided"));
    }
    if outputs.get("terminated") == Some(&Value::Bool(true)) {
        return Some("the loop ends".to_owned());
    }
    let children = outputs.get("children")?.as_array()?;
    let described = children.iter().map(|child| {
        let text = |name: &str| child.get(name).and_then(Value::as_str);
        Some(format!("{} {}", text("workflowId")?, text("childStatus")?))
    });
    described.collect::<Option<Vec<_>>>().map(|list| list.join(", "))
}

fn handoff(payload: &Value) -> String {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let (worker, child) = (text("workerId"), short(text("childRunId")));
    match text("phase") {
        "dispatch.began" => format!("{worker}: being handed its part"),
        "dispatch.succeeded" => format!("{worker}: works as {child}"),
        "dispatch.failed" => format!("{worker}: not started, {}", fault(payload.get("error"))),
        "child.completed" => format!("{worker}: completed"),
        "child.failed" => format!("{worker}: failed, {}", fault(payload.get("error"))),
        "child.cancelled" => format!("{worker}: cancelled"),
        "output.harvested" => {
            let keys = payload.get("harvestedKeys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
            let what = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
            let attested = payload.pointer("/attestation/checksum").and_then(Value::as_str);
            let seal = attested.map(|sum| format!(" (sha256 {})", sum.chars().take(12).collect::<String>()));
            format!("{worker}: harvested {what}{}", seal.unwrap_or_default())
        }
        other => format!("{worker}: {other}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, payload: Value) -> RunEvent {
        serde_json::from_value(json!({
            "eventId": "e", "runId": "run_1", "sequence": 0, "type": kind, "nodeId": "n",
            "timestamp": "2026-01-01T00:00:00Z", "payload": payload,
        }))
        .unwrap()
    }

    fn describe(kind: &str, payload: Value) -> String {
        let event = event(kind, payload);
        format!("{} | {}", label(&event).unwrap_or_else(|| event.kind.clone()), fact(&event).unwrap())
    }

    #[test]
    fn turns_and_holds() {
        assert_eq!(
            describe(
                "runOrchestrator.decided",
                json!({"agentId": "a", "iteration": 3,
                    "decision": {"kind": "next-worker", "nextWorkerIds": ["summarise"], "confidence": 0.82}})
            ),
            "decided | turn 3: next-worker summarise, confidence 0.82"
        );
        assert_eq!(
            describe(
                "core.workflowChain.confidence-escalated",
                json!({"confidence": 0.3, "floor": 0.5, "originalDecision": {"kind": "terminate"}})
            ),
            "confidence-escalated | held: confidence 0.30 is below 0.50 (terminate)"
        );
        assert_eq!(
            describe(
                "node.suspended",
                json!({"reason": "low-confidence", "kind": "approval", "observed": 0.3, "threshold": 0.7})
            ),
            "node.suspended | held: confidence 0.30 is below 0.70 (approval)"
        );
    }

    #[test]
    fn every_phase_of_a_handoff() {
        let phase = |phase: &str, more: Value| {
            let mut payload = json!({"phase": phase, "workerId": "w", "parentRunId": "run_1"});
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            describe("core.workflowChain.event", payload)
        };
        let child = json!({"childRunId": "run_0123456789abcdef0123456789abcdef"});
        let error = json!({"error": {"code": "boom", "message": "it broke"}});
        let harvest = json!({"harvestedKeys": ["a", "b"], "attestation": {"checksum": "00112233445566778899"}});
        for (line, described) in [
            ("dispatch.began | w: being handed its part", phase("dispatch.began", json!({}))),
            ("dispatch.succeeded | w: works as run_0123456789ab", phase("dispatch.succeeded", child)),
            ("dispatch.failed | w: not started, boom: it broke", phase("dispatch.failed", error.clone())),
            ("child.completed | w: completed", phase("child.completed", json!({}))),
            ("child.failed | w: failed, boom: it broke", phase("child.failed", error)),
            ("child.cancelled | w: cancelled", phase("child.cancelled", json!({}))),
            ("output.harvested | w: harvested a, b (sha256 001122334455)", phase("output.harvested", harvest)),
            ("output.harvested | w: harvested nothing", phase("output.harvested", json!({"harvestedKeys": []}))),
        ] {
            assert_eq!(described, line);
        }
    }

    #[test]
    fn fan_out_join_and_waiting_children() {
        assert_eq!(
            describe("core.dispatch.fanOut", json!({"childCount": 3, "maxConcurrency": 2, "joinMode": "quorum"})),
            "dispatch.fanOut | 3 workers in parallel, at most 2 at once, join quorum"
        );
        assert_eq!(
            describe(
                "core.dispatch.join",
                json!({"joinOutcome": "partial", "completedCount": 2, "failedCount": 1, "cancelledCount": 0})
            ),
            "dispatch.join | partial: 2 completed, 1 failed, 0 cancelled"
        );
        assert_eq!(
            describe(
                "node.suspended",
                json!({"reason": "child-waiting", "childRunId": "run_0123456789abcdef", "childStatus": "waiting-input"})
            ),
            "node.suspended | child run_0123456789ab is waiting-input"
        );
        for (outputs, line) in [
            (json!({"decision": {}, "iteration": 2}), Some("turn 2 is decided")),
            (json!({"terminated": true, "reason": "done"}), Some("the loop ends")),
            (
                json!({"children": [{"workflowId": "a", "childStatus": "completed"},
                    {"workflowId": "b", "childStatus": "failed"}]}),
                Some("a completed, b failed"),
            ),
            (json!({"children": [1]}), None),
            (json!({"x": 1}), None),
        ] {
            assert_eq!(fact(&event("node.completed", json!({"outputs": outputs}))).as_deref(), line);
        }
        assert_eq!(fact(&event("node.suspended", json!({"kind": "approval"}))), None);
    }
}
