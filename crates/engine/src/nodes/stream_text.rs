use baton_model::{Fault, code};
use serde_json::{Value, json};

use super::Outcome;
use crate::eval_context::EvalContext;

/// `core.ai.callPrompt` in conformance mode: streams the tokens that `configurable.mockProvider` lists.
#[derive(Debug)]
pub(crate) struct StreamText;

/// What a stream will say, and how fast.
#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) tokens: Vec<String>,
    pub(crate) delay_ms: u64,
    pub(crate) meta: Value,
}

impl StreamText {
    pub(super) fn run(scene: &EvalContext<'_>) -> Outcome {
        match chunks(scene.state.configurable().get("mockProvider")) {
            Some(chunks) => Outcome::Stream(chunks),
            None => Outcome::Failed(Fault::new(
                code::CAPABILITY_NOT_PROVIDED,
                "No model provider is configured: this node needs `configurable.mockProvider`.",
            )),
        }
    }
}

/// Reads the mock provider's configuration; also used when a paced stream continues.
pub(crate) fn chunks(provider: Option<&Value>) -> Option<Chunks> {
    let provider = provider?;
    let config = provider.get("config").cloned().unwrap_or_else(|| json!({}));
    let tokens: Vec<String> = match config.get("tokens").and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(|token| token.as_str().map(str::to_owned)).collect(),
        None => vec!["mock".to_owned(), " response".to_owned()],
    };
    let completion = tokens.len();
    let usage = config
        .get("usage")
        .cloned()
        .unwrap_or_else(|| json!({"promptTokens": 1, "completionTokens": completion, "totalTokens": completion + 1}));
    let meta = json!({
        "finishReason": config.get("finishReason").and_then(Value::as_str).unwrap_or("stop"),
        "model": config.get("model").and_then(Value::as_str).unwrap_or("mock-stream-text-v1"),
        "usage": usage,
    });
    Some(Chunks {
        tokens,
        delay_ms: config.get("delayMsPerToken").and_then(Value::as_u64).unwrap_or(0).min(5000),
        meta,
    })
}
