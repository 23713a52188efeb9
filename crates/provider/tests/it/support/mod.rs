//! A server on loopback that answers as it is told, and notes what it was asked.
#![allow(dead_code, unreachable_pub)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use baton_model::{ModelReply, ModelRequest, SemanticRequest, TraceContext};
use baton_provider::{Delta, DeltaSink, Provider, ProviderFault, ProviderKind, ProviderSettings, WireFormat, build};
use futures_util::StreamExt as _;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

pub const KEY: &str = "sk-canary-51f0c2";

#[derive(Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Piece>,
}

#[derive(Clone)]
pub enum Piece {
    Bytes(Bytes),
    /// The connection is gone.
    Cut,
    /// Nothing more comes, and the connection stays.
    Hang,
    /// This comes for ever.
    Endless(Bytes),
}

impl Answer {
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status, headers: vec![("content-type", content_type)], pieces: vec![Piece::Bytes(body.into())] }
    }

    pub fn json(status: u16, body: Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A stream of events, each in a piece of its own.
    pub fn events<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let events = events.into_iter().map(|event| format!("data: {event}\n\n"));
        Self { status: 200, headers: vec![("content-type", "text/event-stream")], pieces: events.map(bytes).collect() }
    }

    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    /// Nothing at all, not even a status.
    pub fn silence() -> Self {
        Self { status: 0, headers: Vec::new(), pieces: Vec::new() }
    }

    async fn send(self, gone: Arc<watch::Sender<usize>>) -> Response {
        let leaving = Leaving(gone);
        if self.status == 0 {
            std::future::pending::<Infallible>().await;
        }
        let mut response = Response::builder().status(StatusCode::from_u16(self.status).unwrap());
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let pieces = stream::iter(self.pieces).flat_map(|piece| match piece {
            Piece::Bytes(bytes) => stream::iter([Ok(bytes)]).boxed(),
            // What came before is on its way once the server has to wait for more.
            Piece::Cut => stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            })
            .boxed(),
            Piece::Hang => stream::pending().boxed(),
            Piece::Endless(bytes) => stream::repeat_with(move || Ok(bytes.clone())).boxed(),
        });
        let pieces = pieces.map(move |piece| {
            let _ = &leaving;
            piece
        });
        response.body(Body::from_stream(pieces)).unwrap()
    }
}

pub fn bytes(text: String) -> Piece {
    Piece::Bytes(text.into())
}

/// Counts answers that were sent to their end, or that nobody waited for.
struct Leaving(Arc<watch::Sender<usize>>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Clone)]
struct Inner {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    heard: Arc<watch::Sender<usize>>,
    gone: Arc<watch::Sender<usize>>,
}

pub struct Stub {
    pub port: u16,
    inner: Inner,
}

impl Stub {
    /// Gives one answer after the other; the last one stays.
    pub async fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let counter = || Arc::new(watch::Sender::new(0));
        let inner = Inner { answers, asked: Arc::default(), heard: counter(), gone: counter() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, inner }
    }

    pub fn settings(&self, spoken: impl Into<Spoken>) -> ProviderSettings {
        settings(spoken, self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.inner.asked.lock().clone()
    }

    /// Waits until it was asked so often.
    pub async fn until_asked(&self, count: usize) {
        until(&self.inner.heard, count).await;
    }

    /// Waits until so many answers are over, one way or another.
    pub async fn over(&self, count: usize) {
        until(&self.inner.gone, count).await;
    }
}

async fn until(counter: &watch::Sender<usize>, count: usize) {
    let mut counter = counter.subscribe();
    let reached = counter.wait_for(|so_far| *so_far >= count);
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect("it never happened").unwrap();
}

async fn answer(State(inner): State<Inner>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let path = parts.uri.path_and_query().unwrap().as_str().to_owned();
    assert_eq!(parts.headers.get(header::CONTENT_TYPE).unwrap(), "application/json");
    let asked = Asked { path, headers: parts.headers, body: serde_json::from_slice(&body).unwrap() };
    inner.asked.lock().push(asked);
    inner.heard.send_modify(|count| *count += 1);
    let answer = {
        let mut answers = inner.answers.lock();
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    };
    answer.unwrap().send(inner.gone).await
}

/// Asks again at once, three times.
pub fn settings(spoken: impl Into<Spoken>, port: u16) -> ProviderSettings {
    let Spoken(kind, wire) = spoken.into();
    ProviderSettings {
        kind,
        wire,
        base_url: Some(format!("http://127.0.0.1:{port}/hidden/v1")),
        api_key: Some(KEY.into()),
        retry_pause_ms: 1,
        ..ProviderSettings::default()
    }
}

