//! Servers over streamable HTTP, on this machine.

use crate::support;
use crate::test_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use baton_tool::mcp::{McpServer, McpSettings, McpStatus};
use baton_tool::{SecretTable, ToolSet, ToolSource as _, Toolbox};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use support::*;
use test_server::{CANARY, TestServer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Serves a workshop to whoever brings the token.
fn serve(listener: TcpListener, test_server: TestServer) -> JoinHandle<()> {
    serve_with(listener, test_server, Arc::default())
}

fn serve_with(listener: TcpListener, test_server: TestServer, sessions: Arc<LocalSessionManager>) -> JoinHandle<()> {
    let service =
        StreamableHttpService::new(move || Ok(test_server.clone()), sessions, StreamableHttpServerConfig::default());
    let guarded = from_fn(async |request: Request, next: Next| {
        let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if token == Some(&format!("Bearer {CANARY}")) {
            next.run(request).await
        } else {
            StatusCode::UNAUTHORIZED.into_response()
        }
    });
    let router = Router::new().fallback_service(service).layer(guarded);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() })
}

fn settings(address: &str, more: Value) -> McpSettings {
    let mut all = json!({"url": format!("http://{address}/mcp"), "bearer": "TOKEN"});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

async fn connect(address: &str, more: Value) -> (Arc<McpServer>, Toolbox) {
    let secrets =
        Arc::new(SecretTable::default().with("TOKEN", CANARY, [], None).with("WRONG", "another-token", [], None));
    let server = McpServer::start("shop", settings(address, more), secrets).unwrap();
    soon(server.tried()).await;
    let toolbox = Toolbox::new(ToolSet::default().source(Arc::clone(&server) as _).unwrap());
    (server, toolbox)
}

#[tokio::test]
async fn tools_are_called_over_http_in_both_ways_of_speaking() {
    let (listener, address) = listen().await;
    let _serving = serve(listener, TestServer::default());
    for revision in ["auto", "2025-06-18"] {
        let (server, toolbox) = connect(&address, json!({"revision": revision})).await;
        let expected = if revision == "auto" { "2026-07-28" } else { revision };
        assert_eq!(server.status(), McpStatus::Connected { revision: expected.to_owned() });
        let echoed = value(soon(toolbox.call(&request("mcp:shop.echo", json!({"x": "hello"})))).await);
        assert_eq!((&echoed["arguments"], &echoed["token"]), (&json!({"x": "hello"}), &json!("[REDACTED:TOKEN]")));
        assert_eq!(echoed["meta"]["io.baton/idempotencyKey"], json!("run_1/agent/1/call_1"));
        assert_eq!(
            fault(soon(toolbox.call(&request("mcp:shop.fail", json!({})))).await).code,
            "mcp_tool_invocation_failed"
        );
        value(soon(toolbox.call(&request("mcp:shop.grow", json!({})))).await);
        eventually(|| server.tools().iter().any(|tool| tool.spec().id == "mcp:shop.grown").then_some(())).await;
    }
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_made_again() {
    let (listener, address) = listen().await;
    let (test_server, sessions) = (TestServer::default(), Arc::new(LocalSessionManager::default()));
    let _serving = serve_with(listener, test_server.clone(), Arc::clone(&sessions));
    let (_server, toolbox) = connect(&address, json!({"revision": "2025-06-18"})).await;
    value(soon(toolbox.call(&request("mcp:shop.echo", json!({})))).await);
    // As after a restart of the server: it answers that it knows no such session, so nothing was done.
    sessions.sessions.write().await.clear();
    value(soon(toolbox.call(&request("mcp:shop.echo", json!({})))).await);
    assert_eq!((test_server.calls.load(Ordering::SeqCst), sessions.sessions.read().await.len()), (2, 1));
}

#[tokio::test]
async fn a_wrong_credential_is_said_to_be_wrong() {
    let (listener, address) = listen().await;
    let _serving = serve(listener, TestServer::default());
    let (server, _) = connect(&address, json!({"bearer": "WRONG"})).await;
    assert_eq!(server.status(), McpStatus::Disconnected { reason: "it wants another credential".to_owned() });
    let (server, _) = connect(&address, json!({"bearer": "NONE"})).await;
    assert_eq!(server.status(), McpStatus::Disconnected { reason: "a secret that it needs is not known".to_owned() });
}

/// What a server says to a call.
type Mood = fn() -> Vec<u8>;

/// What a server says to everything but calls.
fn ordinary(message: &Value) -> Option<Vec<u8>> {
    let json = |result: Value| {
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        answer("200 OK", "Content-Type: application/json\r\n", &body)
    };
    Some(match message["method"].as_str() {
        None => answer("405 Method Not Allowed", "", ""),
        Some("server/discover") => answer("400 Bad Request", "", "what?"),
        Some("initialize") => json(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "moody", "version": "0"},
        })),
        Some("tools/list") => json(json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})),
        Some("tools/call") => return None,
        Some(_) => answer("202 Accepted", "", ""),
    })
}

/// What a request says.
async fn heard(stream: &mut TcpStream) -> Value {
    let heard = hear(stream).await;
    heard.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()).unwrap_or_default()
}

