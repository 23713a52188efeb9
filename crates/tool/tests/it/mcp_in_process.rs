//! The client of the Model Context Protocol against a real server, over a pair of pipes. Time stands still while
//! anything happens, so that nothing here depends on how fast the machine is.

use crate::support;
use crate::test_server;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use baton_model::tool::{OutcomePolicy, SafetyTier, Transport};
use baton_tool::mcp::{InProcess, McpServer, McpSettings, McpStatus, Stream};
use baton_tool::{SecretTable, ToolSet, ToolSource as _, Toolbox};
use parking_lot::Mutex;
use rmcp::ServiceExt as _;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use support::*;
use test_server::{CANARY, TestServer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinHandle;

const OLD: &[ProtocolVersion] = &[ProtocolVersion::V_2025_06_18];

/// Serves a workshop to whoever opens a connection, unless it is closed for now.
#[derive(Default)]
struct Door {
    test_server: TestServer,
    opened: AtomicUsize,
    closed: Mutex<bool>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl Door {
    fn of(revisions: &'static [ProtocolVersion]) -> Arc<Self> {
        Arc::new(Self { test_server: TestServer { revisions, ..TestServer::default() }, ..Self::default() })
    }

    /// Cuts the connection, as a crash would.
    fn crash(&self) {
        self.serving.lock().take().unwrap().abort();
    }
}

#[async_trait]
impl InProcess for Door {
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        if *self.closed.lock() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.opened.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let test_server = self.test_server.clone();
        *self.serving.lock() = Some(tokio::spawn(async move {
            // Ends, or is aborted, with everything in it: a crash leaves nothing running.
            if let Ok(service) = test_server.serve(theirs).await {
                let _ = service.waiting().await;
            }
        }));
        Ok(Box::new(ours))
    }
}

fn settings(more: Value) -> McpSettings {
    serde_json::from_value(more).unwrap()
}

async fn connect(door: &Arc<Door>, more: Value) -> (Arc<McpServer>, Toolbox) {
    let secrets = Arc::new(SecretTable::default().with("CANARY", CANARY, [], None));
    let server = McpServer::in_process("shop", settings(more), secrets, Arc::clone(door) as _).unwrap();
    server.tried().await;
    let toolbox = Toolbox::new(ToolSet::default().source(Arc::clone(&server) as _).unwrap());
    (server, toolbox)
}

fn ids(server: &McpServer) -> Vec<String> {
    let mut ids: Vec<_> = server.tools().iter().map(|tool| tool.spec().id.clone()).collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn both_sides_agree_on_the_newest_revision_they_share() {
    for (revisions, pinned, agreed) in [
        (ProtocolVersion::KNOWN_VERSIONS, "auto", Some("2026-07-28")),
        (OLD, "auto", Some("2025-06-18")),
        (ProtocolVersion::KNOWN_VERSIONS, "2025-03-26", Some("2025-03-26")),
        (ProtocolVersion::KNOWN_VERSIONS, "2026-07-28", Some("2026-07-28")),
        // No silent downgrade from what the operator insists on.
        (OLD, "2026-07-28", None),
        (OLD, "2025-11-25", None),
    ] {
        let (server, _) = connect(&Door::of(revisions), json!({"revision": pinned})).await;
        match (server.status(), agreed) {
            (McpStatus::Connected { revision }, Some(agreed)) => assert_eq!(revision, agreed),
            (McpStatus::Disconnected { .. }, None) => assert!(server.tools().is_empty()),
            (status, _) => panic!("{pinned} with {revisions:?}: {status:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_as_the_operator_says_they_are() {
    let overrides = json!({"tools": {
        "texts": {"tier": "read", "scopes": ["shop:read"], "stub": {"text": "stub"}},
        "fail": {"outcome_policy": "fail"},
    }});
    let (server, toolbox) = connect(&Door::of(OLD), overrides).await;
    assert_eq!(
        ids(&server),
        ["big", "echo", "fail", "grow", "hang", "reject", "texts"].map(|name| format!("mcp:shop.{name}"))
    );
    let tenant = "acme".into();
    let spec = |name: &str| toolbox.offered(&tenant, &[format!("mcp:shop.{name}")]).pop().unwrap();
    // The server calls it read-only; nobody believes it.
    let echo = spec("echo");
    assert_eq!(
        (echo.tier, echo.outcome_policy, echo.transport),
        (SafetyTier::Write, OutcomePolicy::Ask, Transport::Mcp)
    );
    assert_eq!(
        (echo.description.as_str(), &echo.input_schema["properties"]),
        ("Says it again.", &json!({"x": {"type": "string"}}))
    );
    let texts = spec("texts");
    assert_eq!((texts.tier, texts.outcome_policy), (SafetyTier::Read, OutcomePolicy::Retry));
    assert_eq!((texts.scopes, texts.stub), (vec!["shop:read".to_owned()], Some(json!({"text": "stub"}))));
    assert!(texts.description.chars().count() <= 2001 && texts.description.ends_with('…'));
    assert_eq!(spec("fail").outcome_policy, OutcomePolicy::Fail);
    assert_eq!(toolbox.offered(&tenant, &["mcp:shop".to_owned()]).len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_call_carries_its_key_and_trace_and_its_result_no_secret() {
    for revisions in [OLD, ProtocolVersion::KNOWN_VERSIONS] {
        let (_server, toolbox) = connect(&Door::of(revisions), json!({})).await;
        let echoed = value(toolbox.call(&request("mcp:shop.echo", json!({"x": "hello"}))).await);
        assert_eq!((&echoed["arguments"], &echoed["token"]), (&json!({"x": "hello"}), &json!("[REDACTED:CANARY]")));
        let meta = &echoed["meta"];
        assert_eq!(meta["io.baton/idempotencyKey"], json!("run_1/agent/1/call_1"), "{meta}");
        assert_eq!(meta["traceparent"], json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        assert_eq!(meta["tracestate"], json!("vendor=1"));
        let joined = value(toolbox.call(&request("mcp:shop.texts", Value::Null)).await);
        assert_eq!(joined, json!("one\n[image, image/png]\n[REDACTED:CANARY]"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_has_a_code_and_no_secret() {
    let door = Door::of(ProtocolVersion::KNOWN_VERSIONS);
    let (_server, toolbox) = connect(&door, json!({})).await;
    for (tool, arguments, code, hint) in [
        ("mcp:shop.fail", json!({}), "mcp_tool_invocation_failed", "no such row"),
        ("mcp:shop.reject", json!({}), "mcp_tool_invocation_failed", "nothing here"),
        ("mcp:shop.big", json!({}), "mcp_tool_invocation_failed", "was called, but its result has 307200 bytes"),
        ("mcp:shop.none", json!({}), "mcp_tool_not_found", "has no tool"),
        ("mcp:other.echo", json!({}), "mcp_server_not_found", "no MCP server other"),
        ("openwop:none", json!({}), "not_found", "no tool"),
        ("mcp:shop.echo", json!([1]), "validation_error", "must be an object"),
    ] {
        let failed = fault(toolbox.call(&request(tool, arguments)).await);
        assert!(failed.code == code && failed.message.contains(hint), "{tool}: {failed:?}");
        assert!(!format!("{failed:?}").contains(CANARY), "{failed:?}");
    }
    assert_eq!(door.opened.load(Ordering::SeqCst), 1, "none of this costs the connection");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_in_time_and_unknown() {
    let door = Door::of(ProtocolVersion::KNOWN_VERSIONS);
    let (_server, toolbox) = connect(&door, json!({"timeout_ms": 5000})).await;
    let start = tokio::time::Instant::now();
    assert!(unknown(toolbox.call(&request("mcp:shop.hang", json!({}))).await).contains("did not answer in time"));
    assert_eq!(start.elapsed().as_secs(), 5);
    // A request may ask for less, not for more.
    for (asked, took) in [(1000, 1), (60_000, 5)] {
        let mut request = request("mcp:shop.hang", json!({}));
        request.timeout_ms = Some(asked);
        let start = tokio::time::Instant::now();
        unknown(toolbox.call(&request).await);
        assert_eq!(start.elapsed().as_secs(), took);
    }
    value(toolbox.call(&request("mcp:shop.echo", json!({}))).await);
}

#[tokio::test(start_paused = true)]
async fn a_cut_connection_leaves_the_outcome_unknown_and_is_made_again() {
    let door = Door::of(ProtocolVersion::KNOWN_VERSIONS);
    let (_server, toolbox) = connect(&door, json!({})).await;
    let hanging = request("mcp:shop.hang", json!({}));
    let cut = async {
        door.test_server.hanging.notified().await;
        door.crash();
    };
    let (called, ()) = tokio::join!(toolbox.call(&hanging), cut);
    assert!(unknown(called).contains("cut before an answer came"));
    assert_eq!(door.test_server.calls.load(Ordering::SeqCst), 1, "what may have happened is not made to happen again");
    value(toolbox.call(&request("mcp:shop.echo", json!({}))).await);
    assert_eq!(door.opened.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_keeps_its_tools_and_comes_back() {
    let door = Door::of(ProtocolVersion::KNOWN_VERSIONS);
    let (server, toolbox) = connect(&door, json!({})).await;
    *door.closed.lock() = true;
    door.crash();
    eventually(|| matches!(server.status(), McpStatus::Disconnected { .. }).then_some(())).await;
    let away = fault(toolbox.call(&request("mcp:shop.echo", json!({}))).await);
    assert_eq!((away.code.as_str(), away.retryable), ("mcp_server_disconnected", Some(true)));
    assert_eq!(ids(&server).len(), 7, "agents do not change with the weather");
    assert_eq!(door.test_server.calls.load(Ordering::SeqCst), 0);
    // However long it was away, it is not away for longer than the longest wait once it is back.
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    *door.closed.lock() = false;
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    value(toolbox.call(&request("mcp:shop.echo", json!({}))).await);
    assert!(matches!(server.status(), McpStatus::Connected { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_asked_for_again() {
    for revisions in [OLD, ProtocolVersion::KNOWN_VERSIONS] {
        let (server, toolbox) = connect(&Door::of(revisions), json!({})).await;
        assert!(!ids(&server).contains(&"mcp:shop.grown".to_owned()));
        value(toolbox.call(&request("mcp:shop.grow", json!({}))).await);
        eventually(|| ids(&server).contains(&"mcp:shop.grown".to_owned()).then_some(())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_taken_out_of_use_is_not_called() {
    let door = Door::of(ProtocolVersion::KNOWN_VERSIONS);
    let (server, _) = connect(&door, json!({})).await;
    let tool = server.tools().pop().unwrap();
    drop(server);
    assert_eq!(fault(tool.call(&request("mcp:shop.grow", json!({}))).await).code, "mcp_server_disconnected");
    let (server, toolbox) = connect(&door, json!({})).await;
    server.close().await;
    assert!(matches!(server.status(), McpStatus::Disconnected { .. }));
    assert_eq!(fault(toolbox.call(&request("mcp:shop.echo", json!({}))).await).code, "mcp_server_disconnected");
}

/// Speaks just enough of the protocol to be listed, and answers calls with whatever it likes.
struct Rude {
    answer: fn(Value) -> Vec<u8>,
    opened: AtomicUsize,
}

#[async_trait]
impl InProcess for Rude {
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(rude(theirs, self.answer));
        Ok(Box::new(ours))
    }
}

async fn rude(stream: DuplexStream, answer: fn(Value) -> Vec<u8>) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = message["id"].clone();
        let say = |result: Value| format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})).into_bytes();
        let said = match message["method"].as_str().unwrap_or_default() {
            "initialize" => say(json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "rude", "version": "0"},
            })),
            "tools/list" => say(json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})),
            "tools/call" => answer(id),
            "notifications/initialized" | "notifications/cancelled" => continue,
            _ => format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "?"}}))
                .into_bytes(),
        };
        if write.write_all(b"this is not JSON\n").await.is_err() || write.write_all(&said).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rude_server_is_put_up_with_in_bounds() {
    let call = async |answer: fn(Value) -> Vec<u8>| {
        let server = Arc::new(Rude { answer, opened: AtomicUsize::new(0) });
        let client = McpServer::in_process(
            "rude",
            settings(json!({})),
            Arc::new(SecretTable::default()),
            Arc::clone(&server) as _,
        );
        let client = client.unwrap();
        client.tried().await;
        let tool = client.tools().pop().unwrap();
        let called = tool.call(&request("mcp:rude.t", json!({}))).await;
        (called, client, server)
    };
    // A message without end costs the connection, at once, and not the memory.
    let (called, client, server) = call(|_| vec![b'x'; 9 * 1024 * 1024]).await;
    assert!(unknown(called).contains("cut before an answer came"));
    eventually(|| (server.opened.load(Ordering::SeqCst) == 2).then_some(())).await;
    drop(client);
    // An answer of another shape is an answer, though not a result.
    let (called, ..) =
        call(|id| format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}})).into_bytes()).await;
    assert_eq!(fault(called).code, "mcp_tool_invocation_failed");
    // An answer that asks back, which this host does not offer.
    let (called, ..) = call(|id| {
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", "requestState": "s"}})
        )
        .into_bytes()
    })
    .await;
    assert!(fault(called).message.contains("asks its caller for input"));
}
