#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::vendor;
use crate::Delta;
use crate::ProviderFault;
use crate::testing::{Heard, read_events, read_whole, request, survives_nonsense, text};
use crate::wire::Settings;
use baton_model::cache_key::Message;
use baton_model::{ModelReply, ModelRequest, StopReason};

fn encoded(raw: Value, settings: Settings) -> Value {
    Value::Object(vendor(settings).translate(&request("openai", raw)).unwrap().0.body)
}

fn answer(raw: Value, events: &[Value]) -> (Result<ModelReply, ProviderFault>, Heard) {
    read_events(&vendor(Settings::default()), &request("openai", raw), events)
}

fn whole(response: Value) -> Result<ModelReply, ProviderFault> {
    let raw = json!({"messages": [], "tools": [{"name": "a:b"}]});
    read_whole(&vendor(Settings::default()), &request("openai", raw), &response)
}

fn said(words: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments})
}

fn thought(words: &str, sealed: bool) -> Value {
    let mut item = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": words}]});
    if sealed {
        item["encrypted_content"] = "sealed".into();
    }
    item
}

fn response(status: &str, output: Value) -> Value {
    json!({"object": "response", "status": status, "model": "m", "error": null, "output": output,
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 6}, "output_tokens": 4}})
}

fn last(status: &str, output: Value) -> Value {
    json!({"type": format!("response.{status}"), "response": response(status, output)})
}

#[test]
fn a_conversation_with_a_tool_in_the_vendors_words() {
    let raw = json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "See"}, {"type": "image", "mimeType": "image/png", "data": "QQ=="},
                {"type": "document", "mimeType": "application/pdf", "url": "https://x/y.pdf"},
            ]},
            {"role": "assistant", "content": "Well", "toolCalls": [
                {"id": "c1", "name": "openwop:http.fetch", "arguments": {"url": "x"}},
                {"id": "c2", "name": "openwop:http.fetch", "arguments": "not json"},
            ]},
            {"role": "tool", "toolCallId": "c1", "name": "openwop:http.fetch", "content": "200"},
            {"role": "tool", "toolCallId": "c2", "name": "openwop:http.fetch", "content": {"error": "no"}},
        ],
        "tools": [{"name": "openwop:http.fetch", "description": "Fetches", "inputSchema": {"type": "object"}}],
        "temperature": 0.5, "maxOutputTokens": 50, "seed": 7, "topK": 3,
        "providerOptions": {"vendor.openai.reasoning_effort": "low", "vendor.openai.verbosity": "high", "vendor.x.y": 1},
    });
    let (wire, _) = vendor(Settings::default()).translate(&request("openai", raw)).unwrap();
    assert_eq!((wire.path, &wire.headers[0].1), (vec!["responses".to_owned()], &"call/1".to_owned()));
    assert_eq!(
        Value::Object(wire.body),
        json!({
            "model": "m", "stream": true, "store": false, "temperature": 0.5, "max_output_tokens": 50,
            "reasoning": {"effort": "low"}, "text": {"verbosity": "high"},
            "input": [
                {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "See"},
                    {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
                    {"type": "input_file", "file_url": "https://x/y.pdf"},
                ]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well"}]},
                {"type": "function_call", "call_id": "c1", "name": "openwop_http_fetch", "arguments": "{\"url\":\"x\"}"},
                {"type": "function_call", "call_id": "c2", "name": "openwop_http_fetch", "arguments": "not json"},
                {"type": "function_call_output", "call_id": "c1", "output": "200"},
                {"type": "function_call_output", "call_id": "c2", "output": "{\"error\":\"no\"}"},
            ],
            "tools": [{
                "type": "function", "name": "openwop_http_fetch", "description": "Fetches", "strict": false,
                "parameters": {"type": "object"},
            }],
        })
    );
}

