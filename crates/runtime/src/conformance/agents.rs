//! The agents of conformance mode: one that answers anything, one whose answers must have a shape, and one whose tasks
//! must have one too. The mock provider speaks for them unless the operator has configured models. And workflows that
//! show what agents look like from outside, where the mock provider always speaks.

use baton_model::{AgentCard, MemoryShape, ModelChoice, ModelClass};
use serde_json::{Value, json};

use super::{Draft, chain, node};
use crate::Options;

/// What a test calls when it names no agent.
pub const CONFORMANCE_AGENT: &str = "local.baton.conformance.default";
/// What a test calls to see an answer refused.
pub const CONFORMANCE_STRICT_AGENT: &str = "local.baton.conformance.strict";

/// What a test gives tasks to that may not fit.
const STRUCTURED_AGENT: &str = "local.baton.conformance.structured";

/// The options with everything that conformance mode promises beside what was configured.
pub(crate) fn equipped(mut options: Options) -> Options {
    for card in [default(), strict(), structured()] {
        options.roster = options.roster.with(None, card);
    }
    options.roster = options.roster.with_prompts(&super::prompts::library());
    options.show_prompts = true;
    let mock = ModelChoice { provider: "mock".to_owned(), model: "mock-mini".to_owned() };
    options.model_table = options.model_table.or_otherwise(mock);
    options
}

fn default() -> AgentCard {
    let schema = json!({
        "type": "object",
        "required": ["answer"],
        "properties": {
            "answer": {"type": "string"},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "reasoning": {"type": "string"},
        },
    });
    card(CONFORMANCE_AGENT, "Conformance", "Answer what you are asked, in one sentence.", schema)
}

fn strict() -> AgentCard {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["verdict", "score"],
        "properties": {"verdict": {"enum": ["pass", "fail"]}, "score": {"type": "integer", "minimum": 1}},
    });
    card(CONFORMANCE_STRICT_AGENT, "Conformance (strict)", "Judge what you are given: a verdict and a score.", schema)
}

fn structured() -> AgentCard {
    let texts = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
    let task = json!({
        "type": "object",
        "required": ["text", "extractionFields"],
        "properties": {"text": {"type": "string"}, "extractionFields": texts},
    });
    let found = json!({
        "type": "object",
        "required": ["fields"],
        "properties": {"fields": {"type": "object"}, "missing": {"type": "array", "items": {"type": "string"}}},
    });
    let prompt = "Find the named fields in the text. Leave out what is not there.";
    AgentCard { task_schema: Some(task), ..card(STRUCTURED_AGENT, "Conformance (structured)", prompt, found) }
}

fn card(id: &str, label: &str, prompt: &str, return_schema: Value) -> AgentCard {
    AgentCard {
        agent_id: id.to_owned(),
        persona: label.to_owned(),
        label: label.to_owned(),
        description: Some("For conformance tests.".to_owned()),
        pack_name: "local.baton.conformance".to_owned(),
        pack_version: "1.0.0".to_owned(),
        model_class: ModelClass::General,
        system_prompt: prompt.to_owned(),
        tools: Vec::new(),
        memory: MemoryShape::default(),
        threshold: None,
        task_schema: None,
        return_schema: Some(return_schema),
        prompt_overrides: Default::default(),
        prompt_library: None,
    }
}

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
