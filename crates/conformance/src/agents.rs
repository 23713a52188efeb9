//! The agents of conformance mode: one that answers anything, one whose answers must have a shape, and one whose tasks
//! must have one too. The mock provider speaks for them unless the operator has configured models.

use baton_model::{AgentCard, MemoryShape, ModelClass};
use serde_json::{Value, json};

/// What a test calls when it names no agent.
pub(crate) const CONFORMANCE_AGENT: &str = "local.baton.conformance.default";
/// What a test calls to see an answer refused.
pub(crate) const CONFORMANCE_STRICT_AGENT: &str = "local.baton.conformance.strict";
/// What a test gives tasks to that may not fit.
pub(crate) const STRUCTURED_AGENT: &str = "local.baton.conformance.structured";

pub(crate) fn agents() -> Vec<AgentCard> {
    vec![default(), strict(), structured()]
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