#[test]
fn thoughts_are_asked_for_where_a_model_has_some_and_sealed_ones_come_back() {
    let official = || Settings { official: true, ..Settings::default() };
    let asks = |model: &str, reasoning: bool, settings: Settings| {
        let asked = ModelRequest { reasoning, ..request("openai", json!({"model": model, "messages": []})) };
        let body = vendor(settings).translate(&asked).unwrap().0.body;
        (body.contains_key("include"), body.contains_key("reasoning"))
    };
    assert_eq!(asks("gpt-5", true, official()), (true, true));
    assert_eq!(asks("gpt-5", false, official()), (true, false));
    assert_eq!(asks("gpt-4o", true, official()), (false, false));
    assert_eq!(asks("gpt-5", true, Settings::default()), (false, false), "a name proves nothing elsewhere");

    let reply = whole(response("completed", json!([thought("hm", true), call("x", "a_b", "{}")]))).unwrap();
    assert_eq!((reply.reasoning.as_deref(), reply.stop), (Some("hm"), StopReason::ToolUse));
    let raw = json!({"messages": [Message::said(&reply)], "tools": [{"name": "a:b"}, {"name": "a_b"}]});
    let input = encoded(raw.clone(), Settings::default())["input"].clone();
    assert_eq!(input[0]["encrypted_content"], "sealed");
    assert_eq!((&input[0]["id"], input[1].get("id")), (&json!("rs_1"), None));
    assert_eq!(input[1]["call_id"], "x");
    let names: Vec<Value> = encoded(raw.clone(), Settings::default())["tools"].as_array().unwrap().clone();
    assert_eq!(input[1]["name"], names[0]["name"], "under the name that it has this time");
    // Chat completions would not know what to do with it.
    let chat = crate::openai::vendor(Settings::default()).translate(&request("openai", raw)).unwrap().0.body;
    assert!(!Value::Object(chat).to_string().contains("sealed"));
    let plain = whole(response("completed", json!([thought("hm", false), said("x")]))).unwrap();
    assert_eq!(plain.echo, None, "what is not sealed is not shown again");
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
        body["text"],
        json!({"format": {"type": "json_schema", "name": "my_answer", "strict": true, "schema": {
            "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": ["string", "null"]}},
        }}})
    );
    let body = encoded(asked(plain.clone()), Settings { native_schemas: false, ..Settings::default() });
    assert_eq!(body.get("text"), None);
    assert!(body["input"][0]["content"][0]["text"].as_str().unwrap().starts_with("S\n\nAnswer with JSON"));
    let (reply, _) = answer(asked(plain), &[last("completed", json!([said("{\"a\":null}")]))]);
    assert_eq!(reply.unwrap().content, "{}", "nulls that stand for nothing are gone");
}

#[test]
fn what_cannot_be_said_is_refused_by_place_and_not_by_content() {
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "c2VjcmV0IHBsYW4="}]);
    for (raw, place) in [
        (json!({"messages": [], "stop": ["secret plan"]}), "`stop`"),
        (json!({"messages": [{"role": "user", "content": audio}]}), "audio"),
        (json!({"messages": [], "providerOptions": {"vendor.openai.input": "secret plan"}}), "`input`"),
        (json!({"messages": [], "providerOptions": {"vendor.openai.text": {"format": "secret plan"}}}), "`text`"),
        (json!({"messages": [], "providerOptions": {"vendor.openai.previous_response_id": "secret plan"}}), "previous"),
    ] {
        let fault = vendor(Settings::default()).translate(&request("openai", raw)).err().unwrap();
        assert_eq!(fault.outcome(), "rejected");
        assert!(fault.to_string().contains(place) && !fault.to_string().contains("secret plan"), "{fault}");
    }
}

#[test]
fn a_stream_is_heard_in_pieces_and_counts_as_a_whole() {
    let piece = |kind: &str, delta: &str| json!({"type": kind, "output_index": 0, "delta": delta});
    let events = [
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        piece("response.reasoning_summary_text.delta", "hm"),
        json!({"type": "response.reasoning_summary_part.added", "summary_index": 1}),
        piece("response.reasoning_summary_text.delta", "so"),
        piece("response.output_text.delta", "Hel"),
        piece("response.output_text.delta", "lo"),
        piece("response.function_call_arguments.delta", "{}"),
        last("completed", json!([thought("hm", false), said("Hello")])),
    ];
    let (reply, heard) = answer(json!({"messages": []}), &events);
    let reply = reply.unwrap();
    assert_eq!((reply.content.as_str(), reply.reasoning.as_deref()), ("Hello", Some("hm")));
    assert_eq!(reply.stop, StopReason::EndTurn);
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens), (10, 4, Some(6)));
    let thoughts = ["hm", "\n\n", "so"].map(|text| Delta::Reasoning(text.to_owned()));
    assert_eq!(heard.0, [&thoughts[..], &[text("Hel"), text("lo")]].concat());
    // Every beginning of it is none.
    for kept in 0..events.len() - 1 {
        let reply = answer(json!({"messages": []}), &events[..kept]).0;
        assert_eq!(reply.unwrap_err().outcome(), "unavailable", "after {kept}");
    }
    // A last word without the items: they were told before.
    let told = json!({"type": "response.output_item.done", "output_index": 0, "item": said("Hello")});
    assert_eq!(
        answer(json!({"messages": []}), &[told.clone(), last("completed", json!([]))]).0.unwrap().content,
        "Hello"
    );
    let done = answer(json!({"messages": []}), &[told]).0;
    assert_eq!(done.unwrap_err().outcome(), "unavailable", "an item that is done is no answer that is");
}

