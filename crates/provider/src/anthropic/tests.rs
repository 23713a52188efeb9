#![allow(clippy::unwrap_used)]

use baton_model::cache_key::Message;
use baton_model::{ModelReply, ModelRequest, StopReason};
use serde_json::{Map, Value, json};

use super::{marks, vendor};
use crate::Delta;
use crate::ProviderFault;
use crate::testing::{Heard, read_events, read_whole, request, survives_nonsense, text};
use crate::wire::{Settings, Wire};

fn encoded(raw: Value, reasoning: bool, settings: Settings) -> Wire {
    let request = ModelRequest { reasoning, ..request("anthropic", raw) };
    vendor(settings).translate(&request).unwrap().0
}

fn answer(raw: Value, events: &[Value]) -> (Result<ModelReply, ProviderFault>, Heard) {
    read_events(&vendor(Settings::default()), &request("anthropic", raw), events)
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(reason: &str) -> [Value; 2] {
    let usage = json!({"output_tokens": 9});
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_conversation_with_tools_in_the_vendors_words() {
    let wire = encoded(
        json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Go"},
                {"role": "assistant", "content": "", "toolCalls": [
                    {"id": "c:1", "name": "a:b", "arguments": {"q": 1}}, {"id": "c2", "name": "a:b", "arguments": "bad"},
                ]},
                {"role": "tool", "toolCallId": "c:1", "name": "a:b", "content": "one"},
                {"role": "tool", "toolCallId": "c2", "name": "a:b", "content": "two"},
                {"role": "user", "content": "And?"},
                {"role": "assistant", "content": ""},
                {"role": "system", "content": "Really brief."},
            ],
            "tools": [{"name": "a:b", "description": "D", "inputSchema": {"type": "object"}}],
            "temperature": 0.5, "stop": ["END"],
        }),
        false,
        Settings::default(),
    );
    assert_eq!(
        (wire.path, wire.headers),
        (vec!["messages".to_owned()], vec![("anthropic-version", "2023-06-01".to_owned())])
    );
    assert_eq!(
        Value::Object(wire.body),
        json!({
            "model": "m", "stream": true, "max_tokens": 8192, "temperature": 0.5, "stop_sequences": ["END"],
            "system": "Be brief.\n\nReally brief.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Go"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c_1", "name": "a_b", "input": {"q": 1}},
                    {"type": "tool_use", "id": "c2", "name": "a_b", "input": {"unreadable": "bad"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c_1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "two"},
                    {"type": "text", "text": "And?"},
                ]},
            ],
            "tools": [{"name": "a_b", "description": "D", "input_schema": {"type": "object"}}],
        })
    );
}

#[test]
fn thinking_leaves_no_room_for_sampling_and_comes_on_top() {
    let raw = json!({"model": "claude-opus-4-6", "messages": [{"role": "system", "content": "S"}], "temperature": 0.5,
        "maxOutputTokens": 100});
    let body = Value::Object(encoded(raw.clone(), true, Settings { stream: false, ..Settings::default() }).body);
    assert_eq!(
        body,
        json!({
            "model": "claude-opus-4-6", "max_tokens": 100, "thinking": {"type": "adaptive", "display": "summarized"},
            "messages": [{"role": "user", "content": "S"}],
        })
    );
    let budget = Settings { thinking_budget: Some(2000), ..Settings::default() };
    let body = encoded(raw, true, budget).body;
    assert_eq!(
        (&body["max_tokens"], &body["thinking"]),
        (&json!(2100), &json!({"type": "enabled", "budget_tokens": 2000}))
    );
}

#[test]
fn only_models_that_can_decide_how_much_they_think_are_let() {
    for (model, adapts) in [
        ("claude-opus-4-6", true),
        ("claude-sonnet-4-6", true),
        ("claude-opus-4-7-20260416", true),
        ("anthropic.claude-opus-4-6-v1:0", true),
        ("claude-4.6-opus", true),
        ("claude-haiku-5", true),
        ("claude-opus-5-20260901", true),
        ("claude-mythos-preview", true),
        ("claude-haiku-4-6", false),
        ("claude-haiku-4-5-20251001", false),
        ("claude-sonnet-4-20250514", false),
        ("claude-opus-4-1", false),
        ("claude-3-7-sonnet-latest", false),
        ("claude-3-opus-20240229", false),
        ("claude-instant-1.2", false),
        ("somebody-elses", false),
    ] {
        let raw = json!({"model": model, "messages": [{"role": "user", "content": "Go"}], "temperature": 0.5});
        let body = encoded(raw, true, Settings::default()).body;
        assert_eq!(body.contains_key("thinking"), adapts, "{model}");
        assert_eq!(body.contains_key("temperature"), !adapts, "{model}: one that does not think takes it");
    }
}

