//! Model calls that replays go through again.

use serde_json::{Value, json};

use super::{Draft, chain, node};

fn structured_call() -> Value {
    let schema = json!({"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}});
    let config = json!({"provider": "mock", "model": "mock-mini", "outputSchema": schema});
    let mut call = node("structured-call", "core.ai.structuredOutput", config);
    call["inputs"]["messages"] =
        json!({"type": "static", "value": [{"role": "user", "content": "Say whether this is valid."}]});
    call
}

pub(super) fn workflows() -> Vec<Draft> {
    let chance = node("nondet-tool", "core.noop", json!({"nondeterministic": true}));
    let settings = json!({"timeout": 30_000});
    vec![
        chain("conformance-phase4-replay-divergence", vec![structured_call()]).settings(settings.clone()),
        chain("conformance-phase4-nondet-tool", vec![chance, structured_call()]).settings(settings),
    ]
}
