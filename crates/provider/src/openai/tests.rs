#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::vendor;
use crate::Delta;
use crate::ProviderFault;
use crate::testing::{Heard, read_events, request, survives_nonsense, text};
use crate::wire::Settings;
use baton_model::{ModelReply, StopReason};

fn encoded(raw: Value, settings: Settings) -> Value {
    let (wire, _) = vendor(settings).translate(&request("openai", raw)).unwrap();
    Value::Object(wire.body)
}

fn answer(raw: Value, events: &[Value]) -> (Result<ModelReply, ProviderFault>, Heard) {
    read_events(&vendor(Settings::default()), &request("openai", raw), events)
}

fn chunk(delta: Value) -> Value {
    json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn a_conversation_with_a_tool_in_the_vendors_words() {
    let body = encoded(
        json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "See"}, {"type": "image", "mimeType": "image/png", "data": "QQ=="},
                ]},
                {"role": "assistant", "content": "", "toolCalls": [
                    {"id": "c1", "name": "openwop:http.fetch", "arguments": {"url": "x"}},
                    {"id": "c2", "name": "openwop:http.fetch", "arguments": "not json"},
                ]},
                {"role": "tool", "toolCallId": "c1", "name": "openwop:http.fetch", "content": "200"},
                {"role": "tool", "toolCallId": "c2", "name": "openwop:http.fetch", "content": {"error": "no"}},
            ],
            "tools": [{"name": "openwop:http.fetch", "description": "Fetches", "inputSchema": {"type": "object"}}],
            "temperature": 0.5, "maxOutputTokens": 50, "stop": ["END"], "seed": 7, "topK": 3,
            "providerOptions": {"vendor.openai.reasoning_effort": "low", "vendor.other.x": 1},
        }),
        Settings::default(),
    );
    assert_eq!(
        body,
        json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "temperature": 0.5, "max_tokens": 50, "stop": ["END"], "seed": 7, "top_k": 3, "reasoning_effort": "low",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "See"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function",
                     "function": {"name": "openwop_http_fetch", "arguments": "{\"url\":\"x\"}"}},
                    {"id": "c2", "type": "function",
                     "function": {"name": "openwop_http_fetch", "arguments": "not json"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "200"},
                {"role": "tool", "tool_call_id": "c2", "content": "{\"error\":\"no\"}"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "openwop_http_fetch", "description": "Fetches", "parameters": {"type": "object"},
            }}],
        })
    );
}

#[test]
fn the_vendor_itself_counts_by_another_name() {
    let settings = Settings { official: true, stream: false, max_output_tokens: Some(9), ..Settings::default() };
    let body = encoded(json!({"messages": [], "topK": 3}), settings);
    assert_eq!(body, json!({"model": "m", "messages": [], "max_completion_tokens": 9}));
}

#[test]
fn a_schema_is_native_where_it_can_be_and_asked_for_where_not() {
    let asked = |schema: Value| {
        json!({"messages": [{"role": "system", "content": "S"}], "responseFormat":
        {"type": "json_schema", "name": "my answer", "schema": schema}})
    };
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let body = encoded(asked(plain.clone()), Settings::default());
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "my_answer", "strict": true, "schema": {
            "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": ["string", "null"]}},
        }}})
    );
    for (schema, settings) in [
        (json!({"type": "object"}), Settings::default()),
        (plain, Settings { native_schemas: false, ..Settings::default() }),
    ] {
        let body = encoded(asked(schema), settings);
        assert_eq!(body.get("response_format"), None);
        let system = body["messages"][0]["content"].as_str().unwrap();
        assert!(system.starts_with("S\n\nAnswer with JSON"), "{system}");
    }
}

