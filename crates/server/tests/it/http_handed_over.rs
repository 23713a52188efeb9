//! Runs that another host asks for: taken down as told, made once for good, and taken back before they set out.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_model::event;
use baton_runtime::Host;
use baton_store::MemoryStore;
use baton_testkit::{SeededIds, SimClock};
use serde_json::{Value, json};
use support::protocol::judge;
use support::{Answer, FULL, JSON, OTHER, Site, host_options};

const KEY: (&str, &str) = ("idempotency-key", "run_child_of_far");
const WITHDRAWN: (&str, &str) = ("baton-withdrawn", "true");

fn claim() -> Value {
    json!({
        "hostId": "far.example", "runId": "run_far", "eventId": "run_far.7", "cause": "core.dispatch",
        "wellKnownUrl": "https://far.example/.well-known/openwop", "depth": 3,
    })
}

async fn ask(site: &Site, who: (&str, &str), claim: &Value, more: &[(&str, &str)]) -> Answer {
    let claim = claim.to_string();
    let headers = [&[who, ("baton-causation", claim.as_str())], more].concat();
    site.send("POST", "/v1/runs", &headers, json!({"workflowId": "slow", "inputs": {"n": 1}}).to_string()).await
}

async fn made(site: &Site, more: &[(&str, &str)]) -> String {
    let answer = ask(site, FULL, &claim(), more).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["runId"].as_str().unwrap().to_owned()
}

async fn site() -> (Site, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let ids = Arc::new(SeededIds::new(7));
    let options = baton_runtime::Options { host_id: "near.example".to_owned(), ..host_options() };
    let host = Host::open_with(Arc::new(MemoryStore::new()), options, Arc::clone(&clock) as _, ids).await.unwrap();
    let site = Site::over(host, |_| {});
    site.register("slow", "core.delay", json!({"ms": 3_600_000_000_u64})).await;
    (site, clock)
}

