//! An agent at work, told as who did what: the model it asked, the tool it called, how sure it was, what it cost.

use baton_client::RunEvent;
use serde_json::Value;

use super::decision::{decision, is_decision, share};
use super::{brief, fault};

const LONGEST_THOUGHT: usize = 100;
const LONGEST_VALUE: usize = 80;
/// As much of a digest as tells two prompts apart.
const DIGEST_CHARS: usize = "sha256:".len() + 12;

/// What stands in the type column where the protocol's name is longer than the column.
pub(crate) fn label(event: &RunEvent) -> Option<&'static str> {
    Some(match event.kind.as_str() {
        "agent.invocation.started" => "agent.started",
        "agent.invocation.completed" => "agent.completed",
        "envelope.retry.attempted" => "envelope.retry",
        "envelope.retry.exhausted" => "envelope.exhausted",
        "envelope.recovery.applied" => "envelope.recovery",
        "envelope.nlToFormat.engaged" => "envelope.nlToFormat",
        "budget.threshold.crossed" => "budget.threshold",
        _ => return None,
    })
}

/// The fact of one of an agent's events; `None` for all others.
pub(crate) fn fact(event: &RunEvent) -> Option<String> {
    let payload = &event.payload;
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match event.kind.as_str() {
        "agent.invocation.started" => started(payload),
        "agent.invocation.completed" => completed(payload),
        "agent.promptResolved" => {
            let layers = payload.get("chain").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let applied = layers.iter().find(|layer| layer.get("applied") == Some(&Value::Bool(true)));
            let layer = applied.and_then(|layer| layer.get("layer")).and_then(Value::as_str);
            match payload.get("resolved").and_then(Value::as_str) {
                Some(found) => format!("{}: {found}{}", text("kind"), in_brackets(layer)),
                None => format!("{}: no layer has one", text("kind")),
            }
        }
        "prompt.composed" => {
            format!("{}, {}", text("kind"), text("hash").chars().take(DIGEST_CHARS).collect::<String>())
        }
        "provider.usage" => usage(payload),
        "agent.reasoning.delta" => quoted(text("delta")),
        "agent.reasoned" => match text("reasoning") {
            "" => "(gave no reasons)".to_owned(),
            thought => quoted(thought),
        },
        "agent.toolCalled" => {
            let inputs = payload.get("inputs").map(|inputs| format!(" {}", brief(inputs, LONGEST_VALUE)));
            format!("{}{}", text("toolName"), inputs.unwrap_or_default())
        }
        "agent.toolReturned" => {
            let described = match payload.get("error") {
                Some(error) => fault(Some(error)),
                None => payload.get("outcome").map(|outcome| brief(outcome, LONGEST_VALUE)).unwrap_or_default(),
            };
            format!("{} {} {described}", text("toolName"), text("status")).trim_end().to_owned()
        }
        "agent.decided" => decided(payload),
        "agent.handoff" => {
            let reason = payload.get("reason").map(|reason| format!(": {}", brief(reason, LONGEST_VALUE)));
            format!("{} to {}{}", text("fromAgentId"), text("toAgentId"), reason.unwrap_or_default())
        }
        "baton.effect.unknown" => {
            format!("{}: it is unknown whether it happened; policy {}", text("toolName"), text("policy"))
        }
        "baton.tools.missing" => {
            let tools = payload.get("tools").and_then(Value::as_array).into_iter().flatten();
            let tools: Vec<&str> = tools.filter_map(Value::as_str).collect();
            format!("{} works without {}: nothing here answers to that", text("agentId"), tools.join(", "))
        }
        "baton.runner.waiting" => {
            let most = payload.get("waitForRunnerMs").and_then(Value::as_u64).unwrap_or_default();
            format!("{} waits for a runner, at most {} s", text("toolName"), most.div_ceil(1000))
        }
        "baton.step.memo" => format!("{} keeps {}", text("toolName"), text("key")),
        "baton.tool.progress" => {
            let of = |name: &str| payload.get(name).map(Value::to_string).unwrap_or_default();
            let total = payload.get("total").map(|total| format!(" of {total}"));
            let far =
                format!("{}: {}{} {}", text("toolName"), of("progress"), total.unwrap_or_default(), text("message"));
            far.trim_end().to_owned()
        }
        "baton.effect.retried" => format!("{}: called again with the same key", text("toolName")),
        "baton.model.retried" => {
            format!("{}/{} is asked again: {}", text("provider"), text("model"), fault(payload.get("error")))
        }
        "model.capability.substituted" => format!(
            "{}/{} is asked instead of {}/{}, which lacks {}",
            text("fallbackProvider"),
            text("fallbackModel"),
            text("originalProvider"),
            text("originalModel"),
            missing(payload)
        ),
        "model.capability.insufficient" => {
            format!("{}/{} is not asked: it lacks {}", text("provider"), text("model"), missing(payload))
        }
        "envelope.refusal" => format!(
            "{}/{} would not answer{}",
            text("provider"),
            text("model"),
            in_brackets(payload.get("safetyCategory").and_then(Value::as_str))
        ),
        "envelope.retry.attempted" => {
            format!(
                "attempt {} after {}{}",
                number(payload, "attempt"),
                text("reason"),
                because(payload, "previousError")
            )
        }
        "envelope.retry.exhausted" => format!(
            "gave up after {} attempts: {}{}",
            number(payload, "totalAttempts"),
            text("finalReason"),
            because(payload, "finalError")
        ),
        "envelope.truncated" => format!("{}/{} ran out of room", text("provider"), text("model")),
        "envelope.recovery.applied" => format!("read by {}", text("path")),
        "envelope.nlToFormat.engaged" => "the answer was prose; asked once to put it into its shape".to_owned(),
        _ => return None,
    })
}

