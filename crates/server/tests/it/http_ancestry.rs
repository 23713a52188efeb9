//! Where a run comes from, and the trace it is part of.

use crate::support;
use baton_conformance::Conformance;

use axum::body::Body;
use serde_json::{Value, json};
use support::protocol::judge;
use support::{FULL, OTHER, READER, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

async fn ancestry(site: &Site, run: &str) -> Value {
    let answer = site.send("GET", &format!("/v1/runs/{run}/ancestry"), &[READER], Body::empty()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    judge("run-ancestry-response", &answer.json());
    answer.json()
}

async fn claims(site: &Site) -> Value {
    site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json()
}

async fn only_child(site: &Site, run: &str) -> String {
    let children = site.get(&format!("/v1/runs?parentRunId={run}")).await.json();
    assert_eq!(children["runs"].as_array().unwrap().len(), 1, "{children}");
    children["runs"][0]["runId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_top_level_run_has_no_parent_and_the_host_is_the_advertised_one() {
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        options.host_id = "baton.example".to_owned();
    })
    .await;
    let model = claims(&site).await["multiAgent"]["executionModel"].clone();
    let expected = json!({"supported": true, "hostId": "baton.example", "ancestryEndpointSupported": true});
    assert_eq!((&model["crossHostCausation"], &model["version"]), (&expected, &json!(5)));
    let run = site.completed("conformance-dispatch-loop").await;
    assert_eq!(ancestry(&site, &run).await, json!({"runId": run, "hostId": "baton.example", "parent": null}));
    let replay = site.forked(&run, json!({"mode": "replay"}), "completed").await;
    let branch = site.forked(&run, json!({"mode": "branch", "fromSeq": 1}), "completed").await;
    for fork in [replay, branch] {
        assert_eq!(ancestry(&site, &fork).await["parent"], Value::Null, "a source is no parent");
    }
}

#[tokio::test]
async fn a_child_names_its_parent_and_what_made_it() {
    let site = Site::conforming().await;
    let host = claims(&site).await["multiAgent"]["executionModel"]["crossHostCausation"]["hostId"].clone();
    for (workflow, cause) in
        [("conformance-dispatch-loop", "core.dispatch"), ("conformance-subworkflow-parent", "core.subWorkflow")]
    {
        let run = site.completed(workflow).await;
        let child = only_child(&site, &run).await;
        let expected =
            json!({"runId": child, "hostId": host, "parent": {"runId": run, "hostId": host, "cause": cause}});
        assert_eq!(ancestry(&site, &child).await, expected, "{workflow}");
        // A fork of a child is a run of its own.
        let fork = site.forked(&child, json!({"mode": "replay"}), "completed").await;
        assert_eq!(ancestry(&site, &fork).await["parent"], Value::Null);
    }
}

#[tokio::test]
async fn ancestry_is_for_readers_of_the_tenant() {
    let site = Site::conforming().await;
    let run = site.completed("conformance-noop").await;
    let path = format!("/v1/runs/{run}/ancestry");
    let foreign = site.send("GET", &path, &[OTHER], Body::empty()).await;
    let unknown = site.send("GET", "/v1/runs/run_nobody/ancestry", &[OTHER], Body::empty()).await;
    foreign.refused(404, "run_not_found");
    assert_eq!(foreign.text, unknown.text);
    site.send("GET", &path, &[], Body::empty()).await.refused(401, "unauthenticated");
    site.post(&path, json!({})).await.refused(405, "method_not_allowed");
    let keys = "blind:acme:runs:create";
    let narrow = Site::over(site.host.clone(), |options| options.keys = baton_server::Keys::parse(keys).unwrap());
    let answer = narrow.send("GET", &path, &[("authorization", "Bearer blind")], Body::empty()).await;
    assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], "runs:read");
}

/// Takes one request, answers 200, and gives its head.
async fn receive(listener: &TcpListener) -> (String, Value) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let read = socket.read(&mut chunk).await.unwrap();
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str(body) {
            socket.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            return (head.to_lowercase(), body);
        }
    }
}

fn sent<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A site whose webhook for ended runs arrives at the listener.
async fn subscribed() -> (Site, TcpListener) {
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        options.allow_private_webhooks = true;
    })
    .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let answer = site.post("/v1/webhooks", json!({"url": url, "events": ["run.completed"]})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    (site, listener)
}

async fn start(site: &Site, workflow: &str, headers: &[(&str, &str)]) -> String {
    let headers: Vec<_> = [FULL].iter().chain(headers).copied().collect();
    let answer = site.send("POST", "/v1/runs", &headers, json!({"workflowId": workflow}).to_string()).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["runId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_trace_is_handed_on_by_the_run_its_child_and_its_branch_and_shows_nowhere() {
    let (site, listener) = subscribed().await;
    let state = "vendor=a,other=b";
    let run = start(&site, "conformance-subworkflow-parent", &[("traceparent", TRACE), ("tracestate", state)]).await;
    site.reach(&run, "completed").await;
    let child = only_child(&site, &run).await;
    // Out of order, because runs are delivered independently of each other.
    let mut told = Vec::new();
    for _ in 0..2 {
        let (head, body) = receive(&listener).await;
        assert_eq!((sent(&head, "traceparent"), sent(&head, "tracestate")), (Some(TRACE), Some(state)));
        told.push(body["runId"].as_str().unwrap().to_owned());
    }
    told.sort();
    let mut expected = [child, run.clone()];
    expected.sort();
    assert_eq!(told, expected);
    for from in [0, 1] {
        let branch = site.post(&format!("/v1/runs/{run}:fork"), json!({"mode": "branch", "fromSeq": from})).await;
        assert_eq!(branch.status, 201);
        // The branch's own child and the branch.
        for _ in 0..2 {
            assert_eq!(sent(&receive(&listener).await.0, "traceparent"), Some(TRACE), "from {from}");
        }
    }
    for path in [format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events")] {
        assert!(!site.get(&path).await.text.contains("4bf92f3577b34da6"), "{path}");
    }
}

#[tokio::test]
async fn a_malformed_trace_is_as_good_as_none() {
    let (site, listener) = subscribed().await;
    let none = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
    let bad = ["nonsense", none, "", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"];
    for parent in bad {
        start(&site, "conformance-noop", &[("traceparent", parent), ("tracestate", "a=b")]).await;
        let (head, _) = receive(&listener).await;
        assert_eq!((sent(&head, "traceparent"), sent(&head, "tracestate")), (None, None), "{parent}");
    }
    start(&site, "conformance-noop", &[("traceparent", TRACE), ("traceparent", TRACE)]).await;
    assert_eq!(sent(&receive(&listener).await.0, "traceparent"), None, "two are none");
    start(&site, "conformance-noop", &[]).await;
    assert_eq!(sent(&receive(&listener).await.0, "traceparent"), None);
}

#[tokio::test]
async fn a_replay_calls_no_webhook() {
    let (site, listener) = subscribed().await;
    let run = site.completed("conformance-noop").await;
    assert_eq!(receive(&listener).await.1["runId"], json!(run));
    site.forked(&run, json!({"mode": "replay"}), "completed").await;
    // The next call is for the next real run.
    let next = site.start("conformance-noop").await;
    assert_eq!(receive(&listener).await.1["runId"], json!(next));
}
