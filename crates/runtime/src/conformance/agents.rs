//! The agents of conformance mode: one that answers anything, and one whose answers must have a shape. The mock provider
//! speaks for both unless the operator has configured models.

use baton_model::{AgentCard, MemoryShape, ModelChoice, ModelClass};
use serde_json::{Value, json};

use crate::Options;

/// What a test calls when it names no agent.
pub const CONFORMANCE_AGENT: &str = "local.baton.conformance.default";
/// What a test calls to see an answer refused.
pub const CONFORMANCE_STRICT_AGENT: &str = "local.baton.conformance.strict";

/// The options with everything that conformance mode promises beside what was configured.
pub(crate) fn equipped(mut options: Options) -> Options {
    for card in [default(), strict()] {
        options.roster = options.roster.with(None, card);
    }
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
