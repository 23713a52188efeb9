//! The seam that shows spans.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::{READER, Site};

const SPANS: &str = "/v1/host/sample/test/otel/spans";

async fn spans(site: &Site, query: &str) -> Vec<Value> {
    site.get(&format!("{SPANS}?{query}")).await.json()["spans"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_spans_of_a_run_are_shown_as_they_are_exported() {
    let site = Site::conforming().await;
    let claims = site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json();
    assert_eq!(claims["observability"], json!({"testSeams": {"otelScrape": true}}));
    site.register("quiet", "core.noop", json!({})).await;
    let run = site.completed("quiet").await;
    let all = spans(&site, &format!("runId={run}")).await;
    let names: Vec<_> = all.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["openwop.node.core.noop.attempt", "openwop.node.core.noop", "openwop.run"]);
    assert!(all.iter().all(|span| span["attributes"]["openwop.run_id"] == run.as_str() && span["events"] == json!([])));
    let bundle = site.get(&format!("/v1/runs/{run}/debug-bundle")).await.json();
    let ids = |spans: &[Value]| spans.iter().map(|span| span["spanId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(bundle["spans"].as_array().unwrap()), ids(&all), "one fold makes both");
    assert_eq!(spans(&site, &format!("runId={run}&name=openwop.run")).await.len(), 1);
    assert_eq!(spans(&site, "runId=nobody").await, Vec::<Value>::new());
    site.get(SPANS).await.refused(400, "invalid_argument");
}

#[tokio::test]
async fn an_envelope_has_a_span_that_says_how_old_its_schema_is_and_not_what_it_says() {
    let site = Site::conforming().await;
    let said = |version: u64, run: &str| {
        json!({
            "envelope": {
                "type": "error", "schemaVersion": version, "envelopeId": "e", "correlationId": format!("{run}:{version}"),
                "payload": {"reasoning": "sk-canary-1", "code": "x", "message": "the key is sk-canary-1"},
                "meta": {"source": "ai-generation", "ts": "2026-05-18T10:00:00Z"},
            },
            "schemaVersionFloor": {"error": 1}, "envelopeStrictness": "warn",
            "byokCanaries": [{"value": "sk-canary-1", "secretId": "k"}],
            "projectTo": {"runId": run, "nodeId": "sk-canary-1"},
        })
    };
    for version in [0, 1, 2] {
        site.seam("envelope/accept", said(version, "r")).await;
    }
    let all = spans(&site, "runId=r").await;
    let drift: Vec<_> = all.iter().map(|span| &span["attributes"]["envelope_schema_version_drift"]).collect();
    assert_eq!(drift, [&json!(true), &Value::Null, &Value::Null]);
    let outcomes: Vec<_> = all.iter().map(|span| &span["attributes"]["baton.outcome"]).collect();
    assert_eq!(outcomes, ["accepted", "accepted", "refused"], "none is newer than the host");
    assert!(!json!(all).to_string().contains("canary"), "{all:?}");
    assert_eq!(spans(&site, "runId=other").await, Vec::<Value>::new());
    site.seam("test/reset", json!({})).await;
    assert_eq!(spans(&site, "runId=r").await, Vec::<Value>::new());
}

#[tokio::test]
async fn spans_are_shown_in_conformance_mode_and_to_their_tenant() {
    let (site, plain) = (Site::conforming().await, Site::open().await);
    let path = format!("{SPANS}?runId=r");
    assert_eq!(plain.get(&path).await.status, 404);
    assert_eq!(site.send("GET", &path, &[], Body::empty()).await.status, 401);
    assert_eq!(site.send("GET", &path, &[READER], Body::empty()).await.status, 200);
    let claims = plain.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json();
    assert_eq!(claims["observability"]["testSeams"], Value::Null);
    site.register("quiet", "core.noop", json!({})).await;
    let run = site.completed("quiet").await;
    let other = site.send("GET", &format!("{SPANS}?runId={run}"), &[support::OTHER], Body::empty()).await;
    assert_eq!(other.json()["spans"], json!([]));
}
