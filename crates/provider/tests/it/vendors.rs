//! Each vendor over a real connection: what is sent, and what comes of whole and streamed answers.

use crate::support;

use baton_model::{ModelReply, StopReason, Usage};
use baton_provider::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use support::{Answer, KEY, Stub, all, call, request};

fn hello() -> ModelReply {
    ModelReply::text("Hello", Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() })
}

#[tokio::test]
async fn streamed_answers_are_heard_on_the_way() {
    for speech in all() {
        let stub = Stub::new([Answer::events(&speech.stream)]).await;
        let (reply, notes) = call(&stub.settings(&speech), &request(json!({}))).await;
        assert_eq!(reply.unwrap(), hello(), "{:?}", speech.kind);
        assert_eq!((notes.text().as_str(), notes.count()), ("Hello", 2));
    }
}

#[tokio::test]
async fn whole_answers_count_even_where_a_stream_was_asked_for() {
    for speech in all() {
        let stub = Stub::new([Answer::json(200, speech.whole.clone())]).await;
        let settings = stub.settings(&speech);
        assert_eq!(call(&settings, &request(json!({}))).await.0.unwrap(), hello(), "{:?}", speech.kind);
        let whole = ProviderSettings { stream: false, ..settings };
        assert_eq!(call(&whole, &request(json!({}))).await.0.unwrap(), hello(), "{:?}", speech.kind);
        let asked = stub.asked();
        let streamed = |i: usize| asked[i].body.get("stream").is_some() || asked[i].path.contains("alt=sse");
        assert!(streamed(0) && !streamed(1), "{asked:?}");
    }
}

#[tokio::test]
async fn each_vendor_is_asked_where_and_how_it_wants() {
    let expected = [
        ("/hidden/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        ("/hidden/v1/responses", "authorization", format!("Bearer {KEY}")),
        ("/hidden/v1/messages", "x-api-key", KEY.to_owned()),
        ("/hidden/v1/models/m:streamGenerateContent?alt=sse", "x-goog-api-key", KEY.to_owned()),
    ];
    for (speech, (path, header, key)) in all().into_iter().zip(expected) {
        let stub = Stub::new([Answer::events(&speech.stream)]).await;
        let headers = [("x-account".to_owned(), "me".into())].into();
        let settings = ProviderSettings { headers, ..stub.settings(&speech) };
        call(&settings, &request(json!({}))).await.0.unwrap();
        let asked = &stub.asked()[0];
        assert_eq!(asked.path, path);
        assert_eq!(asked.header(header), Some(key.as_str()));
        assert_eq!(asked.header("traceparent"), Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        assert_eq!(asked.header("x-account"), Some("me"));
        assert!(asked.body.to_string().contains("the secret plan"));
        assert!(!asked.body.to_string().contains(KEY) && !asked.path.contains(KEY), "the key is in its header alone");
        let named = asked.header("idempotency-key");
        assert_eq!(named, (speech.kind == ProviderKind::OpenAi).then_some("run_1/n/1/1"));
        let version = asked.header("anthropic-version").is_some();
        assert_eq!(version, speech.kind == ProviderKind::Anthropic);
    }
}

#[tokio::test]
async fn tool_calls_come_back_under_their_canonical_names() {
    let tools =
        json!({"tools": [{"name": "openwop:http.fetch", "description": "d", "inputSchema": {"type": "object"}}]});
    let openai = [
        json!({"choices": [{"delta": {"tool_calls": [
            {"index": 0, "id": "c1", "function": {"name": "openwop_http_fetch", "arguments": "{\"ur"}},
            {"index": 1, "id": "c2", "function": {"name": "nobody_knows", "arguments": "{}"}},
        ]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "l\":\"x\"}"}}]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let block = |index: u64, id: &str, name: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        json!({"type": "content_block_start", "index": index, "content_block": block})
    };
    let piece = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}});
    let anthropic = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
        block(0, "c1", "openwop_http_fetch"),
        piece("{\"url\""),
        piece(":\"x\"}"),
        block(1, "c2", "nobody_knows"),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let gemini = [json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"functionCall": {"id": "c1", "name": "openwop_http_fetch", "args": {"url": "x"}}},
        {"functionCall": {"id": "c2", "name": "nobody_knows", "args": {}}},
    ]}}]})];
    let streams: [(ProviderKind, &[Value]); 3] =
        [(ProviderKind::OpenAi, &openai), (ProviderKind::Anthropic, &anthropic), (ProviderKind::Gemini, &gemini)];
    for (kind, events) in streams {
        let stub = Stub::new([Answer::events(events)]).await;
        let reply = call(&stub.settings(kind), &request(tools.clone())).await.0.unwrap();
        assert_eq!(reply.stop, StopReason::ToolUse, "{kind:?}");
        let calls: Vec<_> = reply.tools.iter().map(|t| (t.id.as_str(), t.name.as_str(), t.arguments.clone())).collect();
        let expected = [("c1", "openwop:http.fetch", json!({"url": "x"})), ("c2", "nobody_knows", json!({}))];
        assert_eq!(calls, expected, "{kind:?}");
        assert!(stub.asked()[0].body.to_string().contains("openwop_http_fetch"));
        assert!(!stub.asked()[0].body.to_string().contains("openwop:http.fetch"));
    }
}

#[tokio::test]
async fn a_stream_may_break_anywhere_and_end_without_its_last_line() {
    for speech in all() {
        let mut text: String =
            speech.stream.iter().map(|event| format!(": hi\r\nevent: x\r\ndata: {event}\r\n\r\n")).collect();
        text.truncate(text.trim_end().len());
        let mut answer = Answer::new(200, "text/plain", "\n");
        for piece in text.as_bytes().chunks(3) {
            answer = answer.then(support::Piece::Bytes(piece.to_vec().into()));
        }
        let stub = Stub::new([answer]).await;
        assert_eq!(call(&stub.settings(&speech), &request(json!({}))).await.0.unwrap(), hello(), "{:?}", speech.kind);
    }
}