pub fn request(raw: Value) -> ModelRequest {
    let mut whole =
        json!({"provider": "p", "model": "m", "messages": [{"role": "user", "content": "the secret plan"}]});
    whole.as_object_mut().unwrap().extend(raw.as_object().unwrap().clone());
    let semantic = Arc::new(SemanticRequest::read(whole.as_object().unwrap()).unwrap());
    ModelRequest {
        key: "run_1/n/1/1".to_owned(),
        node: "n".into(),
        semantic,
        timeout_ms: None,
        trace: TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        reasoning: false,
        cap: None,
    }
}

#[derive(Default)]
pub struct Notes(Mutex<Vec<Delta>>);

impl DeltaSink for Notes {
    fn push(&self, delta: Delta) {
        self.0.lock().push(delta);
    }
}

impl Notes {
    pub fn text(&self) -> String {
        let text = |delta: &Delta| if let Delta::Text(text) = delta { text.clone() } else { String::new() };
        self.0.lock().iter().map(text).collect()
    }

    pub fn count(&self) -> usize {
        self.0.lock().len()
    }
}

pub fn provider(settings: &ProviderSettings) -> Arc<dyn Provider> {
    build("p", settings).unwrap()
}

/// One call, and what was heard of its answer.
pub async fn call(settings: &ProviderSettings, request: &ModelRequest) -> (Result<ModelReply, ProviderFault>, Notes) {
    let notes = Notes::default();
    let answer = provider(settings).call(request, &notes).await;
    (answer, notes)
}

/// What is spoken with a provider.
#[derive(Clone, Copy)]
pub struct Spoken(pub ProviderKind, pub WireFormat);

impl From<ProviderKind> for Spoken {
    fn from(kind: ProviderKind) -> Self {
        Self(kind, WireFormat::Chat)
    }
}

impl From<&Speech> for Spoken {
    fn from(speech: &Speech) -> Self {
        Self(speech.kind, speech.wire)
    }
}

/// One vendor and how it says things.
pub struct Speech {
    pub kind: ProviderKind,
    pub wire: WireFormat,
    /// "Hello", in two pieces.
    pub stream: Vec<Value>,
    pub whole: Value,
}

pub fn all() -> [Speech; 4] {
    [openai(), responses(), anthropic(), gemini()]
}

pub fn responses() -> Speech {
    let whole = json!({
        "object": "response", "status": "completed", "model": "m", "error": null,
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    });
    let text = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
    let begun = json!({"object": "response", "status": "in_progress", "model": "m", "output": []});
    Speech {
        kind: ProviderKind::OpenAi,
        wire: WireFormat::Responses,
        stream: vec![
            json!({"type": "response.created", "response": begun}),
            text("Hel"),
            text("lo"),
            json!({"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]}),
            json!({"type": "response.completed", "response": whole}),
        ],
        whole,
    }
}

pub fn openai() -> Speech {
    let chunk = |delta: Value, end: Value| json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3});
    Speech {
        kind: ProviderKind::OpenAi,
        wire: WireFormat::Chat,
        stream: vec![
            chunk(json!({"role": "assistant", "content": "Hel"}), Value::Null),
            chunk(json!({"content": "lo"}), Value::Null),
            chunk(json!({}), json!("stop")),
            json!({"model": "m", "choices": [], "usage": usage}),
        ],
        whole: json!({"model": "m", "usage": usage, "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hello", "refusal": null}, "finish_reason": "stop"},
        ]}),
    }
}

pub fn anthropic() -> Speech {
    let text =
        |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    Speech {
        kind: ProviderKind::Anthropic,
        wire: WireFormat::Chat,
        stream: vec![
            json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            text("Hel"),
            text("lo"),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ],
        whole: json!({
            "type": "message", "model": "m", "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }),
    }
}

pub fn gemini() -> Speech {
    let usage = json!({"promptTokenCount": 7, "candidatesTokenCount": 3});
    let text = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]});
    Speech {
        kind: ProviderKind::Gemini,
        wire: WireFormat::Chat,
        stream: vec![
            text("Hel"),
            text("lo"),
            json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage, "modelVersion": "m"}),
        ],
        whole: json!({
            "candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}],
            "usageMetadata": usage, "modelVersion": "m",
        }),
    }
}
