//! What a stream will say, and how fast.

use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) tokens: Vec<String>,
    pub(crate) delay_ms: u64,
    pub(crate) meta: Value,
}

impl Chunks {
    /// The pause before each piece; none where all come at once.
    pub(crate) fn delay_ms(&self) -> u64 {
        self.delay_ms
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