/// "vision-input and reasoning".
fn missing(payload: &Value) -> String {
    let list = payload.get("missingCapabilities").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" and ")
}

/// "vendor.baton.team.researcher 1.0.0 asks scripted/demo, 6 tools, memory".
fn started(payload: &Value) -> String {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let mut line = text("agentId").unwrap_or_default().to_owned();
    if let Some(version) = text("resolvedAgentVersion") {
        line.push_str(&format!(" {version}"));
    }
    if let (Some(provider), Some(model)) = (text("resolvedProvider"), text("resolvedModel")) {
        line.push_str(&format!(" asks {provider}/{model}"));
    }
    match payload.get("toolSurfaceCount").and_then(Value::as_u64) {
        None | Some(0) => {}
        Some(1) => line.push_str(", 1 tool"),
        Some(count) => line.push_str(&format!(", {count} tools")),
    }
    if payload.get("memoryBound") == Some(&Value::Bool(true)) {
        line.push_str(", memory");
    }
    line
}

/// "vendor.baton.team.researcher completed, confidence 0.90, fits its schema".
fn completed(payload: &Value) -> String {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut line = format!("{} {}", text("agentId"), text("outcome"));
    if let Some(confidence) = payload.get("confidence").and_then(Value::as_f64) {
        line.push_str(&format!(", confidence {}", share(confidence)));
    }
    match payload.get("schemaValidated").and_then(Value::as_bool) {
        Some(true) => line.push_str(", fits its schema"),
        Some(false) => line.push_str(", does not fit its schema"),
        None => {}
    }
    line
}

/// "openai/gpt-5: 528 in, 12 out, 0.0007 USD".
fn usage(payload: &Value) -> String {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut line = format!(
        "{}/{}: {} in, {} out",
        text("provider"),
        text("model"),
        number(payload, "inputTokens"),
        number(payload, "outputTokens")
    );
    if let Some(cost) = payload.get("costEstimateUsd").and_then(Value::as_f64) {
        line.push_str(&format!(", {cost} USD"));
    }
    if payload.get("cacheHit") == Some(&Value::Bool(true)) {
        line.push_str(", from the cache");
    }
    line
}

