#![allow(clippy::unwrap_used)]

use baton_model::cache_key::Message;
use baton_model::{ModelReply, ModelRequest, StopReason};
use serde_json::{Value, json};

use super::vendor;
use crate::Delta;
use crate::ProviderFault;
use crate::testing::{Heard, read_events, read_whole, request, survives_nonsense, text};
use crate::wire::{Settings, Wire};

fn encoded(raw: Value, reasoning: bool, settings: Settings) -> Wire {
    let request = ModelRequest { reasoning, ..request("gemini", raw) };
    vendor(settings).translate(&request).unwrap().0
}

fn answer(raw: Value, events: &[Value]) -> (Result<ModelReply, ProviderFault>, Heard) {
    read_events(&vendor(Settings::default()), &request("gemini", raw), events)
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}], "modelVersion": "m"})
}

fn end(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason}], "usageMetadata": {
        "promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 6,
    }})
}

#[test]
fn a_conversation_with_tools_in_the_vendors_words() {
    let wire = encoded(
        json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Go"}, {"type": "image", "mimeType": "image/png", "data": "QQ=="}]},
                {"role": "assistant", "content": "Look", "toolCalls": [
                    {"id": "baton_call_0", "name": "a:b", "arguments": {"q": 1}}, {"id": "g2", "name": "a:b", "arguments": "bad"},
                ]},
                {"role": "tool", "toolCallId": "baton_call_0", "name": "a:b", "content": "one"},
                {"role": "tool", "toolCallId": "g2", "name": "a:b", "content": "two"},
            ],
            "tools": [{"name": "a:b", "description": "D", "inputSchema": {"type": "object"}}],
            "maxOutputTokens": 50, "topK": 3, "stop": ["END"], "seed": 7,
            "safetySettings": {"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
            "responseFormat": {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "providerOptions": {"vendor.gemini.generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}},
        }),
        true,
        Settings::default(),
    );
    assert_eq!((wire.path.join("/").as_str(), wire.query), ("models/m:streamGenerateContent", vec![("alt", "sse")]));
    let mut body = Value::Object(wire.body);
    let system = body["systemInstruction"]["parts"][0]["text"].take();
    assert!(system.as_str().unwrap().starts_with("Be brief.\n\nAnswer with JSON"), "tools or a schema, not both");
    assert_eq!(
        body,
        json!({
            "systemInstruction": {"parts": [{"text": null}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Go"}, {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]},
                {"role": "model", "parts": [
                    {"text": "Look"},
                    {"functionCall": {"name": "a_b", "args": {"q": 1}}},
                    {"functionCall": {"name": "a_b", "args": {"unreadable": "bad"}, "id": "g2"}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "a_b", "response": {"result": "one"}}},
                    {"functionResponse": {"name": "a_b", "response": {"result": "two"}, "id": "g2"}},
                ]},
            ],
            "tools": [{"functionDeclarations": [
                {"name": "a_b", "description": "D", "parametersJsonSchema": {"type": "object"}},
            ]}],
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
            "generationConfig": {
                "maxOutputTokens": 50, "topK": 3, "stopSequences": ["END"], "seed": 7,
                "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"},
            },
        })
    );
}

#[test]
fn a_schema_goes_where_the_vendor_looks_for_it() {
    let raw = json!({"messages": [{"role": "user", "content": "Go"}], "responseFormat":
        {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}});
    let wire = encoded(raw, false, Settings { stream: false, ..Settings::default() });
    assert_eq!((wire.path.join("/").as_str(), wire.query.len()), ("models/m:generateContent", 0));
    assert_eq!(
        wire.body["generationConfig"],
        json!({"responseMimeType": "application/json", "responseSchema": {
            "type": "OBJECT", "required": ["a"], "propertyOrdering": ["a"], "properties": {"a": {"type": "INTEGER"}},
        }})
    );
}

#[test]
fn a_model_is_a_name_and_not_a_way_to_somewhere_else() {
    for model in ["../files", "m/../../x", "m?key=1", "m:deleteAll", "", "models/", ".."] {
        let raw = json!({"messages": [], "model": if model.is_empty() { "models/" } else { model }});
        let fault = vendor(Settings::default()).translate(&request("gemini", raw)).err().unwrap();
        assert_eq!(fault.outcome(), "rejected", "{model}");
    }
    assert!(
        vendor(Settings::default())
            .translate(&request("gemini", json!({"messages": [], "model": "models/gemini-3.1-pro"})))
            .is_ok()
    );
}