async fn runs(site: &Site) -> usize {
    site.get("/v1/runs").await.json()["runs"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_first_event_and_the_ancestry_name_the_host_that_asked() {
    let (site, _) = site().await;
    let run = made(&site, &[KEY]).await;
    let first = site.log(&run).await[0].clone();
    assert_eq!((&first["type"], &first["causationId"]), (&json!("run.started"), &json!("run_far.7")));
    assert_eq!(first["payload"]["causationHostId"], "far.example");
    let schema: Value = serde_json::from_str(event::schema("run.started").unwrap()).unwrap();
    assert!(jsonschema::is_valid(&schema, &first["payload"]), "{first}");
    judge("run-event", &first);
    let ancestry = site.get(&format!("/v1/runs/{run}/ancestry")).await.json();
    judge("run-ancestry-response", &ancestry);
    let parent = json!({
        "runId": "run_far", "hostId": "far.example", "cause": "core.dispatch",
        "wellKnownUrl": "https://far.example/.well-known/openwop",
    });
    assert_eq!(ancestry, json!({"runId": run, "hostId": "near.example", "parent": parent}));
    // Its parent is no run of this host.
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.json().get("parentRunId"), None);
    let fork = site.post(&format!("/v1/runs/{run}:fork"), json!({"mode": "branch", "fromSeq": 1})).await.json();
    let path = format!("/v1/runs/{}/ancestry", fork["runId"].as_str().unwrap());
    assert_eq!(site.get(&path).await.json()["parent"], Value::Null, "a fork comes from nowhere else");
    // A run that nobody elsewhere asked for says nothing of the kind.
    let own = site.start("slow").await;
    let first = site.log(&own).await[0].clone();
    assert_eq!((first.get("causationId"), first["payload"].get("causationHostId")), (None, None));
}

#[tokio::test]
async fn it_is_made_once_however_late_it_is_asked_for_again() {
    let (site, clock) = site().await;
    let run = made(&site, &[KEY]).await;
    assert_eq!(made(&site, &[KEY]).await, run);
    // The reply is kept for a day; what the workflow has become since does not matter.
    clock.advance(49 * 60 * 60 * 1000);
    site.register("slow", "core.fail", json!({})).await;
    assert_eq!(made(&site, &[KEY]).await, run);
    assert_eq!(runs(&site).await, 1);
    let mut other = claim();
    other["eventId"] = json!("run_far.8");
    clock.advance(49 * 60 * 60 * 1000);
    ask(&site, FULL, &other, &[KEY]).await.refused(409, "idempotency_key_mismatch");
    // Another tenant's key is another key.
    let foreign = site.send("POST", "/v1/workflows", &[OTHER], noop("slow")).await;
    assert!(foreign.status.is_success(), "{}", foreign.text);
    let answer = ask(&site, OTHER, &claim(), &[KEY]).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_ne!(answer.json()["runId"], json!(run));
}

fn noop(id: &str) -> String {
    json!({
        "id": id, "name": id, "version": "1", "edges": [], "triggers": [], "variables": [], "metadata": {},
        "settings": {},
        "nodes": [{"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}],
    })
    .to_string()
}

#[tokio::test]
async fn many_at_once_are_one() {
    let (site, _) = site().await;
    let all = futures_util::future::join_all((0..20).map(|_| made(&site, &[KEY]))).await;
    assert!(all.iter().all(|run| *run == all[0]), "{all:?}");
    assert_eq!(runs(&site).await, 1);
}

#[tokio::test]
async fn one_that_was_taken_back_never_sets_out() {
    let (site, clock) = site().await;
    let run = made(&site, &[KEY, WITHDRAWN]).await;
    let types =
        async |site: &Site| -> Vec<Value> { site.log(&run).await.iter().map(|event| event["type"].clone()).collect() };
    assert_eq!(types(&site).await, ["run.started", "run.cancelled"]);
    let last = site.log(&run).await[1].clone();
    assert_eq!(last["payload"], json!({"reason": "parent-cancelled", "parentRunId": "run_far"}));
    // The request that was slower finds it as it is, today and later.
    assert_eq!(made(&site, &[KEY]).await, run);
    clock.advance(49 * 60 * 60 * 1000);
    assert_eq!(made(&site, &[KEY]).await, run);
    assert_eq!(types(&site).await, ["run.started", "run.cancelled"]);
    // One that is under way is only named: ending it is another request.
    let other = ("idempotency-key", "run_other_child");
    let run = made(&site, &[other]).await;
    assert_eq!(made(&site, &[other, WITHDRAWN]).await, run);
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.json()["status"], "running");
    assert_eq!(runs(&site).await, 2);
}

#[tokio::test]
async fn a_claim_that_cannot_be_kept_starts_nothing() {
    let (site, _) = site().await;
    let details = ask(&site, FULL, &claim(), &[]).await;
    details.refused(400, "validation_error");
    assert!(details.text.contains("Idempotency-Key"), "{}", details.text);
    let mut deep = claim();
    deep["depth"] = json!(33);
    // A refusal that stands is kept under its key, so each of these has its own.
    let deeper = ("idempotency-key", "too-deep");
    ask(&site, FULL, &deep, &[deeper]).await.refused(422, "nesting_limit_exceeded");
    let mut bad = claim();
    bad["wellKnownUrl"] = json!("file:///etc/passwd");
    ask(&site, FULL, &bad, &[KEY]).await.refused(400, "validation_error");
    ask(&site, FULL, &json!("nonsense"), &[KEY]).await.refused(400, "validation_error");
    ask(&site, FULL, &claim(), &[KEY, ("baton-withdrawn", "perhaps")]).await.refused(400, "validation_error");
    ask(&site, FULL, &claim(), &[KEY, ("x-dedup", "enforce")]).await.refused(400, "validation_error");
    let body = || Body::from(json!({"workflowId": "slow"}).to_string());
    site.send("POST", "/v1/runs", &[FULL, WITHDRAWN], body()).await.refused(400, "validation_error");
    let twice = claim().to_string();
    let headers = [FULL, JSON, KEY, ("baton-causation", twice.as_str()), ("baton-causation", twice.as_str())];
    site.send("POST", "/v1/runs", &headers, body()).await.refused(400, "validation_error");
    // It changes nothing about what a key may do.
    let reader = ("authorization", "Bearer reader");
    assert_eq!(ask(&site, reader, &claim(), &[KEY]).await.refused(403, "forbidden")["scopeRequired"], "runs:create");
    assert_eq!(runs(&site).await, 0);
}
