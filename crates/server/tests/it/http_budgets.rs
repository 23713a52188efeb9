//! What discovery says about budgets is what the host does: one check per claim, each of which fails when the behaviour
//! is taken away.

use crate::support;
use baton_conformance::Conformance;

use axum::body::Body;
use baton_provider::{Price, Prices};
use serde_json::{Value, json};
use support::Site;

const FLOW: &str = "conformance-spends";

async fn claims(site: &Site) -> Value {
    site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json()
}

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "typeId": kind, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
}

/// These nodes, one after the other, whatever becomes of them.
async fn register(site: &Site, nodes: Vec<Value>, settings: Value) {
    let edge = |pair: &[Value]| {
        json!({"id": pair[1]["id"], "sourceNodeId": pair[0]["id"], "targetNodeId": pair[1]["id"],
            "triggerRule": "all_complete"})
    };
    let edges: Vec<Value> = nodes.windows(2).map(edge).collect();
    let definition = json!({"id": FLOW, "name": FLOW, "version": "1", "nodes": nodes, "edges": edges, "triggers": [],
        "variables": [], "metadata": {}, "settings": settings});
    let answer = site.post("/v1/workflows", definition).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

fn asks(times: usize) -> Vec<Value> {
    let schema = json!({"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}});
    let config = json!({"provider": "mock", "model": "mock-mini", "outputSchema": schema});
    let ask = |n: usize| {
        let mut node = node(&format!("ask{n}"), "core.ai.structuredOutput", config.clone());
        node["inputs"]["prompt"] = json!({"type": "static", "value": "one two three four ".repeat(25)});
        node
    };
    (0..times).map(ask).collect()
}

/// The end of a run with this budget: its error, and its log.
async fn spend(site: &Site, budget: Value) -> (Value, Vec<Value>) {
    let body = json!({"workflowId": FLOW, "configurable": {"budget": budget}});
    let answer = site.post("/v1/runs", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "failed").await;
    let log = site.log(&run).await;
    let error = log.last().unwrap()["payload"]["error"].clone();
    (error, log)
}

fn of<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

#[tokio::test]
async fn the_claims_fit_what_is_configured() {
    let claim = |dimensions: Value| json!({"supported": true, "dimensions": dimensions, "enforce": "hard", "scopes": ["run", "workflow"]});
    let plain = claims(&Site::open().await).await;
    assert_eq!(plain["budget"], claim(json!(["tokens", "toolCalls", "retries", "model"])));
    assert!(plain["limits"].get("maxBudgetTokens").is_none() && plain["limits"].get("maxBudgetCostUsd").is_none());
    let site = Site::configured(|options| {
        options.prices = prices();
        options.limits.max_budget_tokens = 1000;
        options.limits.max_budget_cost_cents = 250;
    })
    .await;
    let claims = claims(&site).await;
    assert_eq!(claims["budget"], claim(json!(["tokens", "cost", "toolCalls", "retries", "model"])));
    assert_eq!(
        (&claims["limits"]["maxBudgetTokens"], &claims["limits"]["maxBudgetCostUsd"]),
        (&json!(1000), &json!(2.5))
    );
    assert_eq!(claims["capabilities"]["budget"], claims["budget"]);
}

fn prices() -> Prices {
    let price = Price { input: 1000.0, output: 1000.0, cache_read: None, cache_write: None };
    Prices::new([("mock-*".to_owned(), price)])
}

#[tokio::test]
async fn tokens_are_bounded() {
    let site = Site::conforming().await;
    register(&site, asks(5), json!({})).await;
    let (error, log) = spend(&site, json!({"maxTokens": 400})).await;
    assert_eq!((&error["code"], &error["details"]["dimension"]), (&json!("budget_exhausted"), &json!("tokens")));
    assert_eq!(
        of(&log, "provider.usage").len(),
        2,
        "a hundred asked and one said each time, and too little left for a third"
    );
    assert_eq!(of(&log, "cap.breached")[0]["kind"], "budget-tokens");
}

#[tokio::test]
async fn a_run_over_budget_is_stopped() {
    let site = Site::conforming().await;
    register(&site, asks(5), json!({})).await;
    let (_, log) = spend(&site, json!({"maxTokens": 400, "thresholdPercent": 50})).await;
    let types: Vec<&str> = log.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let told: Vec<&&str> = types
        .iter()
        .filter(|kind| kind.starts_with("budget.") || kind.starts_with("cap.") || kind.starts_with("run."))
        .collect();
    assert_eq!(
        told,
        [
            &"run.started",
            &"budget.reserved",
            &"budget.consumed",
            &"budget.consumed",
            &"budget.threshold.crossed",
            &"budget.exhausted",
            &"cap.breached",
            &"run.failed"
        ]
    );
    log.iter().for_each(|event| support::protocol::judge("run-event", event));
}

#[tokio::test]
async fn tool_calls_are_bounded() {
    let site = Site::conforming().await;
    let call = |id: &str| node(id, "vendor.baton.http", json!({"url": "http://127.0.0.1:9/", "outcomePolicy": "fail"}));
    register(&site, vec![call("a"), call("b"), call("c")], json!({})).await;
    let (error, log) = spend(&site, json!({"maxToolCalls": 2})).await;
    assert_eq!((&error["code"], of(&log, "agent.toolCalled").len()), (&json!("budget_exhausted"), 2));
    assert_eq!(of(&log, "cap.breached")[0]["kind"], "budget-tool-calls");
}

#[tokio::test]
async fn retries_are_bounded() {
    let site = Site::conforming().await;
    let mut fails = node("a", "core.fail", json!({"code": "boom", "message": "It broke."}));
    fails["settings"] = json!({"maxRetries": 9, "retryDelayMs": 1});
    register(&site, vec![fails], json!({})).await;
    let (error, log) = spend(&site, json!({"maxRetries": 2})).await;
    assert_eq!((&error["code"], of(&log, "node.retried").len()), (&json!("budget_exhausted"), 2));
    assert_eq!(
        of(&log, "cap.breached")[0],
        &json!({"kind": "budget-retries", "limit": 2, "observed": 3, "nodeId": "a"})
    );
}

#[tokio::test]
async fn models_are_bounded() {
    let site = Site::conforming().await;
    register(&site, asks(1), json!({})).await;
    let (error, log) = spend(&site, json!({"modelAllow": ["mock-*"], "modelDeny": ["*-mini"]})).await;
    assert_eq!((&error["code"], of(&log, "provider.usage").len()), (&json!("budget_model_denied"), 0));
}

#[tokio::test]
async fn money_is_bounded_where_prices_are_known() {
    let site =
        Site::configured(|options| (options.test_hooks, options.prices) = (Conformance::hooks(), prices())).await;
    register(&site, asks(5), json!({})).await;
    let (error, log) = spend(&site, json!({"maxCostUsd": 0.4})).await;
    assert_eq!((&error["code"], &error["details"]["dimension"]), (&json!("budget_exhausted"), &json!("cost")));
    assert_eq!(
        of(&log, "provider.usage").iter().map(|usage| &usage["costEstimateUsd"]).collect::<Vec<_>>(),
        [0.101, 0.101]
    );
    assert_eq!(of(&log, "cap.breached")[0]["limit"], 0.4);
    let free = Site::conforming().await;
    register(&free, asks(1), json!({})).await;
    let body = json!({"workflowId": FLOW, "configurable": {"budget": {"maxCostUsd": 1}}});
    free.post("/v1/runs", body).await.refused(400, "validation_error");
}

#[tokio::test]
async fn the_workflow_has_a_say() {
    let site = Site::conforming().await;
    register(&site, asks(5), json!({"budget": {"maxTokens": 3}})).await;
    let (error, log) = spend(&site, json!({"maxTokens": 1000})).await;
    assert_eq!(error["code"], "budget_exhausted");
    assert_eq!(of(&log, "budget.reserved"), [&json!({"effectiveBudget": {"maxTokens": 3}, "scope": "workflow"})]);
}

#[tokio::test]
async fn the_host_has_the_last_word() {
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        options.limits.max_budget_tokens = 4;
    })
    .await;
    register(&site, asks(5), json!({})).await;
    let (error, log) = spend(&site, json!({"maxTokens": 1000})).await;
    assert_eq!(error["code"], "budget_exhausted");
    assert_eq!(of(&log, "budget.reserved")[0]["effectiveBudget"], json!({"maxTokens": 4}));
}

/// What the suite's own door shows is a run like any other.
#[tokio::test]
async fn the_seam_spends_a_real_budget() {
    let site = Site::conforming().await;
    let seam = |scenario: &str| site.post("/v1/host/sample/budget/run", json!({"scenario": scenario}));
    let hard = seam("hard-cost-exhaust").await.json();
    assert_eq!((&hard["outcome"], &hard["error"]), (&json!("failed"), &json!("budget_exhausted")), "{hard}");
    let log = site.log(hard["runId"].as_str().unwrap()).await;
    let first = |kind: &str| log.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    let order = ["budget.reserved", "budget.consumed", "budget.threshold.crossed", "budget.exhausted", "cap.breached"];
    assert!(order.windows(2).all(|pair| first(pair[0]) < first(pair[1])), "{log:?}");
    assert_eq!(of(&log, "cap.breached")[0]["kind"], "budget-tokens");
    let denied = seam("model-denied").await.json();
    assert_eq!((&denied["error"], &denied["modelCalled"]), (&json!("budget_model_denied"), &json!(false)));
    seam("advisory").await.refused(501, "capability_not_provided");
    seam("other").await.refused(400, "validation_error");
    let live = Site::open().await;
    live.post("/v1/host/sample/budget/run", json!({"scenario": "model-denied"})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_budget_is_refused_with_its_place() {
    let site = Site::conforming().await;
    register(&site, asks(1), json!({})).await;
    for (budget, path) in
        [(json!({"maxTokens": -1}), "/maxTokens"), (json!({"maxTime": 1}), "/maxTime"), (json!(7), "")]
    {
        let body = json!({"workflowId": FLOW, "configurable": {"budget": budget}});
        let details = site.post("/v1/runs", body).await.refused(400, "validation_error");
        assert_eq!(details["path"], format!("/configurable/budget{path}"));
    }
}
