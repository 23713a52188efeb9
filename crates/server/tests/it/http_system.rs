//! The host about itself: what everybody sees, and what operators see.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_model::{RunId, Secret, Timestamp};
use baton_runtime::Host;
use baton_server::{Keys, LogLine, LogTail};
use baton_store::{Commit, Journal as _, MemoryStore, Reader as _, RunRow, Write};
use serde_json::{Value, json};
use support::{FULL, OTHER, READER, Site, host_options};

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

    let ours = shown(&site, FULL).await;
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
    assert_eq!(reader.get("operator"), None, "audit:read was not given");
    assert_eq!(reader["runs"]["total"], 2);
    site.send("GET", PATH, &[], Body::empty()).await.refused(401, "unauthenticated");
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
    store.submit(Commit { generation: store.generation(), writes, alone: false }).await.unwrap();
    let before = shown(&site, FULL).await;

    let host = Host::open(Arc::new(MemoryStore::from_disk(store.disk())), host_options()).await.unwrap();
    let site = Site::over(host, |_| {});
    let after = loop {
        let system = shown(&site, FULL).await;
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
        server.keys = Keys::parse("full:acme,auditor:acme:audit:read").unwrap();
    });
    let body = shown(&site, ("authorization", "Bearer auditor")).await;
    let lines = body["operator"]["logs"].as_array().unwrap();
    assert_eq!(lines.len(), 200);
    assert!(lines[199]["message"].as_str().unwrap().starts_with("line 249 with "), "{}", lines[199]);
    assert!(!body.to_string().contains("s3cr3t"), "{body}");
}
