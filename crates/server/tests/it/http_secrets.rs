//! A secret of the operator, sent through every door that stores something: it comes out of none, and no byte of it is
//! on the disk.

use crate::support;

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use baton_model::Secret;
use baton_runtime::{Host, Options};
use baton_store_sqlite::SqliteStore;
use serde_json::json;
use support::{Answer, FULL, JSON, Site, host_options};

const CANARY: &str = "sk-canary-7Q2mZx91";
/// The two halves, so that a workflow can name the secret without its definition holding it.
const HALVES: (&str, &str) = ("sk-canary-", "7Q2mZx91");
const MARK: &str = "[REDACTED:canary]";

async fn site(folder: &Path) -> Site {
    let secrets = vec![Secret::new("canary", CANARY)];
    let store = Arc::new(SqliteStore::open(folder).unwrap());
    let host = Host::open(store, Options { secrets, ..host_options() }).await.unwrap();
    Site::over(host, |_| {})
}

#[track_caller]
fn clean(what: &str, answer: &Answer) {
    assert!(!answer.text.contains(CANARY), "{what}: {}", answer.text);
    for (name, value) in &answer.headers {
        assert!(!String::from_utf8_lossy(value.as_bytes()).contains(CANARY), "{what}: {name}");
    }
}

/// Every file the host wrote, write-ahead log and all.
fn bytes_on_disk(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            all.extend(std::fs::read(path).unwrap());
        }
    }
    all
}

