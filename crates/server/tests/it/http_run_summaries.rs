//! What the list of runs says of each, and finding runs by it.

use crate::support;
use baton_conformance::Conformance;

use std::sync::Arc;

use baton_model::{Event, RunId};
use baton_provider::{Price, Prices};
use baton_runtime::Host;
use baton_store::reads::*;
use baton_store::{Commit, Journal as _, LogChain, MemoryStore, RunRow, StoredRecord, Write};
use serde_json::{Value, json};
use support::{OTHER, Site, host_options};

/// The ids of the runs that a query finds, newest first.
async fn found(site: &Site, query: &str) -> Vec<String> {
    let answer = site.get(&format!("/v1/runs?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    let runs = answer.json()["runs"].as_array().unwrap().clone();
    runs.iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

async fn row(site: &Site, run: &str) -> Value {
    site.get(&format!("/v1/runs?idPrefix={run}")).await.json()["runs"][0].clone()
}

#[tokio::test]
async fn a_row_says_what_a_run_waits_for_and_stops_saying_it() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Publish?", "actions": ["accept", "reject"]})).await;
    site.register("plain", "core.noop", json!({})).await;
    let plain = site.completed("plain").await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;

    let waiting = row(&site, &run).await;
    let on = &waiting["summary"]["waitingOn"];
    assert_eq!((&on["kind"], &on["nodeId"], &on["question"]), (&json!("approval"), &json!("n"), &json!("Publish?")));
    assert_eq!((&on["open"], on["requestedAt"].is_string()), (&json!(1), true), "{waiting}");
    assert_eq!((&waiting["workflowVersion"], waiting["workflowDigest"].is_string()), (&json!(1), true));
    assert_eq!(waiting["events"], json!(site.log(&run).await.len()));
    assert_eq!(row(&site, &plain).await.get("summary"), None, "there is nothing to say");

    assert_eq!(found(&site, "waiting=true").await, [run.as_str()]);
    assert_eq!(found(&site, "waiting=false").await, [plain.as_str()]);
    assert_eq!(found(&site, "waiting=true&status=running").await, Vec::<String>::new());
    assert_eq!(found(&site, "q=gat").await, [run.as_str()]);
    assert_eq!(found(&site, &format!("q={}", &plain[..plain.len() - 1])).await, [plain.as_str()]);
    let after = waiting["updatedAt"].as_str().unwrap();
    assert!(found(&site, &format!("updatedBefore={after}")).await.contains(&run));
    assert_eq!(found(&site, "updatedBefore=2000-01-01T00:00:00Z").await, Vec::<String>::new());
    let foreign = site.send("GET", "/v1/runs?waiting=true", &[OTHER], "").await.json();
    assert_eq!(foreign["runs"], json!([]), "nobody else's");

    site.post(&format!("/v1/runs/{run}/interrupts/n"), json!({"resumeValue": {"action": "accept"}})).await;
    site.reach(&run, "completed").await;
    assert_eq!(row(&site, &run).await.get("summary"), None, "it waits for nothing any more");
}

#[tokio::test]
async fn a_paused_run_says_why() {
    let site = Site::open().await;
    site.register("slow", "core.delay", json!({"ms": 3_600_000})).await;
    let run = site.start("slow").await;
    let paused =
        site.post(&format!("/v1/runs/{run}:pause"), json!({"reason": "lunch", "drainPolicy": "immediate"})).await;
    assert_eq!(paused.status, 202, "{}", paused.text);
    site.reach(&run, "paused").await;
    assert_eq!(row(&site, &run).await["summary"]["pauseReason"], "lunch");
    site.post(&format!("/v1/runs/{run}:resume"), json!({})).await;
    assert_eq!(row(&site, &run).await.get("summary"), None);
}

#[tokio::test]
async fn a_parent_says_which_child_waits_and_how_many_there_are() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    site.register("above", "core.subWorkflow", json!({"workflowId": "gate"})).await;
    let run = site.start("above").await;
    site.reach(&run, "waiting-approval").await;
    let child = found(&site, &format!("parentRunId={run}")).await.remove(0);
    let summary = row(&site, &run).await["summary"].clone();
    assert_eq!((&summary["waitingOn"]["kind"], &summary["waitingOn"]["runId"]), (&json!("child"), &json!(child)));
    assert_eq!(summary["children"], 1, "{summary}");
    assert_eq!(found(&site, "topLevel=true").await, [run.as_str()]);
    assert_eq!(row(&site, &child).await["rootRunId"], json!(run));
}

/// A workflow that asks a model twice, one after the other.
fn asks() -> Value {
    let schema = json!({"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}});
    let ask = |id: &str| {
        json!({"id": id, "typeId": "core.ai.structuredOutput", "name": id, "position": {"x": 0, "y": 0},
            "config": {"provider": "mock", "model": "mock-mini", "outputSchema": schema},
            "inputs": {"prompt": {"type": "static", "value": "one two three four"}}})
    };
    let edge = json!({"id": "e", "sourceNodeId": "a", "targetNodeId": "b", "triggerRule": "all_complete"});
    json!({"id": "conformance-spends", "name": "s", "version": "1", "nodes": [ask("a"), ask("b")], "edges": [edge],
        "triggers": [], "variables": [], "metadata": {}, "settings": {}})
}

#[tokio::test]
async fn what_models_used_and_what_is_left_are_shown() {
    let price = Price { input: 1000.0, output: 1000.0, cache_read: None, cache_write: None };
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        options.prices = Prices::new([("mock-*".to_owned(), price)]);
    })
    .await;
    assert_eq!(site.post("/v1/workflows", asks()).await.status, 201);
    let start = async |budget: Value| {
        let body = json!({"workflowId": "conformance-spends", "configurable": {"budget": budget}});
        let answer = site.post("/v1/runs", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["runId"].as_str().unwrap().to_owned()
    };
    let rich = start(json!({"maxTokens": 1_000_000})).await;
    site.reach(&rich, "completed").await;
    let summary = row(&site, &rich).await["summary"].clone();
    let used = site.get(&format!("/v1/runs/{rich}")).await.json()["metrics"]["openwopCost"].clone();
    assert_eq!(summary["usage"]["inputTokens"], used["tokens"]["input"], "{summary} {used}");
    assert_eq!(summary["usage"]["outputTokens"], used["tokens"]["output"]);
    assert_eq!(summary["usage"]["costUsd"], used["usd"]);
    let tokens = &summary["budget"]["tokens"];
    assert_eq!(tokens["limit"], 1_000_000);
    assert!(tokens["spent"].as_u64().unwrap() >= used["tokens"]["output"].as_u64().unwrap(), "{summary}");
    assert_eq!(summary.get("overBudget"), None);

    let poor = start(json!({"maxTokens": 1})).await;
    site.reach(&poor, "failed").await;
    let summary = row(&site, &poor).await;
    assert_eq!(
        (&summary["summary"]["overBudget"], &summary["error"]["code"]),
        (&json!(true), &json!("budget_exhausted"))
    );
    assert_eq!(found(&site, "overBudget=true").await, [poor.as_str()]);
    assert_eq!(found(&site, "overBudget=false").await, [rich.as_str()]);
    let cost = used["usd"].as_f64().unwrap();
    assert_eq!(found(&site, &format!("minCostUsd={cost}")).await, [rich.as_str()]);
    assert_eq!(found(&site, &format!("minCostUsd={}", cost * 2.0)).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_replay_that_diverged_is_found() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::over(Host::open(store.clone(), host_options()).await.unwrap(), |_| {});
    let nodes = [("a", "core.noop", json!({})), ("b", "core.noop", json!({}))];
    site.register_chain("two", &nodes).await;
    let run = RunId::new(site.completed("two").await);
    let origin = store.run(&run).await.unwrap().unwrap();
    let twin = RunId::new(format!("{run}x"));
    let mut records = Vec::new();
    for stored in store.records(&run, 0, 1000).await.unwrap() {
        let mut record = stored.decode(&run).unwrap();
        if let Event::NodeCompleted(completed) = &mut record.event {
            completed.outputs.insert("surprise".to_owned(), json!(true));
        }
        records.push(StoredRecord::encode(&twin, &record));
    }
    let row_of = |next_seq| RunRow { id: twin.clone(), next_seq, chain: LogChain::default(), ..origin.clone() };
    let append = Write::Append { row: row_of(origin.next_seq), expected: 0, records };
    let writes = vec![Write::CreateRun(row_of(0)), append];
    store.submit(Commit::new(store.generation(), writes)).await.unwrap();

    let fork = site.forked(twin.as_str(), json!({"mode": "replay"}), "completed").await;
    let same = site.forked(run.as_str(), json!({"mode": "replay"}), "completed").await;
    assert_eq!(found(&site, "diverged=true").await, [fork.as_str()]);
    assert!(found(&site, "diverged=false").await.contains(&same));
    let shown = row(&site, &fork).await;
    assert_eq!((&shown["forkedFrom"]["runId"], &shown["forkedFrom"]["mode"]), (&json!(twin), &json!("replay")));
}
