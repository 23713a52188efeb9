//! Seams about the host itself: who gets to make a call, and which nodes there are.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::agents::{of_type, types};
use support::{READER, Site};

const CLAIM: &str = "/v1/host/sample/test/idempotency/concurrent-claim";
const CATALOG: &str = "/v1/host/sample/node-catalog";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_effect_happens_once_however_many_executors_come_to_it() {
    let site = Site::conforming().await;
    for executors in [2, 5, 16] {
        let raced = site.post(CLAIM, json!({"executors": executors})).await.json();
        let minted = raced["mintedIds"].as_array().unwrap();
        assert_eq!((minted.len(), &raced["attempted"]), (executors, &json!(executors)), "{raced}");
        assert!(minted.iter().all(|id| *id == raced["logicalInvocationId"] && id.is_string()), "one name: {raced}");
        assert_eq!((&raced["delivered"], &raced["status"]), (&json!(1), &json!("completed")), "{raced}");
        let run = raced["runId"].as_str().unwrap();
        let counted = site.get(&format!("/v1/host/sample/replay/effect-count?runId={run}")).await.json();
        assert_eq!(counted["effectCount"], 1, "counted where calls leave the host");
        let log = site.log(run).await;
        let starts = log.iter().filter(|event| event["type"] == "node.started" && event["nodeId"] == "effect");
        assert_eq!(starts.count(), 1, "{:?}", types(&log));
        assert!(of_type(&log, "baton.effect.unknown").is_empty(), "nobody had to ask whether it happened");
    }
    let twice = [site.post(CLAIM, json!({})).await.json(), site.post(CLAIM, json!({})).await.json()];
    assert_eq!(twice[0]["attempted"], 2);
    assert_ne!(twice[0]["logicalInvocationId"], twice[1]["logicalInvocationId"], "two runs, two effects");
    for executors in [0, 1, 17] {
        site.post(CLAIM, json!({"executors": executors})).await.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn the_catalogue_lists_what_definitions_may_use() {
    let site = Site::conforming().await;
    let nodes = site.get(CATALOG).await.json()["nodes"].as_array().unwrap().clone();
    let listed = |id: &str| nodes.iter().any(|node| node["typeId"] == id);
    assert!(listed("core.ai.structuredOutput") && listed("core.dispatch") && listed("vendor.baton.http"));
    assert!(!listed("core.conversationGate"), "known to the protocol, and not here");
    assert!(nodes.iter().all(|node| node["source"] == "local" && node["fallbackModel"] == Value::Null));
    for node in nodes {
        let id = node["typeId"].as_str().unwrap();
        let node =
            json!({"id": "n", "typeId": id, "name": "n", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}});
        let flow = json!({"id": "conformance-one", "name": "one", "version": "1", "nodes": [node], "edges": [],
            "triggers": [], "variables": [], "metadata": {}, "settings": {}});
        let said = site.post("/v1/workflows", flow).await;
        assert!(!said.json().to_string().contains("no node type"), "{id}");
    }
}

#[tokio::test]
async fn both_need_a_key_and_conformance_mode() {
    let (site, plain) = (Site::conforming().await, Site::open().await);
    assert_eq!(plain.post(CLAIM, json!({})).await.status, 404);
    assert_eq!(plain.get(CATALOG).await.status, 404);
    assert_eq!(site.send("POST", CLAIM, &[], "{}").await.status, 401);
    assert_eq!(site.send("POST", CLAIM, &[READER], "{}").await.status, 403);
    assert_eq!(site.send("GET", CATALOG, &[], Body::empty()).await.status, 401);
}
