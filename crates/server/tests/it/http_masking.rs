//! Text that looks like a credential goes into a run and shows in none of its views; the log keeps it.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::{FULL, JSON, Site};

const MARK: &str = "[REDACTED:pattern]";

/// Put together at run time, so that nobody who searches this file for credentials finds one.
fn key() -> String {
    ["sk-", "ant-", "9Lt7Nw2QrZ0aB8mYjPpQe"].concat()
}

fn token() -> String {
    ["eyJhbGciOiJIUzI1NiJ9", "eyJjYW5hcnkiOnRydWV9", "9Lt7Nw2QrZ0aB8mYjPpQe"].join(".")
}

async fn started(site: &Site, text: &str) -> String {
    let inputs = json!({"note": format!("use {text} here"), "list": [{"deep": text}], text: 1});
    let answer = site.post("/v1/runs", json!({"workflowId": "w", "inputs": inputs})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "waiting-approval").await;
    run
}

async fn site() -> Site {
    let site = Site::open().await;
    let nodes = [
        ("copy", "core.setVariable", json!({"name": "copy", "expression": "inputs.note"})),
        ("gate", "core.approvalGate", json!({"title": "ok?"})),
    ];
    site.register_chain("w", &nodes).await;
    site
}

#[tokio::test]
async fn what_looks_like_a_key_shows_in_no_view_of_a_run() {
    let site = site().await;
    for secret in [key(), token()] {
        let run = started(&site, &secret).await;
        let list: Value = site.get("/v1/runs").await.json();
        assert!(list["runs"].as_array().is_some_and(|runs| !runs.is_empty()));
        for path in [
            format!("/v1/runs/{run}"),
            format!("/v1/runs/{run}/events"),
            format!("/v1/runs/{run}/events/poll"),
            format!("/v1/runs/{run}/debug-bundle"),
            format!("/v1/host/baton/runs/{run}/state?seq=3"),
            format!("/v1/runs/{run}:diff?against={run}"),
            "/v1/runs".to_owned(),
            "/v1/interrupts".to_owned(),
        ] {
            let answer = site.get(&path).await;
            assert!(!answer.text.contains(&secret), "{path}: {}", answer.text);
        }
        let shown = site.get(&format!("/v1/runs/{run}")).await.json();
        assert_eq!(shown["inputs"]["note"], format!("use {MARK} here"));
        assert_eq!(shown["inputs"]["list"], json!([{"deep": MARK}]));
        assert_eq!(
            (&shown["inputs"][MARK], &shown["variables"]["copy"]),
            (&json!(1), &json!(format!("use {MARK} here")))
        );
        assert_eq!(site.log(&run).await[0]["payload"]["inputs"]["list"], json!([{"deep": MARK}]));
        // The link to its question is a credential of ours, and it works.
        let link = shown["interrupt"]["callbackUrl"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
        let path = &link[link.find("/v1/").unwrap()..];
        assert_eq!(site.get(path).await.status, 200);

        for mode in ["updates", "values", "debug", "updates&bufferMs=10"] {
            let path = format!("/v1/runs/{run}/events?streamMode={mode}");
            let text = format!("{:?}", site.stream(&path, &[]).await.next().await);
            assert!(text.contains(MARK) && !text.contains(&secret), "{mode}: {text}");
        }
    }
}

/// A log of many pages goes out in pieces. No piece shows what it holds.
#[tokio::test]
async fn a_long_log_is_masked_page_by_page() {
    let site = Site::with(|options| options.max_body_bytes = 1 << 20).await;
    let secret = key();
    let nodes: Vec<(String, Value)> =
        (0..600).map(|n| (format!("n{n}"), json!({"name": "v", "value": format!("{n} {secret}")}))).collect();
    let nodes: Vec<(&str, &str, Value)> =
        nodes.iter().map(|(id, config)| (id.as_str(), "core.setVariable", config.clone())).collect();
    site.register_chain("long", &nodes).await;
    let run = site.completed("long").await;
    let answer = site.send("GET", &format!("/v1/runs/{run}/events"), &[FULL, JSON], Body::empty()).await;
    let events = answer.json()["events"].as_array().unwrap().len();
    assert!(events > 1_024, "{events} events are one page");
    assert!(!answer.text.contains(&secret) && answer.text.matches(MARK).count() >= 600);
}

#[tokio::test]
async fn refusals_echo_no_key_on_any_route() {
    let site = site().await;
    for secret in [key(), token()] {
        let missing = site.post("/v1/runs", json!({"workflowId": format!("missing-{secret}")})).await;
        missing.refused(404, "workflow_not_found");
        assert!(!missing.text.contains(&secret), "{}", missing.text);
        for path in [
            format!("/v1/workflows/{secret}"),
            format!("/v1/runs/{secret}"),
            format!("/v1/host/workspace/files/{secret}"),
            format!("/v1/nothing/{secret}"),
            format!("/v1/runs?status={secret}"),
        ] {
            let answer = site.get(&path).await;
            assert!(answer.status.is_client_error() && !answer.text.contains(&secret), "{path}: {}", answer.text);
        }
        let wrong = site.post("/v1/workflows", json!({"id": secret, "nodes": secret})).await;
        assert!(wrong.status.is_client_error() && !wrong.text.contains(&secret), "{}", wrong.text);
    }
}

/// What somebody put there to get it back comes back, and the log is what was said.
#[tokio::test]
async fn stores_exports_and_proofs_stay_true() {
    let site = site().await;
    let secret = key();
    let put = site.put("/v1/host/workspace/files/a.env", json!({"content": format!("KEY={secret}")})).await;
    assert_eq!(put.status, 200, "{}", put.text);
    let file = site.get("/v1/host/workspace/files/a.env").await.json();
    assert_eq!(file["content"], format!("KEY={secret}"));
    let entry = site.post("/v1/host/baton/memory/s", json!({"content": secret})).await.json();
    assert_eq!(entry["content"], secret);

    let run = started(&site, &secret).await;
    let cancelled = site.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    let file = site.get(&format!("/v1/host/baton/runs/{run}/export")).await.text;
    assert!(file.contains(&secret) && !file.contains(MARK), "{file}");
    let proof = site.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({})).await.json();
    assert_eq!(proof["equal"], true, "{proof}");
    // A replay works on what was said, not on what is shown.
    let replay = site.post(&format!("/v1/runs/{run}:fork"), json!({"mode": "branch", "fromSeq": 1})).await.json();
    let branch = replay["runId"].as_str().unwrap();
    site.reach(branch, "waiting-approval").await;
    site.post(&format!("/v1/runs/{branch}/cancel"), json!({})).await;
    let file = site.get(&format!("/v1/host/baton/runs/{branch}/export")).await.text;
    assert!(file.contains(&secret) && !file.contains(MARK));
}