#[test]
fn thoughts_calls_and_their_signatures() {
    let raw = json!({"messages": [{"role": "user", "content": "Go"}], "tools": [{"name": "a:b"}]});
    let (reply, heard) = answer(
        raw,
        &[
            parts(json!([{"text": "hm", "thought": true}])),
            parts(json!([{"text": "Let "}])),
            parts(
                json!([{"text": "me."}, {"functionCall": {"name": "a_b", "args": {"q": 1}}, "thoughtSignature": "SIG"}]),
            ),
            parts(json!([{"functionCall": {"name": "unknown", "id": "g7"}}])),
            end("STOP"),
        ],
    );
    let reply = reply.unwrap();
    assert_eq!(
        (reply.content.as_str(), reply.reasoning.as_deref(), reply.stop),
        ("Let me.", Some("hm"), StopReason::ToolUse)
    );
    let tools: Vec<_> = reply.tools.iter().map(|t| (t.id.as_str(), t.name.as_str(), t.arguments.clone())).collect();
    assert_eq!(tools, [("baton_call_0", "a:b", json!({"q": 1})), ("g7", "unknown", json!({}))]);
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens), (10, 7, Some(6)));
    assert_eq!(heard.0, [Delta::Reasoning("hm".into()), text("Let "), text("me.")]);
    let again =
        encoded(json!({"messages": [Message::said(&reply)], "tools": [{"name": "a:b"}]}), false, Settings::default());
    assert_eq!(
        again.body["contents"][0]["parts"],
        json!([
            {"text": "Let me."},
            {"functionCall": {"name": "a_b", "args": {"q": 1}}, "thoughtSignature": "SIG"},
            {"functionCall": {"name": "unknown", "id": "g7"}},
        ])
    );
}

#[test]
fn why_it_stopped() {
    let raw = || json!({"messages": []});
    for (reason, stop) in [
        ("STOP", StopReason::EndTurn),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("MALFORMED_FUNCTION_CALL", StopReason::Other),
    ] {
        let reply = answer(raw(), &[parts(json!([{"text": "Half"}])), end(reason)]).0.unwrap();
        let category = (stop == StopReason::Refusal).then(|| reason.to_owned());
        assert_eq!((reply.stop, reply.safety_category), (stop, category), "{reason}");
    }
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [
        {"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"},
        {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true},
    ]}, "usageMetadata": {"promptTokenCount": 4}});
    for reply in [
        answer(raw(), std::slice::from_ref(&blocked)).0,
        read_whole(&vendor(Settings::default()), &request("gemini", raw()), &blocked),
    ] {
        let reply = reply.unwrap();
        assert!(reply.is_refusal());
        assert_eq!(reply.safety_category.as_deref(), Some("HARM_CATEGORY_DANGEROUS_CONTENT"));
        assert_eq!(reply.usage.input_tokens, 4);
    }
}

#[test]
fn half_an_answer_is_none() {
    let raw = json!({"messages": []});
    assert_eq!(answer(raw.clone(), &[parts(json!([{"text": "Hel"}]))]).0.unwrap_err().outcome(), "unavailable");
    let error = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m"}});
    assert_eq!(answer(raw.clone(), &[parts(json!([])), error]).0.unwrap_err(), ProviderFault::Exhausted);
    let list = json!([parts(json!([{"text": "Hel"}])), parts(json!([{"text": "lo"}])), end("STOP")]);
    let reply = read_whole(&vendor(Settings::default()), &request("gemini", raw.clone()), &list).unwrap();
    assert_eq!(reply.content, "Hello");
    assert!(read_whole(&vendor(Settings::default()), &request("gemini", raw), &json!({"ok": true})).is_err());
}

#[test]
fn nonsense_is_survived() {
    let call = json!({"functionCall": {"id": "g", "name": "a", "args": {}}, "thoughtSignature": "s"});
    let ratings = json!([{"category": "c", "blocked": true}]);
    let mut whole = end("SAFETY");
    whole["candidates"][0]["content"] = json!({"parts": [{"text": "t", "thought": true}, {"text": "x"}, call]});
    whole["candidates"][0]["safetyRatings"] = ratings.clone();
    whole["promptFeedback"] = json!({"blockReason": "r", "safetyRatings": ratings});
    let events = [parts(json!([{"text": "x"}, {"text": "y"}])), whole.clone()];
    survives_nonsense(&vendor(Settings::default()), &request("gemini", json!({"messages": []})), &events, &whole);
}
