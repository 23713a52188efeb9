//! Programs with a step in hand over HTTP: what opens what, OpenAI's two interfaces as their clients see them, and the memo.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use baton_model::{AgentCard, ModelReply, Usage};
use serde_json::{Value, json};
use support::agents::{EDITOR, Model, calls, editor, says, staffed};
use support::{Answer, FULL, Frames, JSON, Site, host_options};

const RUNNERS: &str = "/v1/host/baton/runners";
const OPENAI: &str = "/v1/host/baton/steps/openai/v1";
const MEMO: &str = "/v1/host/baton/steps/memo";

struct InHand {
    site: Site,
    model: Arc<Model>,
    run: String,
    step: Value,
    runner: String,
    bearer: String,
    token: String,
    /// Open, so that the runner keeps what it has.
    _stream: Frames,
}

fn told(text: &str) -> ModelReply {
    ModelReply::text(text, Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() })
}

/// A runner that has a step in hand; the model says this to the calls of its program.
async fn in_hand(replies: Vec<ModelReply>) -> InHand {
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["runner:py".to_owned()], ..editor() }]);
    let site = Site::configured(|own| *own = options).await;
    let made = site.post("/v1/host/baton/runner-tokens", json!({"name": "laptop"})).await.json();
    let runner = made["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {runner}");
    let frame = json!({"runnerId": "r1", "subject": "tenant:acme", "capabilities": {"tools": ["py.work"]}});
    let registered = site.send("POST", RUNNERS, &[("authorization", &bearer), JSON], frame.to_string()).await;
    assert_eq!(registered.status, 201);
    let request =
        Request::builder().uri(format!("{RUNNERS}/r1/dispatch")).header("authorization", &bearer).body(Body::empty());
    let mut stream = Frames::new(site.raw(request.unwrap()).await);
    let all = [vec![calls(&[("runner:py.work", json!({}))])], replies, vec![says(&json!({"answer": "x"}))]].concat();
    model.program(all);
    let started = site.post("/v1/runs", json!({"agentId": EDITOR, "inputs": {"task": "t"}})).await.json();
    let run = started["runId"].as_str().unwrap().to_owned();
    let context = stream.any().await.unwrap();
    let token = context.data["stepToken"].as_str().unwrap().to_owned();
    let step = stream.any().await.unwrap().data;
    assert_eq!(step.get("stepToken"), None, "the frame is closed");
    InHand { site, model, run, step, runner, bearer, token, _stream: stream }
}

impl InHand {
    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.site.send(method, path, &[("authorization", &bearer), JSON], body).await
    }

    async fn chat(&self, more: Value) -> Answer {
        let mut body = json!({"model": "mock/mini", "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.send("POST", &format!("{OPENAI}/chat/completions"), &body).await
    }

    async fn finish(&self) {
        let (run, step, seq) = (&self.run, &self.step["stepId"], &self.step["seq"]);
        let result = json!({"runId": run, "stepId": step, "seq": seq, "output": {"well": "done"}});
        let path = format!("{RUNNERS}/r1/results");
        let taken = self.site.send("POST", &path, &[("authorization", &self.bearer), JSON], result.to_string()).await;
        assert_eq!(taken.status, 200, "{}", taken.text);
    }
}

/// What is wrong, in OpenAI's shape.
fn wrong(answer: &Answer, status: u16, kind: &str, code: &str) -> Value {
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status.as_u16(), &error["type"], &error["code"]),
        (status, &json!(kind), &json!(code)),
        "{error}"
    );
    assert!(error["message"].is_string() && error.get("param").is_some(), "{error}");
    error
}

/// The data of a stream, without signs of life.
fn data(answer: &Answer) -> Vec<Value> {
    assert!(answer.header("content-type").starts_with("text/event-stream"), "{}", answer.text);
    let lines = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_chat_completion_is_recorded_and_said_in_their_words() {
    let secret = "sk-ant-api03-0123456789abcdef";
    let here = in_hand(vec![told(secret), calls(&[("look", json!({"at": 1}))]), told("streamed")]).await;
    let answer = here.chat(json!({"temperature": 0})).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-baton-recorded")), (200, "false"), "{}", answer.text);
    let completion = answer.json();
    assert_eq!(completion["choices"][0]["message"]["content"], secret, "letter by letter");
    assert_eq!((&completion["object"], &completion["model"]), (&json!("chat.completion"), &json!("mock/mini")));
    assert_eq!(completion["usage"]["total_tokens"], 10);
    let log = here.site.log(&here.run).await;
    let usage = log.iter().filter(|event| event["type"] == "provider.usage").count();
    assert_eq!(usage, 2, "the agent's own and the step's");
    assert!(!log.iter().any(|event| event.to_string().contains(secret) || event.to_string().contains(&here.token)));
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let wants = here.chat(json!({"tools": tools})).await.json();
    let call = &wants["choices"][0]["message"]["tool_calls"][0];
    assert_eq!((&call["function"]["name"], &call["function"]["arguments"]), (&json!("look"), &json!("{\"at\":1}")));
    assert_eq!(wants["choices"][0]["finish_reason"], "tool_calls");
    let streamed = here.chat(json!({"stream": true, "stream_options": {"include_usage": true}, "seed": 1})).await;
    assert!(streamed.text.ends_with("data: [DONE]\n\n"));
    let chunks = data(&streamed);
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "streamed");
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens"], 3);
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
    let models = here.send("GET", &format!("{OPENAI}/models"), &Value::Null).await.json();
    assert_eq!(models["data"][0]["id"], "mock/mock-mini");
    let asked = here.model.calls();
    here.finish().await;
    here.site.reach(&here.run, "completed").await;
    let late = here.chat(json!({})).await;
    wrong(&late, 409, "invalid_request_error", "step_not_leased");
    assert_eq!(late.header("x-should-retry"), "false", "their clients do not try again");
    assert_eq!(here.model.calls(), asked + 1, "the agent's last");
}

