//! A server that is a real child process: this very test binary, started once more and told to serve.

use crate::support;

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use baton_tool::mcp::{McpServer, McpSettings, McpStatus};
use baton_tool::{SecretTable, ToolSet, ToolSource as _, Toolbox};
use serde_json::{Value, json};
use support::*;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

const CANARY: &str = "canary-c0ffee11";
/// Where a child reports to; set for children only.
const HOME: &str = "BATON_TEST_HOME";
/// Set for what a child starts.
const GRANDCHILD: &str = "BATON_TEST_GRANDCHILD";

/// Not a test: what a child does. Its harness writes to standard output too, which a client has to put up with.
#[test]
fn child() {
    let Ok(home) = std::env::var(HOME) else { return };
    let mut line = TcpStream::connect(home).unwrap();
    if std::env::var(GRANDCHILD).is_ok() {
        // Until the connection ends, which it does only with this process.
        let _ = line.read(&mut [0]);
        return;
    }
    let me = std::env::current_exe().unwrap();
    let grandchild = Command::new(me).args(["mcp_stdio::child", "--exact"]).env(GRANDCHILD, "1").spawn();
    let mut grandchild = grandchild.unwrap();
    for message in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&message.unwrap()).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "child", "version": "1"},
            }),
            "tools/list" => json!({"tools": [
                {"name": "look", "inputSchema": {"type": "object"}},
                {"name": "die", "inputSchema": {"type": "object"}},
            ]}),
            "tools/call" if message["params"]["name"] == "die" => std::process::exit(3),
            "tools/call" => {
                let names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                let seen = json!({
                    "pid": std::process::id(), "names": names, "token": std::env::var("TOKEN").ok(), "plain": std::env::var("PLAIN").ok(),
                });
                json!({"content": [], "structuredContent": seen})
            }
            method if method.starts_with("notifications/") => continue,
            _ => {
                answer_line(
                    &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}),
                );
                continue;
            }
        };
        answer_line(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    }
    // Its input was closed: it ends by itself, and leaves nothing behind.
    grandchild.kill().unwrap();
    grandchild.wait().unwrap();
}

fn answer_line(message: &Value) {
    // The harness may have begun a line of its own.
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{message}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

async fn start(home: &str) -> (Arc<McpServer>, Toolbox) {
    let settings: McpSettings = serde_json::from_value(json!({
        "command": std::env::current_exe().unwrap(),
        "args": ["mcp_stdio::child", "--exact"],
        "env": {(HOME): home, "TOKEN": {"$secret": "TOKEN"}, "PLAIN": "plain"},
    }))
    .unwrap();
    let secrets = Arc::new(SecretTable::default().with("TOKEN", CANARY, [], None));
    let server = McpServer::start("child", settings, secrets).unwrap();
    soon(server.tried()).await;
    let toolbox = Toolbox::new(ToolSet::default().source(Arc::clone(&server) as _).unwrap());
    (server, toolbox)
}

/// The child and what it started report, in whatever order.
async fn reports(listener: &TcpListener) -> [tokio::net::TcpStream; 2] {
    soon(async { [listener.accept().await.unwrap().0, listener.accept().await.unwrap().0] }).await
}

/// Resolves when the process at the other end is gone.
async fn gone(mut line: tokio::net::TcpStream) {
    let ended = soon(line.read(&mut [0])).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn a_child_is_given_its_own_environment_and_nothing_of_ours() {
    let (listener, home) = listen().await;
    let (server, toolbox) = start(&home).await;
    assert_eq!(server.status(), McpStatus::Connected { revision: "2025-11-25".to_owned() });
    let seen = value(soon(toolbox.call(&request("mcp:child.look", json!({})))).await);
    // It got the secret; what shows of it is its name.
    assert_eq!((&seen["token"], &seen["plain"]), (&json!("[REDACTED:TOKEN]"), &json!("plain")));
    let names: Vec<_> = seen["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"PATH") && std::env::var("CARGO_MANIFEST_DIR").is_ok(), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    let [one, other] = reports(&listener).await;
    drop((server, toolbox));
    gone(one).await;
    gone(other).await;
}

#[tokio::test]
async fn a_child_that_dies_is_started_again() {
    let (listener, home) = listen().await;
    let (server, toolbox) = start(&home).await;
    let [one, other] = reports(&listener).await;
    let first = value(soon(toolbox.call(&request("mcp:child.look", json!({})))).await);
    let reason = unknown(soon(toolbox.call(&request("mcp:child.die", json!({})))).await);
    assert!(reason.contains("cut before an answer came"), "{reason}");
    let second = value(soon(toolbox.call(&request("mcp:child.look", json!({})))).await);
    assert_ne!(first["pid"], second["pid"]);
    gone(one).await;
    gone(other).await;
    // Asked to end, it does so by itself.
    let [one, other] = reports(&listener).await;
    soon(server.close()).await;
    gone(one).await;
    gone(other).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_to_be_missing() {
    let settings = |more: Value| serde_json::from_value::<McpSettings>(more).unwrap();
    let none: Arc<SecretTable> = Arc::default();
    let server = McpServer::start("none", settings(json!({"command": "/no/such/program"})), none.clone()).unwrap();
    soon(server.tried()).await;
    let McpStatus::Disconnected { reason } = server.status() else { panic!("{:?}", server.status()) };
    assert!(reason.contains("/no/such/program") && reason.contains("not found"), "{reason}");
    assert!(server.tools().is_empty());
    let secret = settings(json!({"command": "true", "env": {"A": {"$secret": "NONE"}}}));
    let server = McpServer::start("none", secret, none.clone()).unwrap();
    soon(server.tried()).await;
    assert_eq!(server.status(), McpStatus::Disconnected { reason: "a secret that it needs is not known".to_owned() });
    for (wrong, hint) in [
        (json!({}), "either `command` or `url`"),
        (json!({"command": "x", "url": "https://a.example"}), "either `command` or `url`"),
        (json!({"command": "x", "bearer": "T"}), "are for servers with a `url`"),
        (json!({"url": "https://a.example", "args": ["x"]}), "are for servers with a `command`"),
        (json!({"url": "ftp://a.example"}), "not an address"),
        (json!({"url": "http://10.0.0.1/", "public_only": true}), "not an address"),
        (json!({"command": "x", "env": {"A": 1}}), "env.A must be a text"),
    ] {
        let refused = McpServer::start("none", settings(wrong), none.clone()).err().unwrap();
        assert!(refused.to_string().contains(hint), "{refused}");
    }
}