#[test]
fn what_cannot_be_said_is_refused_by_place_and_not_by_content() {
    for (raw, place) in [
        (json!({"messages": [{"role": "wizard", "content": "secret plan"}]}), "messages/0"),
        (json!({"messages": [{"role": "user", "content": {"secret plan": 1}}]}), "messages/0/content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image", "mimeType": "i/p", "mediaRef": "m"}]}]}),
            "messages/0/content/0",
        ),
        (json!({"messages": [{"role": "tool", "content": "secret plan"}]}), "messages/0"),
        (json!({"messages": [], "providerOptions": {"vendor.openai.model": "secret plan"}}), "model"),
    ] {
        let fault = vendor(Settings::default()).translate(&request("openai", raw)).err().unwrap();
        assert_eq!(fault.outcome(), "rejected");
        assert!(fault.to_string().contains(place) && !fault.to_string().contains("secret plan"), "{fault}");
    }
}

#[test]
fn a_stream_with_thoughts_text_and_usage() {
    let (reply, heard) = answer(
        json!({"messages": []}),
        &[
            chunk(json!({"role": "assistant", "content": ""})),
            chunk(json!({"reasoning_content": "hm"})),
            chunk(json!({"content": "Hel"})),
            chunk(json!({"content": "lo"})),
            end("stop"),
            json!({"model": "m-2", "choices": [], "usage": {
                "prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6},
            }}),
        ],
    );
    let reply = reply.unwrap();
    assert_eq!(
        (reply.content.as_str(), reply.reasoning.as_deref(), reply.stop),
        ("Hello", Some("hm"), StopReason::EndTurn)
    );
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens), (10, 4, Some(6)));
    assert_eq!(reply.model.as_deref(), Some("m-2"));
    assert_eq!(reply.echo, None);
    assert_eq!(heard.0, [Delta::Reasoning("hm".into()), text("Hel"), text("lo")]);
}

#[test]
fn tags_around_thoughts_are_taken_out() {
    let events = [chunk(json!({"content": "<thi"})), chunk(json!({"content": "nk>hm</think>\n{}"})), end("stop")];
    let (reply, heard) = answer(json!({"messages": []}), &events);
    let reply = reply.unwrap();
    assert_eq!((reply.content.as_str(), reply.reasoning.as_deref()), ("{}", Some("hm")));
    assert_eq!(heard.0, [Delta::Reasoning("hm".into()), text("{}")]);
}

#[test]
fn calls_come_in_pieces_several_at_once_and_not_always_well_formed() {
    let raw = json!({"messages": [], "tools": [{"name": "a:b"}]});
    let call = |fields: Value| chunk(json!({"tool_calls": [fields]}));
    let (reply, _) = answer(
        raw.clone(),
        &[
            call(json!({"index": 0, "id": "x", "type": "function", "function": {"name": "a_b", "arguments": ""}})),
            call(json!({"index": 1, "id": "y", "function": {"name": "made_up", "arguments": "{\"n\""}})),
            call(json!({"index": 0, "function": {"arguments": "{\"q\":"}})),
            call(json!({"index": 0, "function": {"arguments": "1}"}})),
            call(json!({"index": 2, "function": {"name": "a_b"}})),
            end("tool_calls"),
        ],
    );
    let tools: Vec<_> = reply.unwrap().tools.into_iter().map(|use_| (use_.id, use_.name, use_.arguments)).collect();
    assert_eq!(
        tools,
        [
            ("x".to_owned(), "a:b".to_owned(), json!({"q": 1})),
            ("y".to_owned(), "made_up".to_owned(), json!("{\"n\"")),
            ("baton_call_2".to_owned(), "a:b".to_owned(), json!({})),
        ]
    );
    // All under one index, told apart by their ids.
    let one = |id: &str| json!({"index": 0, "id": id, "function": {"name": "a_b", "arguments": "{}"}});
    let (reply, _) = answer(raw, &[chunk(json!({"tool_calls": [one("p"), one("q")]})), end("stop")]);
    let reply = reply.unwrap();
    assert_eq!(reply.tools.iter().map(|use_| use_.id.as_str()).collect::<Vec<_>>(), ["p", "q"]);
    assert_eq!(reply.stop, StopReason::ToolUse, "whatever it says");
}