#[test]
fn calls_are_taken_whole_and_not_always_well_formed() {
    let output = json!([call("x", "a_b", "{\"q\":1}"), call("y", "made_up", "{\"n\""), call("", "a_b", ""),
        {"type": "function_call", "call_id": "z", "name": "a_b", "arguments": {"q": 2}}, {"type": "web_search_call"}]);
    let reply = whole(response("completed", output.clone())).unwrap();
    let calls: Vec<_> = reply.tools.into_iter().map(|use_| (use_.id, use_.name, use_.arguments)).collect();
    assert_eq!(
        calls,
        [
            ("x".to_owned(), "a:b".to_owned(), json!({"q": 1})),
            ("y".to_owned(), "made_up".to_owned(), json!("{\"n\"")),
            ("fc_".to_owned(), "a:b".to_owned(), json!({})),
            ("z".to_owned(), "a:b".to_owned(), json!({"q": 2})),
        ]
    );
    let mut cut = response("incomplete", output);
    cut["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let reply = whole(cut).unwrap();
    assert_eq!((reply.stop, reply.tools.len()), (StopReason::MaxTokens, 0), "half a call is none");
}

#[test]
fn why_it_stopped() {
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]);
    let reply = whole(response("completed", refusal)).unwrap();
    assert_eq!((reply.stop, reply.refusal.as_deref()), (StopReason::Refusal, Some("No.")));
    let mut filtered = response("incomplete", json!([said("Half")]));
    filtered["incomplete_details"] = json!({"reason": "content_filter"});
    let reply = whole(filtered).unwrap();
    assert_eq!((reply.stop, reply.content.as_str()), (StopReason::Refusal, ""));
    assert_eq!(reply.safety_category.as_deref(), Some("content_filter"));
    let mut failed = response("failed", json!([said("Half")]));
    assert_eq!(whole(failed.clone()).unwrap_err().outcome(), "unavailable");
    failed["error"] = json!({"code": "rate_limit_exceeded", "message": "at http://10.0.0.1"});
    assert_eq!(whole(failed.clone()).unwrap_err(), ProviderFault::Exhausted);
    let event = json!({"type": "response.failed", "response": failed});
    assert_eq!(answer(json!({"messages": []}), &[event]).0.unwrap_err(), ProviderFault::Exhausted);
    for under_way in ["in_progress", "queued", "cancelled", "dreaming"] {
        assert_eq!(whole(response(under_way, json!([said("Half")]))).unwrap_err().outcome(), "unavailable");
    }
    let flat = json!({"type": "error", "code": "server_error", "message": "at http://10.0.0.1", "param": null});
    let fault = answer(json!({"messages": []}), &[flat]).0.unwrap_err();
    assert_eq!(fault, ProviderFault::Unavailable("it reported server_error instead of an answer".into()));
    let (_, decoder) = vendor(Settings::default()).translate(&request("openai", json!({"messages": []}))).unwrap();
    let flagged = json!({"error": {"code": "invalid_prompt", "message": "your prompt was flagged"}});
    assert!(decoder.refused(400, &flagged).unwrap().is_refusal());
    assert!(decoder.refused(500, &flagged).is_none());
}

#[test]
fn nonsense_is_survived() {
    let output = json!([thought("hm", true), said("x"), call("y", "a_b", "{}"),
        {"type": "message", "content": [{"type": "refusal", "refusal": ""}]}]);
    let mut body = response("incomplete", output.clone());
    body["incomplete_details"] = json!({"reason": "content_filter"});
    let events = [
        json!({"type": "response.output_text.delta", "delta": "x"}),
        json!({"type": "response.output_item.done", "item": said("x")}),
        last("completed", output),
    ];
    let asked = request("openai", json!({"messages": [], "tools": [{"name": "a:b"}]}));
    survives_nonsense(&vendor(Settings::default()), &asked, &events, &body);
}