/// A server that answers everything but calls: those it hears and then does something else.
async fn moody(listener: TcpListener, mood: Mood) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let said = ordinary(&heard(&mut stream).await).unwrap_or_else(mood);
            // The client may have had enough before all is said.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, &said).await;
        });
    }
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_unknown() {
    let large = || {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
        [head.as_bytes(), &vec![b' '; 9 * 1024 * 1024]].concat()
    };
    let endless = || {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ";
        [head.as_bytes(), &vec![b'x'; 9 * 1024 * 1024]].concat()
    };
    let moods: [(Mood, &str); 6] = [
        (Vec::new, "cut before an answer came"),
        (|| b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{".to_vec(), "cut off"),
        (|| answer("502 Bad Gateway", "", "upstream"), "server error"),
        (|| answer("200 OK", "Content-Type: text/event-stream\r\n", ": nothing\n\n"), "cut before an answer came"),
        (large, "too large"),
        (endless, "cut before an answer came"),
    ];
    for (mood, hint) in moods {
        let (listener, address) = listen().await;
        let serving = tokio::spawn(moody(listener, mood));
        let (_server, toolbox) = connect(&address, json!({})).await;
        let reason = unknown(soon(toolbox.call(&request("mcp:shop.t", json!({})))).await);
        assert!(reason.contains(hint), "{reason}, not {hint}");
        serving.abort();
    }
}

#[tokio::test]
async fn what_was_turned_down_or_never_sent_is_known() {
    let moods: [(Mood, &str); 2] = [
        (|| answer("400 Bad Request", "", "no"), "HTTP 400"),
        (
            || {
                let error = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such tool"}}"#;
                answer("400 Bad Request", "Content-Type: application/json\r\n", error)
            },
            "no such tool",
        ),
    ];
    for (mood, hint) in moods {
        let (listener, address) = listen().await;
        let serving = tokio::spawn(moody(listener, mood));
        let (server, toolbox) = connect(&address, json!({})).await;
        let refused = fault(soon(toolbox.call(&request("mcp:shop.t", json!({})))).await);
        assert!(refused.code == "mcp_tool_invocation_failed" && refused.message.contains(hint), "{refused:?}");
        serving.abort();
        let _ = serving.await;
        // Nobody is there any more.
        let away = fault(soon(toolbox.call(&request("mcp:shop.t", json!({})))).await);
        assert_eq!(away.code, "mcp_server_disconnected", "{away:?}");
        eventually(|| matches!(server.status(), McpStatus::Disconnected { .. }).then_some(())).await;
    }
}

#[tokio::test]
async fn a_call_that_is_never_answered_does_not_keep_its_connection() {
    let (listener, address) = listen().await;
    let (ended, mut endings) = tokio::sync::mpsc::channel(8);
    let _serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let ended = ended.clone();
            tokio::spawn(async move {
                match ordinary(&heard(&mut stream).await) {
                    Some(said) => say(stream, &said).await,
                    None => {
                        // Until the other side hangs up.
                        let end = tokio::io::AsyncReadExt::read(&mut stream, &mut [0]).await;
                        let _ = ended.send(matches!(end, Ok(0) | Err(_))).await;
                    }
                }
            });
        }
    });
    let (server, toolbox) = connect(&address, json!({"timeout_ms": 100})).await;
    for _ in 0..3 {
        unknown(soon(toolbox.call(&request("mcp:shop.t", json!({})))).await);
    }
    for _ in 0..3 {
        assert_eq!(soon(endings.recv()).await, Some(true));
    }
    assert!(matches!(server.status(), McpStatus::Connected { .. }), "and not because the session is over");
}

/// What a server says to whoever opens its stream of events.
type Events = fn() -> Vec<u8>;

/// A server with sessions, whose streams of events do not last. Counts how often one was opened.
async fn fleeting(listener: TcpListener, events: Events, opened: Arc<AtomicUsize>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let opened = Arc::clone(&opened);
        tokio::spawn(async move {
            let message = heard(&mut stream).await;
            let json = |result: Value| {
                let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
                answer("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: s\r\n", &body)
            };
            let said = match message["method"].as_str() {
                None => {
                    opened.fetch_add(1, Ordering::SeqCst);
                    events()
                }
                Some("initialize") => json(json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fleeting", "version": "0"},
                })),
                Some("tools/call") => json(json!({"content": [{"type": "text", "text": "done"}]})),
                Some(_) => ordinary(&message).unwrap(),
            };
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, &said).await;
        });
    }
}

/// Calls are the clock here: a stream that is opened again at once is opened about as often as calls are made.
#[tokio::test]
async fn a_stream_of_events_that_does_not_last_is_not_opened_again_and_again() {
    let broken = || {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}3\r\n: x").into_bytes()
    };
    let ended = || answer("200 OK", "Content-Type: text/event-stream\r\n", "retry: 0\nid: 1\ndata:\n\n");
    let moods: [Events; 2] = [broken, ended];
    for events in moods {
        let (listener, address) = listen().await;
        let opened = Arc::new(AtomicUsize::new(0));
        let serving = tokio::spawn(fleeting(listener, events, Arc::clone(&opened)));
        let (server, toolbox) = connect(&address, json!({"revision": "2025-11-25"})).await;
        eventually(|| (opened.load(Ordering::SeqCst) > 0).then_some(())).await;
        for _ in 0..500 {
            assert_eq!(value(soon(toolbox.call(&request("mcp:shop.t", json!({})))).await), json!("done"));
        }
        let opened = opened.load(Ordering::SeqCst);
        assert!(opened < 50, "opened {opened} times during 500 calls");
        assert!(matches!(server.status(), McpStatus::Connected { .. }), "and it is connected all the time");
        serving.abort();
    }
}
