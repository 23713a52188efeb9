//! What the tests of this crate share.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use baton_model::tool::{ToolFault, ToolOutcome, ToolRequest};
use baton_model::{TenantId, TraceContext};
use baton_tool::Called;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Long enough for a loaded machine; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// Asks again and again until the answer is there.
pub(crate) async fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    soon(async {
        loop {
            if let Some(answer) = ask() {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

pub(crate) fn request(tool: &str, arguments: Value) -> ToolRequest {
    ToolRequest {
        key: "run_1/agent/1/call_1".to_owned(),
        tool: tool.to_owned(),
        arguments,
        tenant: TenantId::new("acme"),
        principal: "key_1".to_owned(),
        scopes: None,
        trace: Some(TraceContext {
            parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
            state: Some("vendor=1".to_owned()),
        }),
        timeout_ms: None,
        runner: Default::default(),
        beside: Default::default(),
    }
}

pub(crate) fn done(called: Called) -> ToolOutcome {
    match called {
        Called::Done(outcome) => outcome,
        Called::Unknown { reason } => panic!("unknown: {reason}"),
    }
}

pub(crate) fn value(called: Called) -> Value {
    let outcome = done(called);
    assert_eq!(outcome.error, None);
    outcome.value
}

pub(crate) fn fault(called: Called) -> ToolFault {
    done(called).error.expect("it should have failed")
}

pub(crate) fn unknown(called: Called) -> String {
    match called {
        Called::Unknown { reason } => reason,
        Called::Done(outcome) => panic!("done: {outcome:?}"),
    }
}

/// A listener on this machine, and its address.
pub(crate) async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Whether no connection was made to a listener.
pub(crate) fn nobody_came(listener: TcpListener) -> bool {
    listener.into_std().unwrap().accept().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Reads one HTTP request, head and body.
pub(crate) async fn hear(stream: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&heard).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return text;
            }
        }
        let read = stream.read(&mut chunk).await.unwrap();
        assert!(read > 0, "the connection ended in the middle of a request: {text}");
        heard.extend_from_slice(&chunk[..read]);
    }
}

/// Answers with these bytes, and closes.
pub(crate) async fn say(mut stream: TcpStream, answer: &[u8]) {
    stream.write_all(answer).await.unwrap();
    stream.shutdown().await.unwrap();
}

/// An answer with a body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len())
        .into_bytes()
}

/// Collects the warnings of this crate that are given on this thread.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// From now on, until the guard is dropped.
    pub(crate) fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        let warnings = Self::default();
        let guard = tracing::subscriber::set_default(warnings.clone());
        (warnings, guard)
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN && metadata.target().starts_with("baton_tool")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Said(String);
        impl tracing::field::Visit for Said {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{}={value:?} ", field.name()));
            }
        }
        let mut said = Said(String::new());
        event.record(&mut said);
        self.0.lock().push(said.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
