//! Servers that are ill-mannered processes: a few lines of shell each.

use crate::support;

use std::path::Path;
use std::sync::Arc;

use baton_model::ConnectionState;
use baton_tool::mcp::{McpServer, McpSettings};
use baton_tool::{SecretTable, ToolSet, ToolSource as _, Toolbox};
use serde_json::json;
use support::*;

const CANARY: &str = "canary-5eed5eed";

/// Reads a message and answers it with a result.
const SPEAK: &str = r#"
answer() { # result
  read -r line || exit 0
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
initialize() {
  answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"0"}}'
  read -r initialized
}
list() { answer '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'; }
call() { answer '{"content":[{"type":"text","text":"done"}]}'; }
"#;

fn start(script: &str) -> (Arc<McpServer>, Toolbox) {
    let settings: McpSettings = serde_json::from_value(json!({
        "command": "/bin/sh",
        "args": ["-c", format!("{SPEAK}\n{script}")],
        "env": {"TOKEN": {"$secret": "TOKEN"}},
        "revision": "2025-06-18",
    }))
    .unwrap();
    let secrets = Arc::new(SecretTable::default().with("TOKEN", CANARY, [], None));
    let server = McpServer::start("sh", settings, secrets).unwrap();
    let toolbox = Toolbox::new(ToolSet::default().source(Arc::clone(&server) as _).unwrap());
    (server, toolbox)
}

/// Whether a process whose number is in this file is there no more.
fn is_gone(file: &Path) -> Option<()> {
    let pid = std::fs::read_to_string(file).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // One that is dead and not yet collected is gone too.
    stat.map_or(Some(()), |stat| stat.contains(") Z ").then_some(()))
}

#[tokio::test]
async fn a_server_that_dies_says_how_and_what_it_said_last() {
    let (server, _toolbox) = start(r#"for n in $(seq 40); do echo "line $n" >&2; done; echo "no $TOKEN" >&2; exit 3"#);
    soon(server.tried()).await;
    let shown = server.connection().unwrap();
    assert_eq!((shown.state, shown.exit.as_deref()), (ConnectionState::Failed, Some("exit code 3")), "{shown:?}");
    assert_eq!(shown.reason.as_deref(), Some("its process ended with exit code 3"));
    assert_eq!((shown.stderr.len(), shown.stderr[18].as_str()), (20, "line 40"));
    assert_eq!(shown.stderr[19], "no [REDACTED:TOKEN]");
    assert!(shown.failures >= 1 && shown.next_attempt.is_some(), "{shown:?}");
    assert!(!format!("{shown:?}").contains(CANARY));
}

#[tokio::test]
async fn a_server_that_is_killed_after_it_was_listed_says_by_which_signal() {
    let dir = tempfile::tempdir().unwrap();
    // Only the first one works: how it ended is shown until the next connection, and here there is none.
    let script = "if [ -e FILE ]; then sleep 600; fi; : > FILE; initialize; list; call; kill -9 $$";
    let (server, toolbox) = start(&script.replace("FILE", &dir.path().join("started").display().to_string()));
    assert_eq!(value(soon(toolbox.call(&request("mcp:sh.t", json!({})))).await), json!("done"));
    let shown = eventually(|| server.connection().filter(|shown| shown.exit.is_some())).await;
    assert_eq!(shown.exit.as_deref(), Some("signal 9"), "{shown:?}");
}

#[tokio::test]
async fn a_flood_on_standard_error_holds_up_no_call() {
    // More than a pipe holds, before each answer and without end afterwards.
    let flood = "head -c 300000 /dev/zero | tr '\\0' 'x' >&2";
    let (server, toolbox) =
        start(&format!("{flood}; initialize; {flood}; list; {flood}; call; while :; do {flood}; done"));
    assert_eq!(value(soon(toolbox.call(&request("mcp:sh.t", json!({})))).await), json!("done"));
    soon(server.close()).await;
}

#[tokio::test]
async fn a_flood_on_standard_output_holds_up_nobody_else() {
    let (loud, _) = start("initialize; list; while :; do echo noise; done");
    soon(loud.tried()).await;
    let (_server, toolbox) = start("initialize; list; call");
    assert_eq!(value(soon(toolbox.call(&request("mcp:sh.t", json!({})))).await), json!("done"));
    soon(loud.close()).await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_started_again_and_nothing_is_sent_twice() {
    let dir = tempfile::tempdir().unwrap();
    let starts = dir.path().join("starts");
    let closed = dir.path().join("closed");
    // The first one closes its input and lives on; the next ones work.
    let script = format!(
        "echo x >> {0}; initialize; list; if [ $(wc -l < {0}) = 1 ]; then exec 0<&-; echo yes > {1}; sleep 600; fi; call",
        starts.display(),
        closed.display()
    );
    let (_server, toolbox) = start(&script);
    eventually(|| closed.exists().then_some(())).await;
    assert_eq!(value(soon(toolbox.call(&request("mcp:sh.t", json!({})))).await), json!("done"));
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "x\nx\n");
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_and_sigterm_is_killed_with_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let (own, other) = (dir.path().join("own"), dir.path().join("other"));
    let script = format!(
        "trap '' TERM; echo $$ > {}; sh -c \"trap '' TERM; while :; do sleep 1; done\" & echo $! > {}; initialize; list; \
         while :; do sleep 1; done",
        own.display(),
        other.display()
    );
    let (server, _toolbox) = start(&script);
    soon(server.tried()).await;
    assert_eq!((is_gone(&own), is_gone(&other)), (None, None));
    soon(server.close()).await;
    eventually(|| is_gone(&own)).await;
    eventually(|| is_gone(&other)).await;
}

#[tokio::test]
async fn a_server_is_asked_by_sigterm_before_it_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let asked = dir.path().join("asked");
    let script =
        format!("trap 'echo yes > {}; exit 0' TERM; initialize; list; while :; do sleep 0.05; done", asked.display());
    let (server, _toolbox) = start(&script);
    soon(server.tried()).await;
    soon(server.close()).await;
    assert_eq!(std::fs::read_to_string(&asked).unwrap(), "yes\n");
}