/// A supervisor's decision in its own words; any other answer after how sure it is, since answers are long.
fn decided(payload: &Value) -> String {
    let Some(value) = payload.get("decision") else { return String::new() };
    if is_decision(value) {
        return decision(value);
    }
    let answer = brief(value, LONGEST_VALUE);
    match payload.get("confidence").and_then(Value::as_f64) {
        Some(confidence) => format!("confidence {}: {answer}", share(confidence)),
        None => answer,
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", brief(&text.into(), LONGEST_THOUGHT))
}

fn in_brackets(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}

fn because(payload: &Value, name: &str) -> String {
    payload.get(name).map(|reason| format!(": {}", brief(reason, LONGEST_VALUE))).unwrap_or_default()
}

fn number(payload: &Value, name: &str) -> u64 {
    payload.get(name).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;

    fn describe(kind: &str, payload: Value) -> String {
        let event = json!({
            "eventId": "e", "runId": "run_1", "sequence": 0, "type": kind, "nodeId": "n",
            "timestamp": "2026-01-01T00:00:00Z", "payload": payload,
        });
        let event: RunEvent = serde_json::from_value(event).unwrap();
        format!("{} | {}", label(&event).unwrap_or(&event.kind), fact(&event).unwrap())
    }

    #[test]
    fn who_asked_which_model_and_how_it_ended() {
        for (kind, payload, line) in [
            (
                "agent.invocation.started",
                json!({"agentId": "a.b", "resolvedAgentVersion": "1.0.0", "resolvedProvider": "local",
                    "resolvedModel": "m", "toolSurfaceCount": 6, "memoryBound": true}),
                "agent.started | a.b 1.0.0 asks local/m, 6 tools, memory",
            ),
            ("agent.invocation.started", json!({"agentId": "a.b"}), "agent.started | a.b"),
            (
                "agent.invocation.completed",
                json!({"agentId": "a.b", "outcome": "completed", "confidence": 0.9, "schemaValidated": true}),
                "agent.completed | a.b completed, confidence 0.90, fits its schema",
            ),
            (
                "agent.invocation.completed",
                json!({"agentId": "a.b", "outcome": "escalated"}),
                "agent.completed | a.b escalated",
            ),
            (
                "provider.usage",
                json!({"provider": "p", "model": "m", "inputTokens": 528, "outputTokens": 12, "totalTokens": 540,
                    "costEstimateUsd": 0.0007, "cacheHit": true}),
                "provider.usage | p/m: 528 in, 12 out, 0.0007 USD, from the cache",
            ),
        ] {
            assert_eq!(describe(kind, payload), line);
        }
    }

    #[test]
    fn prompts_are_named_and_never_shown() {
        let chain = json!([{"layer": "node", "applied": false}, {"layer": "agent-intrinsic", "applied": true}]);
        assert_eq!(
            describe("agent.promptResolved", json!({"kind": "system", "chain": chain, "resolved": "prompt:a@1.0.0"})),
            "agent.promptResolved | system: prompt:a@1.0.0 (agent-intrinsic)"
        );
        assert_eq!(
            describe("agent.promptResolved", json!({"kind": "system", "chain": []})),
            "agent.promptResolved | system: no layer has one"
        );
        assert_eq!(
            describe("prompt.composed", json!({"kind": "system-only", "hash": format!("sha256:{}", "0".repeat(64))})),
            "prompt.composed | system-only, sha256:000000000000"
        );
    }

    #[test]
    fn tools_thoughts_and_decisions() {
        for (kind, payload, line) in [
            (
                "agent.toolCalled",
                json!({"toolName": "openwop:memory.list", "inputs": {"tag": "x"}}),
                "agent.toolCalled | openwop:memory.list {\"tag\":\"x\"}",
            ),
            (
                "agent.toolReturned",
                json!({"toolName": "t", "status": "ok", "outcome": {"entries": []}}),
                "agent.toolReturned | t ok {\"entries\":[]}",
            ),
            (
                "agent.toolReturned",
                json!({"toolName": "t", "status": "forbidden", "error": {"code": "no", "message": "not yours"}}),
                "agent.toolReturned | t forbidden no: not yours",
            ),
            ("agent.reasoned", json!({"reasoning": "First\nthis."}), "agent.reasoned | \"First this.\""),
            ("agent.reasoned", json!({"reasoning": ""}), "agent.reasoned | (gave no reasons)"),
            ("agent.reasoning.delta", json!({"delta": "First\n"}), "agent.reasoning.delta | \"First \""),
            (
                "model.capability.insufficient",
                json!({"provider": "p", "model": "m", "missingCapabilities": ["vision-input", "reasoning"]}),
                "model.capability.insufficient | p/m is not asked: it lacks vision-input and reasoning",
            ),
            (
                "agent.decided",
                json!({"decision": {"kind": "next-worker", "nextWorkerIds": ["w"], "confidence": 0.92}}),
                "agent.decided | next-worker w, confidence 0.92",
            ),
            (
                "agent.decided",
                json!({"decision": {"verdict": "accept"}, "confidence": 0.9}),
                "agent.decided | confidence 0.90: {\"verdict\":\"accept\"}",
            ),
            ("agent.decided", json!({"decision": "yes"}), "agent.decided | yes"),
        ] {
            assert_eq!(describe(kind, payload), line);
        }
    }

    #[test]
    fn what_went_wrong_on_the_way() {
        for (kind, payload, line) in [
            (
                "envelope.retry.attempted",
                json!({"attempt": 2, "reason": "schema-violation", "previousError": "/a is missing"}),
                "envelope.retry | attempt 2 after schema-violation: /a is missing",
            ),
            (
                "envelope.refusal",
                json!({"provider": "p", "model": "m", "safetyCategory": "weapons"}),
                "envelope.refusal | p/m would not answer (weapons)",
            ),
            (
                "baton.effect.unknown",
                json!({"toolName": "openwop:http.request", "callId": "c", "policy": "ask"}),
                "baton.effect.unknown | openwop:http.request: it is unknown whether it happened; policy ask",
            ),
            (
                "baton.tools.missing",
                json!({"agentId": "a.b.c", "tools": ["mcp:x", "mcp:y"]}),
                "baton.tools.missing | a.b.c works without mcp:x, mcp:y: nothing here answers to that",
            ),
            (
                "baton.runner.waiting",
                json!({"toolName": "runner:py.work", "callId": "c", "waitForRunnerMs": 120_000}),
                "baton.runner.waiting | runner:py.work waits for a runner, at most 120 s",
            ),
            (
                "baton.step.memo",
                json!({"toolName": "runner:py.work", "key": "plan", "bytes": 7}),
                "baton.step.memo | runner:py.work keeps plan",
            ),
            (
                "baton.tool.progress",
                json!({"toolName": "runner:py.work", "progress": 1, "total": 4, "message": "a quarter"}),
                "baton.tool.progress | runner:py.work: 1 of 4 a quarter",
            ),
        ] {
            assert_eq!(describe(kind, payload), line);
        }
    }
}
