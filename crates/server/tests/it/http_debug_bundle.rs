//! The debug bundle: enough to find out what happened, nothing of what it happened to.

use crate::support;

use axum::body::Body;
use baton_model::Secret;
use serde_json::{Value, json};
use support::protocol::judge;
use support::{OTHER, READER, Site};

async fn bundle(site: &Site, run: &str) -> Value {
    let answer = site.send("GET", &format!("/v1/runs/{run}/debug-bundle"), &[READER], Body::empty()).await;
    assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (200, "no-store"), "{}", answer.text);
    let body = answer.json();
    assert_eq!((&body["redactionApplied"], &body["redactionMode"]), (&json!(true), &json!("omit")));
    assert_eq!(body["metrics"]["eventCount"], json!(body["events"].as_array().unwrap().len()));
    body
}

#[tokio::test]
async fn it_holds_the_run_every_event_and_who_wrote_it() {
    let site = Site::conforming().await;
    let claims = site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json();
    assert_eq!(claims["debugBundle"], json!({"supported": true}));
    for workflow in ["conformance-multi-node", "conformance-dispatch-loop", "conformance-subworkflow-parent"] {
        let run = site.completed(workflow).await;
        let body = bundle(&site, &run).await;
        judge("debug-bundle", &body);
        assert_eq!((&body["bundleVersion"], &body["host"]["name"]), (&json!("1.0"), &json!("Baton")));
        assert_eq!(body["host"]["version"], claims["implementation"]["version"]);
        assert!(body["generatedAt"].is_string() && body.get("truncated").is_none());
        let seen = site.get(&format!("/v1/runs/{run}")).await.json();
        for member in ["runId", "workflowId", "status", "startedAt", "completedAt", "atSeq", "nodeStates", "childRuns"]
        {
            assert_eq!(body["run"].get(member), seen.get(member), "{workflow} {member}");
        }
        assert_eq!(body["metrics"]["nodeCount"], json!(seen["nodeStates"].as_object().unwrap().len()));
        let (told, log) = (body["events"].as_array().unwrap(), site.log(&run).await);
        assert_eq!(told.len(), log.len());
        for (told, event) in told.iter().zip(&log) {
            for member in ["eventId", "sequence", "type", "timestamp", "nodeId", "causationId", "runId"] {
                assert_eq!(told.get(member), event.get(member), "{workflow} {member}");
            }
        }
    }
}

fn named<'a>(body: &'a Value, name: &str) -> Vec<&'a Value> {
    body["spans"].as_array().unwrap().iter().filter(|span| span["name"] == name).collect()
}

