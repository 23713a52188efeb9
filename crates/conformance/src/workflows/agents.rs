//! What agents look like from outside. The mock provider always speaks for them here.

use serde_json::{Value, json};

use super::draft::{Draft, chain, node};
use crate::agents::{CONFORMANCE_AGENT, STRUCTURED_AGENT};

pub(super) fn workflows() -> Vec<Draft> {
    vec![identity(), reasoning(), streaming(), low_confidence(), provenance(), handoff()]
        .into_iter()
        .chain(prompted())
        .map(|draft| draft.settings(json!({"timeout": 30_000})))
        .collect()
}

fn pinned(mut node: Value, agent: &str) -> Value {
    node["agent"] = json!({"agentId": agent});
    node
}

/// An agent node that asks the mock provider, whatever else is configured.
fn live(id: &str, agent: &str, more: Value) -> Value {
    let mut config = json!({"agentId": agent, "provider": "mock", "model": "mock-mini"});
    if let (Some(config), Value::Object(more)) = (config.as_object_mut(), more) {
        config.extend(more);
    }
    pinned(node(id, "vendor.baton.agent", config), agent)
}

fn mock(id: &str, agent: &str, config: Value) -> Value {
    pinned(node(id, "core.conformance.mock-agent", config), agent)
}

fn identity() -> Draft {
    let echo = pinned(node("echo", "core.identity", json!({})), CONFORMANCE_AGENT);
    chain("conformance-agent-identity", vec![echo])
}

fn reasoning() -> Draft {
    let config = json!({
        "mockReasoning": {"summary": "Looked at the question, asked a tool, and passed it on.", "tokenCount": 12},
        "mockToolCalls": [{"toolId": "openwop:echo", "arguments": {"n": 1}, "result": {"n": 1}, "durationMs": 2}],
        "mockHandoff": {"toAgentId": STRUCTURED_AGENT, "reason": "it knows the form"},
        "mockDecision": {"decision": {"next": "form"}, "confidence": 0.9},
    });
    chain("conformance-agent-reasoning", vec![mock("thinker", CONFORMANCE_AGENT, config)])
}

fn streaming() -> Draft {
    let pieces = ["This is a question. ", "It has an answer. ", "I shall give it."];
    let config = json!({"mockReasoning": {"summary": "Thought aloud.", "streamChunks": pieces}});
    chain("conformance-agent-reasoning-streaming", vec![mock("thinker", CONFORMANCE_AGENT, config)])
}

fn low_confidence() -> Draft {
    let config = json!({"mockDecision": {"decision": {"verdict": "perhaps"}, "confidence": 0.5}});
    chain("conformance-agent-low-confidence", vec![mock("doubter", CONFORMANCE_AGENT, config)])
}

/// Whoever works on a run says which manifest it came from.
fn provenance() -> Draft {
    chain("conformance-agent-pack-provenance", vec![live("worker", CONFORMANCE_AGENT, json!({}))])
}

/// The run's inputs are the task. A test that wants an answer of the wrong shape says so in `scenario`.
fn handoff() -> Draft {
    let which = json!({"expression": "variables.scenario == \"mock-return-violation\""});
    let way = |id: &str, port: &str, to: &str| json!({"id": id, "sourceNodeId": "which", "sourceOutput": port, "targetNodeId": to});
    let draft = Draft {
        id: "conformance-agent-pack-handoff-schema-validation",
        nodes: vec![
            node("which", "core.conditional", which),
            live("worker", STRUCTURED_AGENT, json!({})),
            live("contrary", STRUCTURED_AGENT, json!({"model": "mock-contrary"})),
        ],
        edges: vec![way("e1", "false", "worker"), way("e2", "true", "contrary")],
        variables: Vec::new(),
        settings: json!({}),
    };
    draft.variable("scenario", "string", Some(json!("")))
}

fn prompted() -> [Draft; 2] {
    let reference = |name: &str| format!("prompt:conformance.prompt.{name}@1.0.0");
    let system = json!({"systemPromptRef": reference("writer-system")});
    let all = json!({
        "systemPromptRef": reference("writer-system"),
        "userPromptRef": reference("writer-user"),
        "schemaHintPromptRef": reference("schema-hint"),
        "fewShotPromptRefs": [reference("few-shot"), reference("few-shot-2")],
    });
    [
        chain("conformance-prompt-end-to-end", vec![live("writer", CONFORMANCE_AGENT, system)]),
        chain("conformance-prompt-all-four-kinds", vec![live("all-kinds", CONFORMANCE_AGENT, all)]),
    ]
}
