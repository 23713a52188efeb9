//! A host over the in-memory store behind the real router, without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub)]

pub mod agents;
pub mod protocol;
pub mod served;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use baton_conformance::Conformance;
use baton_runtime::{Host, Options};
use baton_server::{Keys, ServerOptions, router_with};
use baton_store::MemoryStore;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Nothing in these tests takes longer than this unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub struct Site {
    pub router: Router,
    pub host: Host,
    pub shutdown: CancellationToken,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
    /// Of the body as it was sent; its text is lossy where that was no text.
    pub size: usize,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks that this is a refusal in the closed envelope, and gives its details.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        let body = self.json();
        assert_eq!(body["error"], code, "{body}");
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        let members = body.as_object().unwrap();
        assert!(members.keys().all(|key| ["error", "message", "details"].contains(&key.as_str())), "{body}");
        body["details"].clone()
    }
}

impl Site {
    /// Keys: `full` (all scopes of acme), `reader` (runs:read of acme), `other` (all scopes of another tenant),
    /// `operator` (all of acme, and what reaches beyond a tenant).
    pub async fn open() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let host = Host::open(Arc::new(MemoryStore::new()), host_options()).await.unwrap();
        Self::over(host, change)
    }

    /// The same over a store that the test has a hand on.
    pub async fn on(store: &Arc<MemoryStore>) -> Self {
        let host = Host::open(Arc::clone(store) as _, host_options()).await.unwrap();
        Self::over(host, |_| {})
    }

    /// The same over a host with other options.
    pub async fn configured(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = host_options();
        change(&mut options);
        let host = Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        Self::over(host, |_| {})
    }

    pub fn over(host: Host, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options =
            ServerOptions { keys: Keys::parse(KEYS).unwrap(), max_body_bytes: 64 * 1024, ..ServerOptions::default() };
        let mode = Conformance::of(&host).ok();
        options.test_capabilities = mode.as_ref().map(|mode| mode.capabilities());
        change(&mut options);
        let shutdown = CancellationToken::new();
        let beside = mode.map(|_| baton_conformance::routes()).unwrap_or_default();
        let router = router_with(host.clone(), options, beside, shutdown.clone());
        Self { router, host, shutdown }
    }

    pub async fn raw(&self, request: Request<Body>) -> Response {
        let answer = tokio::time::timeout(PATIENCE, self.router.clone().oneshot(request)).await;
        answer.expect("the host answers in time").unwrap()
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.raw(request.body(body.into()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = tokio::time::timeout(PATIENCE, to_bytes(body, usize::MAX)).await.expect("the body ends").unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { status: parts.status, headers: parts.headers, text, size: bytes.len() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[FULL, JSON], Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[FULL], body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, &[FULL], body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[FULL], Body::empty()).await
    }

    pub async fn keyed(&self, key: &str, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[FULL, ("idempotency-key", key)], body.to_string()).await
    }

    /// Registers a workflow of one node named `n`.
    pub async fn register(&self, id: &str, type_id: &str, config: Value) {
        let definition = json!({
            "id": id, "name": id, "version": "1", "edges": [], "triggers": [], "variables": [], "metadata": {},
            "settings": {},
            "nodes": [{"id": "n", "typeId": type_id, "name": "n", "position": {"x": 0, "y": 0}, "config": config, "inputs": {}}],
        });
        let answer = self.post("/v1/workflows", definition).await;
        assert!(answer.status.is_success(), "{}", answer.text);
    }

    /// Registers a workflow whose nodes follow each other; each is `(id, type, config)`.
    pub async fn register_chain(&self, id: &str, nodes: &[(&str, &str, Value)]) {
        let drawn: Vec<Value> = nodes
            .iter()
            .map(|(id, type_id, config)| {
                json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
            })
            .collect();
        let edges: Vec<Value> = nodes
            .windows(2)
            .enumerate()
            .map(|(i, pair)| json!({"id": format!("e{i}"), "sourceNodeId": pair[0].0, "targetNodeId": pair[1].0}))
            .collect();
        let definition = json!({
            "id": id, "name": id, "version": "1", "nodes": drawn, "edges": edges, "triggers": [], "variables": [],
            "metadata": {}, "settings": {},
        });
        let answer = self.post("/v1/workflows", definition).await;
        assert!(answer.status.is_success(), "{}", answer.text);
    }

    /// Starts a run and waits for its end.
    pub async fn completed(&self, workflow: &str) -> String {
        let run = self.start(workflow).await;
        self.reach(&run, "completed").await;
        run
    }

    /// Forks a run that can be forked, and waits for the fork's end.
    pub async fn forked(&self, run: &str, body: Value, status: &str) -> String {
        let answer = self.post(&format!("/v1/runs/{run}:fork"), body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let fork = answer.json()["runId"].as_str().unwrap().to_owned();
        self.reach(&fork, status).await;
        fork
    }

    /// The workflows of the conformance mode.
    pub async fn conforming() -> Self {
        Self::configured(|options| options.test_hooks = Conformance::hooks()).await
    }

    /// The whole log.
    pub async fn log(&self, run: &str) -> Vec<Value> {
        let answer = self.get(&format!("/v1/runs/{run}/events")).await;
        answer.json()["events"].as_array().unwrap().clone()
    }

    pub async fn start(&self, workflow: &str) -> String {
        let answer = self.post("/v1/runs", json!({"workflowId": workflow})).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["runId"].as_str().unwrap().to_owned()
    }

    /// Follows the log by long polls until the run is in `status`.
    pub async fn reach(&self, run: &str, status: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut after = String::new();
        loop {
            let page = self.get(&format!("/v1/runs/{run}/events/poll?timeout=1{after}")).await.json();
            if page["runStatus"] == status {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{run} is {} and not {status}", page["runStatus"]);
            after = format!("&lastSequence={}", page["lastEventSeq"]);
        }
    }
}

pub fn host_options() -> Options {
    Options { link_secrets: vec![b"test-secret".to_vec()], ..Options::default() }
}

const KEYS: &str = "full:acme,reader:acme:runs:read,other:elsewhere,operator:acme:*+host:operate";

pub const FULL: (&str, &str) = ("authorization", "Bearer full");
pub const READER: (&str, &str) = ("authorization", "Bearer reader");
pub const OTHER: (&str, &str) = ("authorization", "Bearer other");
pub const OPERATOR: (&str, &str) = ("authorization", "Bearer operator");
pub const JSON: (&str, &str) = ("accept", "application/json");

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub id: u64,
    pub event: String,
    pub data: Value,
}

/// Reads frames as they come.
pub struct Frames {
    body: axum::body::BodyDataStream,
    text: String,
}

impl Frames {
    pub fn new(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next event; `None` when the server closed the stream.
    pub async fn next(&mut self) -> Option<Frame> {
        self.read(parse).await
    }

    /// The next event, also one without an id; the id is then 0.
    pub async fn any(&mut self) -> Option<Frame> {
        self.read(|block| parse(block).or_else(|| parse(&format!("id: 0\n{block}")))).await
    }

    async fn read(&mut self, parse: fn(&str) -> Option<Frame>) -> Option<Frame> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                if let Some(frame) = parse(&block) {
                    return Some(frame);
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("the stream moves")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    pub async fn all(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn parse(block: &str) -> Option<Frame> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Some(Frame {
        id: field("id")?.parse().unwrap(),
        event: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).unwrap(),
    })
}

/// Reads what is sent on a stream as it comes, keepalives and all.
pub struct Texts(axum::body::BodyDataStream);

impl Texts {
    pub async fn next(&mut self) -> Option<String> {
        let chunk = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("the stream moves")?;
        Some(String::from_utf8(chunk.unwrap().to_vec()).unwrap())
    }
}

impl Site {
    pub async fn texts(&self, path: &str, headers: &[(&str, &str)]) -> Texts {
        let mut request = Request::builder().uri(path).header(FULL.0, FULL.1);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Texts(self.raw(request.body(Body::empty()).unwrap()).await.into_body().into_data_stream())
    }

    pub async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Frames {
        let mut request = Request::builder().uri(path).header(FULL.0, FULL.1).header("accept", "text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Frames::new(self.raw(request.body(Body::empty()).unwrap()).await)
    }
}
