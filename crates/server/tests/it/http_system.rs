//! The host about itself: what everybody sees, and what operators see.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_model::{Connection, ConnectionKind, ConnectionState, RunId, Secret, Timestamp};
use baton_runtime::Host;
use baton_server::{Keys, LogLine, LogTail};
use baton_store::reads::*;
use baton_store::{Commit, Journal as _, MemoryStore, RunRow, Write};
use baton_tool::{Tool, ToolSet, ToolSource, Toolbox};
use serde_json::{Value, json};
use support::{FULL, OPERATOR, OTHER, READER, Site, host_options};

const PATH: &str = "/v1/host/baton/system";

async fn shown(site: &Site, key: (&str, &str)) -> Value {
    let answer = site.send("GET", PATH, &[key], Body::empty()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

#[tokio::test]
async fn counts_are_the_tenants_and_the_rest_is_the_operators() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    site.register("plain", "core.noop", json!({})).await;
    site.completed("plain").await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;

    assert_eq!(shown(&site, FULL).await.get("operator"), None, "a key without a list has no operator's scope");
    let ours = shown(&site, OPERATOR).await;
    assert_eq!(ours["runs"], json!({"total": 2, "byStatus": {"completed": 1, "waiting-approval": 1}}));
    assert_eq!((&ours["openInterrupts"], &ours["ready"]), (&json!(1), &json!(true)));
    assert_eq!(ours["limits"]["maxNodeExecutions"], json!(host_options().limits.max_node_executions));
    for name in ["version", "build", "hostId", "instance", "startedAt", "now", "licence"] {
        assert!(ours[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {ours}");
    }
    let operator = &ours["operator"];
    assert_eq!((&operator["storage"]["kind"], &operator["generation"]), (&json!("memory"), &json!(1)));
    let classes = operator["storage"]["classes"].as_array().unwrap();
    let records = classes.iter().find(|class| class["class"] == "records").unwrap();
    assert!(records["count"].as_u64().unwrap() > 0 && records["bytes"].as_u64().unwrap() > 0, "{operator}");

    let theirs = shown(&site, OTHER).await;
    assert_eq!(theirs["runs"], json!({"total": 0, "byStatus": {}}));
    let reader = shown(&site, READER).await;
    assert_eq!(reader.get("operator"), None, "host:operate was not given");
    assert_eq!(reader["runs"]["total"], 2);
    site.send("GET", PATH, &[], Body::empty()).await.refused(401, "unauthenticated");
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await.text;
    assert!(metrics.contains("baton_") && !metrics.contains("acme"), "totals name nobody: {metrics}");
}

#[tokio::test]
async fn a_start_says_what_it_found_to_go_on_with() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::over(Host::open(store.clone(), host_options()).await.unwrap(), |_| {});
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;
    // As a process leaves it that ends in the middle of something.
    let row = store.run(&RunId::new(run)).await.unwrap().unwrap();
    let expected = row.next_seq;
    let writes = vec![Write::Append { row: RunRow { busy: true, ..row }, expected, records: Vec::new() }];
    store.submit(Commit::new(store.generation(), writes)).await.unwrap();
    let before = shown(&site, OPERATOR).await;

    let host = Host::open(Arc::new(MemoryStore::from_disk(store.disk())), host_options()).await.unwrap();
    let site = Site::over(host, |_| {});
    let after = loop {
        let system = shown(&site, OPERATOR).await;
        if system["operator"]["recovery"]["found"].is_u64() {
            break system;
        }
        tokio::task::yield_now().await;
    };
    let recovery = &after["operator"]["recovery"];
    assert_eq!((&recovery["found"], &recovery["resumed"]), (&json!(1), &json!(1)), "{recovery}");
    assert_eq!(after["operator"]["unknownCalls"], 0);
    assert_ne!(after["instance"], before["instance"], "another start");
}

#[tokio::test]
async fn the_newest_lines_of_the_log_are_shown_without_secrets() {
    let secret = Secret::new("SHELL_TOKEN", "s3cr3t-of-the-operator");
    let logs = LogTail::default();
    for n in 0..250 {
        logs.push(LogLine {
            at: Timestamp::from_micros(n),
            level: "INFO",
            target: "test".to_owned(),
            message: format!("line {n} with s3cr3t-of-the-operator"),
        });
    }
    let mut options = host_options();
    options.secrets = vec![secret];
    let host = Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let site = Site::over(host, |server| {
        server.logs = logs;
        server.keys = Keys::parse("full:acme,auditor:acme:audit:read,operator:acme:host:operate").unwrap();
    });
    for tenants_own in ["full", "auditor"] {
        let key = format!("Bearer {tenants_own}");
        let body = shown(&site, ("authorization", key.as_str())).await;
        assert!(body.get("operator").is_none() && !body.to_string().contains("line 2"), "{tenants_own}: {body}");
    }
    let body = shown(&site, OPERATOR).await;
    let lines = body["operator"]["logs"].as_array().unwrap();
    assert_eq!(lines.len(), 200);
    assert!(lines[199]["message"].as_str().unwrap().starts_with("line 249 with "), "{}", lines[199]);
    assert!(!body.to_string().contains("s3cr3t"), "{body}");
}

/// An MCP server that is away.
struct Away;

impl ToolSource for Away {
    fn name(&self) -> &str {
        "files"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn connection(&self) -> Option<Connection> {
        let (kind, state) = (ConnectionKind::Mcp, ConnectionState::Failed);
        let mut shown = Connection::new(kind, "files", state, Timestamp::from_millis(0));
        shown.failures = 3;
        shown.reason = Some("its process ended with exit code 3".to_owned());
        shown.exit = Some("exit code 3".to_owned());
        shown.stderr = vec!["cannot read with s3cr3t-of-the-operator".to_owned()];
        Some(shown)
    }
}

#[tokio::test]
async fn links_to_the_outside_show_to_operators_to_prometheus_and_at_agents_that_lack_them() {
    let site = Site::configured(|options| {
        options.secrets = vec![Secret::new("TOKEN", "s3cr3t-of-the-operator")];
        options.tools = Toolbox::new(ToolSet::default().source(Arc::new(Away)).unwrap());
        let wants = |id: &str, tool: &str| baton_model::AgentCard {
            tools: vec![tool.to_owned()],
            ..support::agents::card(id, "One")
        };
        let agent_registry =
            baton_runtime::AgentRegistry::default().with(None, wants("local.test.one", "mcp:files.read"));
        options.agent_registry = agent_registry.with(None, wants("local.test.two", "mcp:filesystem"));
    })
    .await;
    let shown = shown(&site, OPERATOR).await;
    assert_eq!(
        shown["operator"]["connections"],
        json!([{
            "kind": "mcp", "name": "files", "state": "failed", "since": "1970-01-01T00:00:00.000000Z", "failures": 3,
            "reason": "its process ended with exit code 3", "exit": "exit code 3",
            "stderr": ["cannot read with [REDACTED:TOKEN]"],
        }])
    );
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await.text;
    assert!(metrics.contains("baton_connection_up{kind=\"mcp\",name=\"files\"} 0"), "{metrics}");
    let agents = site.get("/v1/agents").await.json();
    let degraded = |at: usize| agents["agents"][at]["degraded"].clone();
    // The one is away, the other was never set up; and neither is the other.
    assert_eq!((degraded(0), degraded(1)), (json!(["mcp:files"]), json!(["mcp:filesystem"])), "{agents}");
}
