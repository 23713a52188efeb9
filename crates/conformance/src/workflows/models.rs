//! Model calls: those that replays go through again, and those that go wrong as a test tells the mock provider to.

use serde_json::{Value, json};

use super::draft::{Draft, chain, node};

fn structured_call() -> Value {
    let schema = json!({"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}});
    let config = json!({"provider": "mock", "model": "mock-mini", "outputSchema": schema});
    let mut call = node("structured-call", "core.ai.structuredOutput", config);
    call["inputs"]["messages"] =
        json!({"type": "static", "value": [{"role": "user", "content": "Say whether this is valid."}]});
    call
}

/// The same call under every name that tests drive it by; each tells the mock provider what to answer.
fn reliability() -> impl Iterator<Item = Draft> {
    let plain = [
        "conformance-envelope-retry-attempted",
        "conformance-envelope-retry-exhausted",
        "conformance-envelope-refusal",
    ];
    let worded = ["conformance-envelope-recovery-applied", "conformance-envelope-nl-to-format-engaged"];
    let bounded = ["conformance-envelope-truncated", "conformance-envelope-truncation-cap-exhaustion"];
    let plain = plain.into_iter().map(|id| (id, structured_call()));
    let worded = worded.into_iter().map(|id| {
        let mut call = structured_call();
        call["config"]["outputSchema"] = json!({
            "title": "Result", "type": "object", "required": ["result"], "properties": {"result": {"type": "string"}},
        });
        (id, call)
    });
    let bounded = bounded.into_iter().map(|id| {
        let mut call = structured_call();
        call["config"]["maxTokens"] = json!(50);
        (id, call)
    });
    plain.chain(worded).chain(bounded).map(|(id, call)| chain(id, vec![call]).settings(json!({"timeout": 30_000})))
}

pub(super) fn workflows() -> Vec<Draft> {
    let chance = node("nondet-tool", "core.noop", json!({"nondeterministic": true}));
    let settings = json!({"timeout": 30_000});
    // No model has what this one needs.
    let incapable = node("insufficient-node", "conformance.modelCapability.insufficient", json!({}));
    let replayed = vec![
        chain("conformance-model-capability-insufficient", vec![incapable]).settings(json!({"timeout": 5_000})),
        chain("conformance-phase4-replay-divergence", vec![structured_call()]).settings(settings.clone()),
        chain("conformance-phase4-nondet-tool", vec![chance, structured_call()]).settings(settings),
    ];
    replayed.into_iter().chain(reliability()).collect()
}
