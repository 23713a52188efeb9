//! Nodes that do little, alone and in a row.

use serde_json::{Value, json};

use super::draft::{Draft, chain, fed, node};

pub(super) fn workflows() -> Vec<Draft> {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let write = |id: &str, value: &str| {
        let config = json!({"channelName": "events", "reducer": "append", "ttlMs": 200, "value": value});
        node(id, "core.channelWrite", config)
    };
    vec![
        chain("conformance-noop", vec![noop("noop")]),
        chain("conformance-version-fold", vec![noop("noop")]),
        chain("conformance-idempotent", vec![noop("noop")]).variable("nonce", "string", None),
        chain("conformance-identity", vec![fed(node("echo", "core.identity", json!({})), "payload", "payload")])
            .variable("payload", "object", None),
        chain("conformance-delay", vec![fed(node("wait", "core.delay", json!({})), "delayMs", "delayMs")]).variable(
            "delayMs",
            "number",
            Some(json!(1000)),
        ),
        chain("conformance-cancellable", vec![fed(node("wait", "core.delay", json!({})), "delayMs", "delayMs")])
            .variable("delayMs", "number", Some(json!(30_000))),
        chain("conformance-run-duration-breach", vec![node("wait", "core.delay", json!({"ms": 30_000}))]),
        chain("conformance-failure", vec![node("fail", "core.fail", json!({}))]),
        chain("conformance-multi-node", vec![noop("a"), noop("b"), noop("c")]),
        chain("conformance-cap-breach", ["n1", "n2", "n3", "n4", "n5", "n6"].into_iter().map(noop).collect()),
        chain(
            "conformance-channel-ttl",
            vec![
                write("write-a", "a"),
                write("write-b", "b"),
                write("write-c", "c"),
                node("ttl-wait", "core.delay", json!({"ms": 300})),
                write("write-d", "d"),
            ],
        ),
        chain("conformance-capability-missing", vec![node("n1", "conformance.requiresMissing", json!({}))]),
        // A replay has the effect from the record; the endpoint `replay/effect-count` tells whether it really happened.
        chain("conformance-replay-effect", vec![noop("before"), node("effect", "conformance.effect.emit", json!({}))]),
        // Cancelled while it waits, the effect is recorded nowhere: a replay fails there.
        chain(
            "conformance-replay-side-effect",
            vec![
                fed(node("wait", "core.conformance.hold", json!({})), "delayMs", "delayMs"),
                node("effect", "core.conformance.side-effect", json!({})),
            ],
        )
        .variable("delayMs", "number", Some(json!(30_000))),
        chain("conformance-stream-text", vec![node("ai", "core.ai.callPrompt", json!({"expectsStreaming": true}))]),
    ]
}

pub(super) fn configurable_schema() -> Value {
    let mut workflow = chain("conformance-configurable-schema", vec![node("noop", "core.noop", json!({}))]).build();
    workflow["configurableSchema"] = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "recursionLimit": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}}
        }
    });
    workflow
}

pub(super) fn message_reducer() -> Value {
    let write = |id: &str| {
        let config = json!({"channelName": "messages", "value": {"messageId": "m-1", "text": "once"}});
        node(id, "core.channelWrite", config)
    };
    let mut workflow = chain("conformance-message-reducer", vec![write("first"), write("again")]).build();
    workflow["channels"] = json!({"messages": {"reducer": "message", "schema": {"type": "array"}}});
    workflow
}