#[test]
fn a_schema_goes_where_the_vendor_looks_for_it() {
    let raw = json!({"messages": [{"role": "user", "content": "Go"}], "responseFormat":
        {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}});
    let body = encoded(raw, false, Settings::default()).body;
    assert_eq!(
        body["output_config"],
        json!({"format": {"type": "json_schema", "schema": {
            "type": "object", "additionalProperties": false, "required": ["a"], "properties": {"a": {"type": "integer"}},
        }}})
    );
    assert!(!body.contains_key("system"));
}

#[test]
fn signed_thoughts_are_shown_again_word_for_word() {
    let raw = json!({"messages": [{"role": "user", "content": "Go"}], "tools": [{"name": "a:b"}]});
    let events = [
        json!({"type": "message_start", "message": {"model": "m-1", "usage": {
            "input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3, "output_tokens": 1,
        }}}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(0, json!({"type": "signature_delta", "signature": "SIG=="})),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, json!({"type": "redacted_thinking", "data": "XYZ"})),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Let me look."})),
        start(3, json!({"type": "tool_use", "id": "t1", "name": "a_b", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"q\""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        start(4, json!({"type": "tool_use", "id": "t2", "name": "a_b", "input": {}})),
    ];
    let (reply, heard) = answer(raw, &[&events[..], &end("tool_use")].concat());
    let reply = reply.unwrap();
    assert_eq!(
        (reply.content.as_str(), reply.reasoning.as_deref(), reply.stop),
        ("Let me look.", Some("hm"), StopReason::ToolUse)
    );
    let tools: Vec<_> = reply.tools.iter().map(|t| (t.id.as_str(), t.name.as_str(), t.arguments.clone())).collect();
    assert_eq!(tools, [("t1", "a:b", json!({"q": 1})), ("t2", "a:b", json!({}))]);
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (28, 9));
    assert_eq!((reply.usage.cache_read_tokens, reply.usage.cache_write_tokens), (Some(20), Some(3)));
    assert_eq!(heard.0, [Delta::Reasoning("h".into()), Delta::Reasoning("m".into()), text("Let me look.")]);
    // Another tool that looks alike is there now, and the names have changed.
    let again = encoded(
        json!({"messages": [Message::said(&reply)], "tools": [{"name": "a:b"}, {"name": "a_b"}]}),
        false,
        Settings::default(),
    );
    let blocks = again.body["messages"][0]["content"].as_array().unwrap();
    assert_eq!(blocks[0], json!({"type": "thinking", "thinking": "hm", "signature": "SIG=="}));
    assert_eq!(blocks[1], json!({"type": "redacted_thinking", "data": "XYZ"}));
    assert_eq!(blocks[2], json!({"type": "text", "text": "Let me look."}));
    let name = again.body["tools"][0]["name"].as_str().unwrap();
    assert_ne!(name, "a_b");
    assert_eq!(blocks[3], json!({"type": "tool_use", "id": "t1", "name": name, "input": {"q": 1}}));
    let foreign = crate::openai::vendor(Settings::default());
    let wire = foreign.translate(&request("openai", json!({"messages": [Message::said(&reply)]}))).unwrap().0;
    assert!(!Value::Object(wire.body).to_string().contains("SIG=="), "another vendor is not shown them");
}

#[test]
fn why_it_stopped() {
    let whole = |extra: Value| {
        let mut body = json!({"type": "message", "model": "m", "content": [{"type": "text", "text": "Half"}],
            "usage": {"input_tokens": 1, "output_tokens": 2}});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        read_whole(&vendor(Settings::default()), &request("anthropic", json!({"messages": []})), &body).unwrap()
    };
    for (reason, stop) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::StopSequence),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("pause_turn", StopReason::Other),
    ] {
        let reply = whole(json!({"stop_reason": reason}));
        assert_eq!((reply.stop, reply.content.as_str(), reply.model), (stop, "Half", None), "{reason}");
    }
    let details = json!({"type": "refusal", "category": "cyber", "explanation": "Not this."});
    let reply = whole(json!({"stop_reason": "refusal", "stop_details": details}));
    assert_eq!((reply.stop, reply.content.as_str()), (StopReason::Refusal, ""));
    assert_eq!((reply.refusal.as_deref(), reply.safety_category.as_deref()), (Some("Not this."), Some("cyber")));
    let reply = whole(json!({"stop_reason": "refusal", "stop_details": null}));
    assert_eq!((reply.refusal.as_deref(), reply.safety_category), (Some("Half"), None));
}

