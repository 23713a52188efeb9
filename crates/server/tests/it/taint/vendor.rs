//! Somebody who speaks like OpenAI and keeps what was said, byte for byte. What it answers depends on whom it plays.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};

use super::entrances::marker;

#[derive(Clone, Default)]
pub(super) struct Vendor(Arc<Mutex<Vec<String>>>);

impl Vendor {
    pub(super) async fn open(self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/v1")
    }

    pub(super) fn said(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// What a model can see of its request.
struct Asked<'a> {
    system: &'a str,
    /// Everything that users said.
    told: String,
    /// How many results of tools there are, and how many messages in all.
    returned: usize,
    messages: usize,
    tools: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(body: &'a Value) -> Self {
        let messages = body["messages"].as_array().unwrap();
        let of = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
        let tools = body["tools"].as_array().into_iter().flatten();
        Self {
            system: of("system").next().and_then(|message| message["content"].as_str()).unwrap_or_default(),
            told: of("user").filter_map(|message| message["content"].as_str()).collect(),
            returned: of("tool").count(),
            messages: messages.len(),
            tools: tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect(),
        }
    }

    fn is(&self, prompt: &str) -> bool {
        self.system.contains(prompt)
    }

    /// A call of the tool whose name has this in it.
    fn calls(&self, part: &str, arguments: &Value) -> Value {
        let name = self.tools.iter().find(|name| name.contains(part)).unwrap();
        calls(name, arguments)
    }
}

async fn answer(State(vendor): State<Vendor>, body: String) -> axum::Json<Value> {
    let request: Value = serde_json::from_str(&body).unwrap();
    vendor.0.lock().unwrap().push(body);
    let message = reply(&Asked::read(&request));
    let stop = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    axum::Json(json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }))
}

fn reply(asked: &Asked<'_>) -> Value {
    let json = |value: Value| says(&value.to_string());
    match asked.returned {
        // What one agent says is another one's material.
        _ if asked.is("You are alpha.") => says(&marker("agent")),
        _ if asked.is("You answer a node.") => json(json!({"said": marker("model")})),
        0 if asked.is("You read.") => asked.calls("workspace", &json!({"path": "tool.md"})),
        0 if asked.is("You call.") => asked.calls("echo", &json!({"text": marker("echo")})),
        // The host repeats what is wrong with a call, and where.
        1 if asked.is("You call.") => asked.calls("echo", &json!({"deep": {marker("argument"): 5}})),
        2 if asked.is("You call.") => asked.calls("echo", &json!({"text": "fail"})),
        3 if asked.is("You call.") => calls(&marker("unknown"), &json!({})),
        0 if asked.is("You ask.") => {
            let questions = json!([{"id": "q", "question": "For whom?"}]);
            asked.calls("envelope", &json!({"type": "clarification.request", "payload": {"questions": questions}}))
        }
        // Nobody may take up what it says when it is asked again: neither words nor the names of members.
        _ if asked.is("You slip.") && asked.messages.is_multiple_of(2) => {
            says(&format!("Well then, {}", marker("slip")))
        }
        _ if asked.is("You slip.") => json(json!({marker("slip"): 1})),
        _ if asked.is("You waver.") => json(json!({"answer": "Perhaps.", "confidence": 0.1})),
        _ if asked.is("You doubt.") => {
            let confidence = if asked.told.contains("be sure") { 0.9 } else { 0.1 };
            json(json!({"kind": "terminate", "reason": "done", "confidence": confidence}))
        }
        _ if asked.is("You manage.") => json(managed(&asked.told)),
        _ if asked.is("You lead.") => json(json!({"kind": "terminate", "reason": "done"})),
        _ => says("Done."),
    }
}

/// One turn with workers that fail, one question to people, and the end.
fn managed(told: &str) -> Value {
    let turn = |n: u32| told.contains(&format!("recorded it:\n{{\n  \"iteration\": {n}\n"));
    match () {
        () if turn(1) => {
            let workers = json!(["broken", "https://far.example/workflows/fail", marker("worker")]);
            let inputs = json!([{"note": marker("decided")}, {}, {}]);
            json!({"kind": "next-worker", "nextWorkerIds": workers, "nextWorkerInputs": inputs})
        }
        () if turn(2) => json!({"kind": "ask-user", "prompt": "What now?"}),
        () => json!({"kind": "terminate", "reason": "done"}),
    }
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(name: &str, arguments: &Value) -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}