#[test]
fn why_it_stopped() {
    let refused = |message: Value, reason: &str| {
        let body = json!({"choices": [{"message": message, "finish_reason": reason}]});
        let vendor = vendor(Settings::default());
        let (_, mut decoder) = vendor.translate(&request("openai", json!({"messages": []}))).unwrap();
        decoder.whole(&body).unwrap();
        decoder.finish().unwrap()
    };
    let reply = refused(json!({"content": null, "refusal": "No."}), "stop");
    assert_eq!(
        (reply.stop, reply.refusal.as_deref(), reply.safety_category.as_deref()),
        (StopReason::Refusal, Some("No."), None)
    );
    let reply = refused(json!({"content": "Half", "refusal": null}), "content_filter");
    assert_eq!((reply.stop, reply.content.as_str()), (StopReason::Refusal, ""));
    assert_eq!((reply.refusal.as_deref(), reply.safety_category.as_deref()), (Some("Half"), Some("content_filter")));
    let call = json!([{"id": "x", "function": {"name": "a", "arguments": "{\"n\":1}"}}]);
    let reply = refused(json!({"content": "Half", "tool_calls": call}), "length");
    assert_eq!((reply.stop, reply.content.as_str(), reply.tools.len()), (StopReason::MaxTokens, "Half", 0));
    assert_eq!(refused(json!({"content": "", "refusal": ""}), "stop").stop, StopReason::EndTurn);
    assert_eq!(refused(json!({"content": "x"}), "eos").stop, StopReason::Other);
}

#[test]
fn half_an_answer_is_none() {
    let (reply, heard) = answer(json!({"messages": []}), &[chunk(json!({"content": "Hel"}))]);
    assert_eq!(reply.unwrap_err().outcome(), "unavailable");
    assert_eq!(heard.0, [text("Hel")]);
    let error = json!({"error": {"type": "server_error", "message": "at http://10.0.0.1"}});
    let (reply, _) = answer(json!({"messages": []}), &[chunk(json!({"content": "Hel"})), error]);
    assert_eq!(reply.unwrap_err(), ProviderFault::Unavailable("it reported server_error instead of an answer".into()));
}

#[test]
fn nulls_that_stand_for_nothing_are_gone() {
    let raw = json!({"messages": [], "responseFormat": {"type": "json_schema", "schema":
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}}});
    let (reply, _) = answer(raw, &[chunk(json!({"content": "{\"a\":null,\"b\":\"x\"}"})), end("stop")]);
    assert_eq!(reply.unwrap().content, "{\"b\":\"x\"}");
}

#[test]
fn thoughts_are_shown_again_with_a_tools_answer() {
    let raw = json!({"messages": [{"role": "user", "content": "go"}], "tools": [{"name": "a:b"}]});
    let call = json!([{"index": 0, "id": "x", "function": {"name": "a_b", "arguments": "{}"}}]);
    let events = [chunk(json!({"reasoning_content": "hm"})), chunk(json!({"tool_calls": call})), end("tool_calls")];
    let reply = answer(raw, &events).0.unwrap();
    let body = encoded(
        json!({"messages": [baton_model::cache_key::Message::said(&reply)], "tools": [{"name": "a:b"}]}),
        Settings::default(),
    );
    assert_eq!(body["messages"][0]["reasoning_content"], "hm");
    assert_eq!(body["messages"][0]["tool_calls"][0]["function"]["name"], "a_b");
}

#[test]
fn nonsense_is_survived() {
    let call = json!([{"index": 0, "id": "x", "type": "function", "function": {"name": "a_b", "arguments": "{}"}}]);
    let said = json!({"content": "<think>x</think>y", "reasoning": "r", "refusal": "", "reasoning_details": [{}], "tool_calls": call});
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}});
    let choice =
        json!({"message": said, "finish_reason": "stop", "content_filter_results": {"hate": {"filtered": true}}});
    let whole = json!({"model": "x", "choices": [choice], "usage": usage});
    let events = [chunk(said), end("content_filter"), json!({"choices": [], "usage": usage})];
    survives_nonsense(&vendor(Settings::default()), &request("openai", json!({"messages": []})), &events, &whole);
}