#[tokio::test]
async fn its_spans_tell_what_took_how_long_and_below_what() {
    let site = Site::conforming().await;
    let run = site.completed("conformance-subworkflow-parent").await;
    let child = site.get(&format!("/v1/runs/{run}")).await.json()["childRuns"][0]["runId"].as_str().unwrap().to_owned();
    let (above, below) = (bundle(&site, &run).await, bundle(&site, &child).await);
    let hex = |value: &Value, length: usize| {
        value.as_str().is_some_and(|text| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for body in [&above, &below] {
        judge("debug-bundle", body);
        for span in body["spans"].as_array().unwrap() {
            assert!(hex(&span["spanId"], 16) && hex(&span["traceId"], 32), "{span}");
            assert!(span["startedAt"].is_string() && span["endedAt"].is_string(), "{span}");
            assert_eq!((&span["kind"], &span["status"]["code"]), (&json!("internal"), &json!("ok")), "{span}");
            assert_eq!(span["traceId"], above["spans"][0]["traceId"], "one trace for the tree");
        }
    }
    let [root] = named(&above, "openwop.run")[..] else { panic!("{above}") };
    assert_eq!((&root["parentSpanId"], &root["attributes"]["openwop.run_id"]), (&Value::Null, &json!(run)));
    let [call] = named(&above, "openwop.node.core.subWorkflow")[..] else { panic!("{above}") };
    assert_eq!(call["parentSpanId"], root["spanId"]);
    let [called] = named(&below, "openwop.run")[..] else { panic!("{below}") };
    assert_eq!(called["parentSpanId"], call["spanId"]);
    assert_eq!(called["attributes"]["openwop.parent.run_id"], json!(run));

    // A run that waits: the question is under way, what came before it is over.
    let run = site.start("conformance-approval").await;
    site.reach(&run, "waiting-approval").await;
    let body = bundle(&site, &run).await;
    let [question] = named(&body, "openwop.interrupt")[..] else { panic!("{body}") };
    assert_eq!((&question["endedAt"], &question["status"]["code"]), (&Value::Null, &json!("unset")));
    assert_eq!(named(&body, "openwop.run")[0]["attributes"]["baton.outcome"], "suspended");
}

#[tokio::test]
async fn a_failure_keeps_its_code_its_place_and_its_words() {
    let site = Site::conforming().await;
    let run = site.start("conformance-failure").await;
    site.reach(&run, "failed").await;
    let body = bundle(&site, &run).await;
    let seen = site.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(body["run"]["error"]["code"], seen["error"]["code"]);
    assert_eq!(body["run"]["error"]["message"], seen["error"]["message"]);
    let failed = body["events"].as_array().unwrap().iter().find(|event| event["type"] == "node.failed").unwrap();
    assert_eq!(failed["payload"]["nodeId"], "fail");
    assert_eq!(failed["payload"]["error"]["code"], seen["error"]["code"]);
}

/// Everything a caller can put in, each with a value of its own.
#[tokio::test]
async fn nothing_that_a_caller_gave_comes_out() {
    let site = Site::open().await;
    let nodes = [
        ("copy", "core.setVariable", json!({"name": "copied", "expression": "variables.apiKey + '!'"})),
        ("ask", "core.clarificationGate", json!({"questions": [{"id": "q1", "question": "canary-question?"}]})),
        ("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})),
    ];
    site.register_chain("leaky", &nodes).await;
    let start = json!({
        "workflowId": "leaky", "inputs": {"apiKey": "canary-input", "nested": {"list": ["canary-nested"]}},
        "metadata": {"k": "canary-metadata"}, "tags": ["canary-tag"], "configurable": {"own": "canary-configurable"},
    });
    let run = site.post("/v1/runs", start).await.json()["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "waiting-input").await;
    let waiting = bundle(&site, &run).await;
    assert!(waiting["run"]["interrupt"]["nodeId"] == "ask");
    assert!(waiting["run"]["interrupt"].get("interruptToken").is_none(), "a link is a key");
    let answers = json!({"resumeValue": {"answers": {"q1": "canary-answer"}}});
    assert_eq!(site.post(&format!("/v1/runs/{run}/interrupts/ask"), answers).await.status, 200);
    site.reach(&run, "waiting-approval").await;
    let cancel = json!({"reason": "canary-reason"});
    assert_eq!(site.post(&format!("/v1/runs/{run}/cancel"), cancel).await.status, 200);
    site.reach(&run, "cancelled").await;
    let log = json!(site.log(&run).await).to_string();
    for given in ["input", "nested", "metadata", "tag", "question", "answer", "reason"] {
        assert!(log.contains(&format!("canary-{given}")), "the log has {given}, so the test means something");
    }
    for told in [waiting, bundle(&site, &run).await] {
        assert!(!told.to_string().contains("canary"), "{told:#}");
        assert!(told["run"].get("inputs").is_none() && told["run"].get("variables").is_none());
    }
}

#[tokio::test]
async fn a_registered_secret_is_not_even_in_a_name() {
    const CANARY: &str = "skcanary7q2mzx91";
    let site = Site::configured(|options| options.secrets = vec![Secret::new("canary", CANARY)]).await;
    site.register_chain("named", &[(CANARY, "core.noop", json!({})), ("end", "core.noop", json!({}))]).await;
    let run = site.completed("named").await;
    assert!(site.get(&format!("/v1/runs/{run}")).await.text.contains(CANARY), "it was a node's name");
    let told = bundle(&site, &run).await;
    assert!(!told.to_string().contains(CANARY), "{told:#}");
    assert_eq!(told["run"]["nodeStates"]["[REDACTED:canary]"]["status"], "completed");
}

#[tokio::test]
async fn it_is_for_readers_of_the_tenant_and_needs_the_log() {
    let site = Site::conforming().await;
    let run = site.completed("conformance-noop").await;
    let path = format!("/v1/runs/{run}/debug-bundle");
    let foreign = site.send("GET", &path, &[OTHER], Body::empty()).await;
    let unknown = site.send("GET", "/v1/runs/run_nobody/debug-bundle", &[OTHER], Body::empty()).await;
    foreign.refused(404, "run_not_found");
    assert_eq!(foreign.text, unknown.text);
    site.send("GET", &path, &[], Body::empty()).await.refused(401, "unauthenticated");
    let keys = "blind:acme:runs:create";
    let narrow = Site::over(site.host.clone(), |options| options.keys = baton_server::Keys::parse(keys).unwrap());
    let answer = narrow.send("GET", &path, &[("authorization", "Bearer blind")], Body::empty()).await;
    assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], "runs:read");
    assert_eq!(site.post(&format!("/v1/runs/{run}:prune"), json!({"log": true})).await.status, 200);
    site.get(&path).await.refused(410, "run_pruned");
}

#[tokio::test]
async fn a_long_log_is_told_from_its_first_page_to_its_last() {
    let site = Site::open().await;
    let nodes: Vec<_> = (0..600).map(|n| (format!("n{n}"), json!({}))).collect();
    let nodes: Vec<_> = nodes.iter().map(|(id, config)| (id.as_str(), "core.noop", config.clone())).collect();
    let big = Site::over(site.host.clone(), |options| options.max_body_bytes = 4 * 1024 * 1024);
    big.register_chain("long", &nodes).await;
    let run = site.completed("long").await;
    let told = bundle(&site, &run).await;
    let numbered: Vec<_> = told["events"].as_array().unwrap().iter().map(|event| event["sequence"].clone()).collect();
    let log: Vec<_> = site.log(&run).await.iter().map(|event| event["sequence"].clone()).collect();
    assert!(log.len() > 1024 && numbered == log);
}