fn holds(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[tokio::test]
async fn a_secret_goes_in_and_comes_out_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let text = format!("the key is {CANARY}, and again {CANARY}");

    // Memory and files from outside, under a key, so that the stored replies count too.
    let entry = site.keyed("m", "/v1/host/baton/memory/s", json!({"content": text, "tags": [CANARY, "plain"]})).await;
    clean("memory POST", &entry);
    assert_eq!(entry.json()["content"], format!("the key is {MARK}, and again {MARK}"));
    assert_eq!(entry.json()["tags"], json!([MARK, "plain"]));
    let headers = [FULL, ("idempotency-key", "f")];
    let file = site.send("PUT", "/v1/host/workspace/files/a.md", &headers, json!({"content": text}).to_string()).await;
    clean("file PUT", &file);
    assert_eq!(file.json()["content"], format!("the key is {MARK}, and again {MARK}"));
    let again = site.send("PUT", "/v1/host/workspace/files/a.md", &headers, json!({"content": text}).to_string()).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    clean("replayed PUT", &again);

    // The same from a run that puts the secret together itself.
    let expression = format!("'run says ' + '{}' + '{}'", HALVES.0, HALVES.1);
    let nodes = [
        ("keep", "vendor.baton.memory.put", json!({"contentExpression": expression, "tags": ["t"]})),
        ("list", "vendor.baton.memory.list", json!({"into": "entries"})),
        ("write", "vendor.baton.workspace.put", json!({"path": "run.md", "contentExpression": expression})),
    ];
    site.register_chain("leak", &nodes).await;
    let trace = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let state = format!("vendor={CANARY}");
    let headers = [FULL, trace, ("tracestate", state.as_str())];
    let started = site.send("POST", "/v1/runs", &headers, json!({"workflowId": "leak"}).to_string()).await;
    let run = started.json()["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "completed").await;
    let seen = site.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(seen.json()["variables"]["entries"][0]["content"], format!("run says {MARK}"));
    assert_eq!(site.get("/v1/host/workspace/files/run.md").await.json()["content"], format!("run says {MARK}"));

    let id = entry.json()["id"].as_str().unwrap().to_owned();
    let paths = [
        "/v1/host/baton/memory".to_owned(),
        "/v1/host/baton/memory/s".to_owned(),
        format!("/v1/host/baton/memory/s/{id}"),
        format!("/v1/host/baton/memory/{run}"),
        "/v1/host/workspace/files".to_owned(),
        "/v1/host/workspace/files/a.md".to_owned(),
        "/v1/host/workspace/files/run.md".to_owned(),
        "/v1/host/baton/workspace/changes".to_owned(),
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events"),
        format!("/v1/runs/{run}/ancestry"),
        format!("/v1/runs/{run}/debug-bundle"),
        format!("/v1/runs/{run}:diff?against={run}"),
        format!("/v1/host/baton/runs/{run}/state"),
        "/v1/runs".to_owned(),
        "/.well-known/openwop".to_owned(),
    ];
    for path in &paths {
        let answer = site.send("GET", path, &[FULL, JSON], Body::empty()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        clean(path, &answer);
    }
    for frame in site.stream(&format!("/v1/runs/{run}/events?streamMode=debug"), &[]).await.all().await {
        assert!(!frame.data.to_string().contains(CANARY), "{frame:?}");
    }

    site.host.shutdown().await;
    let disk = bytes_on_disk(folder.path());
    assert!(holds(&disk, MARK), "the scan reads what was stored");
    assert!(!holds(&disk, CANARY), "the secret is on the disk");
}

#[tokio::test]
async fn a_refusal_does_not_repeat_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let memory = "/v1/host/baton/memory/s";
    let file = "/v1/host/workspace/files/a.md";
    let hidden = |method: &'static str, path: &str, body: String| (method, path.to_owned(), body);
    let attempts = [
        hidden("POST", memory, json!({"content": "x", "tags": CANARY}).to_string()),
        hidden("POST", memory, json!({"content": "x", CANARY: 1}).to_string()),
        hidden("POST", memory, json!({"content": "x", "expiresAt": CANARY}).to_string()),
        hidden("POST", memory, json!({"content": "x", "ttlSeconds": CANARY}).to_string()),
        hidden("POST", memory, json!({"content": CANARY.repeat(10_000)}).to_string()),
        hidden("POST", &format!("/v1/host/baton/memory/{CANARY}"), json!({"content": "x"}).to_string()),
        hidden("PUT", file, json!({"content": {"a": CANARY}}).to_string()),
        hidden("PUT", file, json!({"content": "x", CANARY: 1}).to_string()),
        hidden("PUT", file, json!({"content": "x", "contentType": CANARY}).to_string()),
        hidden("PUT", &format!("/v1/host/workspace/files/{CANARY}.md"), json!({"content": "x"}).to_string()),
        hidden("PUT", &format!("/v1/host/workspace/files/-{CANARY}"), json!({"content": "x"}).to_string()),
        hidden("GET", &format!("/v1/host/workspace/files/{CANARY}"), String::new()),
        hidden("DELETE", &format!("/v1/host/workspace/files/{CANARY}"), String::new()),
        hidden("GET", &format!("{memory}/{CANARY}"), String::new()),
        hidden("DELETE", &format!("{memory}/{CANARY}"), String::new()),
        hidden("POST", "/v1/runs/x:fork", json!({"mode": CANARY}).to_string()),
        hidden("POST", "/v1/runs/x:prune", json!({"log": CANARY}).to_string()),
        hidden("GET", &format!("/v1/runs/x:diff?against={CANARY}"), String::new()),
        hidden("GET", "/v1/runs/x:diff?against=", String::new()),
        hidden("POST", "/v1/host/baton/runs/x/verify", json!({CANARY: 1}).to_string()),
    ];
    for (method, path, body) in attempts {
        let answer = site.send(method, &path, &[FULL], body).await;
        assert!(answer.status.is_client_error(), "{method} {path}: {}", answer.text);
        clean(&format!("{method} {path}"), &answer);
    }
    let stale = [FULL, ("if-match", CANARY)];
    let answer = site.send("PUT", file, &stale, r#"{"content":"x"}"#).await;
    answer.refused(409, "workspace_conflict");
    clean("If-Match", &answer);
    site.host.shutdown().await;
    assert!(!holds(&bytes_on_disk(folder.path()), CANARY));
}