#[test]
fn half_an_answer_is_none() {
    let begun = [start(0, json!({"type": "text", "text": ""})), delta(0, json!({"type": "text_delta", "text": "Hel"}))];
    let raw = json!({"messages": []});
    assert_eq!(answer(raw.clone(), &begun).0.unwrap_err().outcome(), "unavailable");
    let without_end = [&begun[..], &end("end_turn")[..1]].concat();
    assert_eq!(answer(raw.clone(), &without_end).0.unwrap_err().outcome(), "unavailable");
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "m"}});
    let fault = |kind: &str| answer(raw.clone(), &[&begun[..], &[error(kind)]].concat()).0.unwrap_err();
    assert_eq!(fault("overloaded_error").outcome(), "unavailable");
    assert_eq!(fault("rate_limit_error"), ProviderFault::Exhausted);
    let unknown = delta(7, json!({"type": "text_delta", "text": "?"}));
    assert_eq!(answer(raw, &[unknown]).0.unwrap_err().outcome(), "unavailable");
}

#[test]
fn nonsense_is_survived() {
    let usage = json!({"input_tokens": 1, "cache_read_input_tokens": 1, "output_tokens": 1});
    let block = json!({"type": "tool_use", "id": "t", "name": "a", "input": {"q": 1}});
    let details = json!({"category": "c", "explanation": "e"});
    let blocks = json!([{"type": "thinking", "thinking": "h", "signature": "s"}, {"type": "text", "text": "x"}, block]);
    let whole = json!({"type": "message", "model": "x", "content": blocks, "stop_reason": "refusal", "stop_details": details, "usage": usage});
    let events = [
        json!({"type": "message_start", "message": {"model": "x", "usage": usage}}),
        start(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        start(1, block),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{}"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_details": details}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    survives_nonsense(&vendor(Settings::default()), &request("anthropic", json!({"messages": []})), &events, &whole);
}

/// How often the vendor is told that it will read something again, and where.
fn marked(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match name.as_str() {
                    "cache_control" => found.push(place.to_owned()),
                    _ => marked(inner, &format!("{place}/{name}"), found),
                }
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| marked(item, &format!("{place}/{i}"), found));
        }
        _ => {}
    }
}

#[test]
fn what_stays_the_same_is_marked_and_never_more_often_than_the_vendor_takes() {
    let marks = |rounds: usize, tools: usize, cached: bool, options: Value| {
        let mut messages = vec![json!({"role": "system", "content": "S"}), json!({"role": "user", "content": "Go"})];
        for round in 0..rounds {
            let id = format!("c{round}");
            messages.push(json!({"role": "assistant", "content": "", "toolCalls": [{"id": id, "name": "t:0"}]}));
            messages.push(json!({"role": "tool", "toolCallId": id, "name": "t:0", "content": "cache_control"}));
        }
        let tools: Vec<Value> = (0..tools).map(|i| json!({"name": format!("t:{i}")})).collect();
        let raw = json!({"messages": messages, "tools": tools, "providerOptions": options});
        let wire = encoded(raw, false, Settings { prompt_cache: cached, ..Settings::default() });
        let mut found = Vec::new();
        marked(&Value::Object(wire.body), "", &mut found);
        found
    };
    assert_eq!(marks(0, 0, true, json!({})), ["/system/0"]);
    assert_eq!(marks(0, 2, true, json!({})), ["/messages/0/content/0", "/system/0", "/tools/1"]);
    assert_eq!(
        marks(1, 2, true, json!({})),
        ["/messages/0/content/0", "/messages/2/content/0", "/system/0", "/tools/1"]
    );
    for rounds in [2, 7, 200] {
        let found = marks(rounds, 64, true, json!({}));
        assert_eq!(found.len(), marks::MOST, "{found:?}");
        assert!(found.contains(&format!("/messages/{}/content/0", rounds * 2)), "{found:?}");
        assert!(found.contains(&format!("/messages/{}/content/0", rounds * 2 - 2)), "{found:?}");
    }
    assert!(marks(3, 2, false, json!({})).is_empty());
    let own = json!({"vendor.anthropic.cache_control": {"type": "ephemeral", "ttl": "1h"}});
    assert_eq!(marks(3, 2, true, own), [""], "whoever says so themselves is left alone");
}

#[test]
fn marked_blocks_are_the_blocks_they_were() {
    let raw = json!({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Go"}],
        "tools": [{"name": "a:b"}]});
    let strip = |body: Map<String, Value>| {
        let text = Value::Object(body).to_string();
        text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
            .replace(r#""cache_control":{"type":"ephemeral"},"#, "")
    };
    let with = strip(encoded(raw.clone(), false, Settings { prompt_cache: true, ..Settings::default() }).body);
    let without = strip(encoded(raw, false, Settings::default()).body);
    assert_eq!(with.replace(r#"[{"text":"S","type":"text"}]"#, r#""S""#), without);
}