#[tokio::test]
async fn a_response_has_their_items_and_events() {
    let here = in_hand(vec![told("whole"), told("streamed")]).await;
    let path = format!("{OPENAI}/responses");
    let whole = here.send("POST", &path, &json!({"model": "mock/mini", "input": "hi"})).await.json();
    assert_eq!((&whole["object"], &whole["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(whole["output"][0]["content"][0]["text"], "whole");
    assert_eq!(whole["usage"]["input_tokens"], 7);
    let asked = json!({"model": "mock/mini", "input": "again", "stream": true});
    let events = data(&here.send("POST", &path, &asked).await);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..9).collect::<Vec<_>>());
    assert_eq!(events[4]["delta"], "streamed");
    assert_eq!(events[8]["response"]["output"][0]["content"][0]["text"], "streamed");
}

#[tokio::test]
async fn what_is_wrong_is_said_in_their_shape() {
    let here = in_hand(Vec::new()).await;
    assert_eq!(
        wrong(&here.chat(json!({"n": 2})).await, 400, "invalid_request_error", "validation_error")["param"],
        "n"
    );
    for model in ["mini", "nobody/x", "/", ""] {
        let error = wrong(&here.chat(json!({"model": model})).await, 404, "not_found_error", "model_not_found");
        assert_eq!(error["param"], "model");
    }
    let chat = format!("{OPENAI}/chat/completions");
    let broken = here.site.send("POST", &chat, &[("authorization", &format!("Bearer {}", here.token))], "{").await;
    wrong(&broken, 400, "invalid_request_error", "validation_error");
    let large = json!({"model": "mock/mini", "messages": [{"role": "user", "content": "x".repeat(9 * 1024 * 1024)}]});
    wrong(&here.send("POST", &chat, &large).await, 413, "invalid_request_error", "payload_too_large");
    for (header, status, kind, code) in [
        (FULL, 403, "permission_error", "forbidden"),
        (("authorization", here.bearer.as_str()), 403, "permission_error", "forbidden"),
        (("authorization", "Bearer bs_x.y"), 401, "authentication_error", "unauthenticated"),
    ] {
        wrong(&here.site.send("POST", &chat, &[header, JSON], "{}").await, status, kind, code);
    }
    wrong(&here.site.send("POST", &chat, &[JSON], "{}").await, 401, "authentication_error", "unauthenticated");
    assert_eq!(here.model.calls(), 1, "only the agent asked");
}

#[tokio::test]
async fn a_steps_token_opens_the_gateway_and_the_memo_and_nothing_else() {
    let here = in_hand(Vec::new()).await;
    for (method, path) in [
        ("GET", "/v1/runs".to_owned()),
        ("POST", "/v1/runs".to_owned()),
        ("GET", "/v1/tools".to_owned()),
        ("GET", format!("/v1/runs/{}", here.run)),
        ("GET", format!("{RUNNERS}/r1/dispatch")),
        ("POST", format!("{RUNNERS}/r1/results")),
        ("GET", "/v1/host/baton/runner-tokens".to_owned()),
    ] {
        here.send(method, &path, &json!({})).await.refused(403, "forbidden");
    }
    let place = format!("{MEMO}/a%2Fb");
    let made = here.send("PUT", &place, &json!({"value": [1]})).await;
    assert_eq!((made.status.as_u16(), made.json()), (201, json!({"key": "a/b", "value": [1], "created": true})));
    let known = here.send("PUT", &place, &json!({"value": [2]})).await;
    assert_eq!((known.status.as_u16(), known.json()), (200, json!({"key": "a/b", "value": [1], "created": false})));
    assert_eq!(here.send("GET", &place, &Value::Null).await.json(), json!({"key": "a/b", "value": [1]}));
    here.send("GET", &format!("{MEMO}/other"), &Value::Null).await.refused(404, "not_found");
    here.send("PUT", &place, &json!({"valeu": 1})).await.refused(400, "validation_error");
    let large = json!({"value": "x".repeat(256 * 1024)});
    here.send("PUT", &format!("{MEMO}/large"), &large).await.refused(413, "payload_too_large");
    for header in [FULL, ("authorization", here.bearer.as_str())] {
        here.site.send("GET", &place, &[header], "").await.refused(403, "forbidden");
    }
    here.site.send("GET", &place, &[], "").await.refused(401, "unauthenticated");
    assert!(!here.runner.is_empty());
    here.finish().await;
    here.site.reach(&here.run, "completed").await;
    here.send("GET", &place, &Value::Null).await.refused(409, "step_not_leased");
    let bundle = here.site.get(&format!("/v1/runs/{}/debug-bundle", here.run)).await;
    assert!(!bundle.text.contains(&here.token));
}
