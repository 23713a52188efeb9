//! The signed link to an open question is a credential. A key that may not answer is shown it nowhere.

use crate::support;
use baton_conformance::Conformance;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use baton_model::Scope;
use baton_runtime::Host;
use baton_server::Keys;
use baton_store::MemoryStore;
use serde_json::{Value, json};
use support::{Answer, FULL, JSON, PATIENCE, Site, host_options};

/// Every scope but the one to answer.
const WATCHER: (&str, &str) = ("authorization", "Bearer watcher");
/// How much of a link names its run: whatever has this is a link to it, however long it may live.
const NAMES_ITS_RUN: usize = 60;

async fn site(conformance: bool) -> Site {
    let mut options = host_options();
    options.test_hooks = Conformance::hooks().filter(|_| conformance);
    let host = Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    Site::over(host, |server| server.keys = keys())
}

fn keys() -> Keys {
    let scopes = Scope::ALL.iter().filter(|scope| **scope != Scope::ApprovalsRespond).map(|scope| scope.as_str());
    Keys::parse(&format!("full:acme,watcher:acme:{}", scopes.collect::<Vec<_>>().join("+"))).unwrap()
}

/// One workflow for each way to ask.
async fn workflows(site: &Site) -> Vec<&'static str> {
    let approval = json!({"title": "Go?", "actions": ["accept", "reject"]});
    site.register("approval", "core.approvalGate", approval).await;
    let questions = json!({"questions": [{"id": "q1", "question": "Which?"}]});
    site.register("clarification", "core.clarificationGate", questions).await;
    site.register("custom", "core.interrupt", json!({"kind": "custom", "data": {"hint": 1}})).await;
    let decide = |decision: Value| json!({"rules": [{"when": "iteration == 1", "decide": decision}], "otherwise": {"kind": "terminate", "reason": "done"}});
    let unsure = decide(json!({"kind": "next-worker", "nextWorkerIds": ["approval"], "confidence": 0.1}));
    let asks = decide(json!({"kind": "ask-user", "prompt": "Which way?"}));
    for (id, rules) in [("held", unsure), ("ask-user", asks)] {
        let dispatch = ("dispatch", "core.dispatch", json!({"fanOutPolicy": "sequential"}));
        site.register_chain(id, &[("lead", "core.orchestrator.supervisor", rules), dispatch]).await;
    }
    site.register("parent", "core.subWorkflow", json!({"workflowId": "approval"})).await;
    vec!["approval", "clarification", "custom", "held", "ask-user", "parent"]
}

/// A run that waits, its link if it has one itself, and the node.
struct Waiting {
    run: String,
    node: String,
    /// Beginnings of the links to it and to what it waits for.
    secrets: Vec<String>,
}

async fn waiting(site: &Site, workflow: &str) -> Waiting {
    let run = site.start(workflow).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut after = String::new();
    loop {
        let page = site.get(&format!("/v1/runs/{run}/events/poll?timeout=1{after}")).await.json();
        if page["runStatus"].as_str().unwrap().starts_with("waiting") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{run} is {}", page["runStatus"]);
        after = format!("&lastSequence={}", page["lastEventSeq"]);
    }
    let mut secrets = Vec::new();
    let mut node = "n".to_owned();
    let view = site.get(&format!("/v1/runs/{run}")).await.json();
    let children = view["childRuns"].as_array().cloned().unwrap_or_default();
    let views =
        std::iter::once(run.clone()).chain(children.iter().map(|child| child["runId"].as_str().unwrap().to_owned()));
    for id in views {
        let open = site.get(&format!("/v1/runs/{id}")).await.json()["interrupt"].clone();
        if let Some(token) = open["interruptToken"].as_str() {
            assert!(open["callbackUrl"].as_str().unwrap().ends_with(token), "who may answer has both");
            secrets.push(token[..NAMES_ITS_RUN].to_owned());
            node = open["nodeId"].as_str().unwrap().to_owned();
        }
    }
    assert!(!secrets.is_empty(), "{workflow} asks nothing: {view}");
    Waiting { run, node, secrets }
}

/// Every operation of the host, as its own document lists them; the route table is tested against it.
async fn operations(site: &Site) -> Vec<(String, String)> {
    let document = site.get("/v1/openapi.json").await.json();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            all.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(all.len() > 60, "{}", all.len());
    all
}

fn filled(path: &str, waiting: &Waiting) -> String {
    let mut path = path.replace("{runId}", &waiting.run).replace("{nodeId}", &waiting.node);
    for (gap, value) in [
        ("{artifactId}", "a"),
        ("{workflowId}", "approval"),
        ("{version}", "1"),
        ("{agentId}", "none"),
        ("{toolId}", "none"),
        ("{templateId}", "none"),
        ("{path}", "a.md"),
        ("{scope}", waiting.run.as_str()),
        ("{conversationId}", "none"),
        ("{entryId}", "none"),
        ("{webhookId}", "none"),
        ("{letterId}", "none"),
        ("{token}", "guess"),
        ("{tokenId}", "none"),
        ("{runnerId}", "none"),
        ("{key}", "none"),
        ("{file}", "none"),
    ] {
        path = path.replace(gap, value);
    }
    assert!(!path.contains('{'), "{path}");
    path
}

/// Something that the operation may take.
fn body_for(method: &str, path: &str, waiting: &Waiting) -> String {
    match (method, path) {
        ("GET" | "DELETE", _) => String::new(),
        (_, "/v1/runs") => json!({"workflowId": "approval"}).to_string(),
        (_, path) if path.ends_with(":fork") => json!({"mode": "branch", "fromSeq": 3}).to_string(),
        (_, path) if path.ends_with(":bulk-cancel") => json!({"runIds": [waiting.run]}).to_string(),
        (_, path) if path.contains("/memory/") => json!({"content": "c"}).to_string(),
        (_, path) if path.contains("/files/") => json!({"content": "c"}).to_string(),
        (_, path) if path.contains("/interrupts/") || path.contains("/approvals/") => {
            json!({"resumeValue": {"action": "accept"}}).to_string()
        }
        _ => "{}".to_owned(),
    }
}

/// Asks for a stream and reads what there is to be told, to its end: the host stops.
async fn whole_stream(site: &Site, path: &str, key: (&str, &str)) -> Answer {
    let site = Site::over(site.host.clone(), |server| server.keys = keys());
    let request = Request::builder().uri(path).header(key.0, key.1).header("accept", "text/event-stream");
    let response = site.raw(request.body(Body::empty()).unwrap()).await;
    site.shutdown.cancel();
    let (parts, body) = response.into_parts();
    let bytes = tokio::time::timeout(PATIENCE, to_bytes(body, usize::MAX)).await.expect("the stream ends").unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Answer { status: parts.status, headers: parts.headers, text, size: bytes.len() }
}

#[track_caller]
fn tells_nothing(answer: &Answer, secrets: &[String], context: &str) {
    let headers = format!("{:?}", answer.headers);
    for secret in secrets {
        assert!(!answer.text.contains(secret) && !headers.contains(secret), "{context}: {}", answer.text);
    }
    for field in ["\"interruptToken\":\"", "\"callbackUrl\":\""] {
        assert!(!answer.text.contains(field), "{context}: {}", answer.text);
    }
}

#[tokio::test]
async fn no_answer_of_any_route_holds_a_link_for_who_may_not_answer() {
    let site = site(false).await;
    let kinds = workflows(&site).await;
    let all = operations(&site).await;
    let (mut fine, mut looked, mut runners) = (0, 0, 0);
    for workflow in &kinds {
        let kept = waiting(&site, workflow).await;
        for (method, path) in &all {
            // What changes something gets a run of its own, so that every other one still waits.
            let own = if method == "GET" { None } else { Some(waiting(&site, workflow).await) };
            let target = own.as_ref().unwrap_or(&kept);
            let context = format!("{workflow}: {method} {path}");
            let mut secrets = kept.secrets.clone();
            secrets.extend(target.secrets.clone());
            if path == "/v1/host/baton/activity" {
                continue;
            }
            let (place, body) = (filled(path, target), body_for(method, path, target));
            let answer = site.send(method, &place, &[WATCHER, JSON], body).await;
            tells_nothing(&answer, &secrets, &context);
            fine += usize::from(answer.status.is_success());
            looked += 1;
            // What a runner's token opens, no key does.
            runners += usize::from(answer.text.contains("This needs a runner's token"));
        }
        let run = &kept.run;
        for query in [
            "",
            "?streamMode=values",
            "?streamMode=updates",
            "?streamMode=messages",
            "?streamMode=debug",
            "?streamMode=updates,messages",
            "?bufferMs=5000",
        ] {
            let path = format!("/v1/runs/{run}/events{query}");
            let answer = whole_stream(&site, &path, WATCHER).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            tells_nothing(&answer, &kept.secrets, &path);
        }
        tells_nothing(&whole_stream(&site, "/v1/host/baton/activity", WATCHER).await, &kept.secrets, "activity");
        for path in [
            format!("/v1/host/baton/runs/{run}/state?at=2"),
            format!("/v1/runs/{run}:diff?against={run}"),
            "/v1/runs?limit=100".to_owned(),
            format!("/v1/interrupts?runId={run}"),
        ] {
            tells_nothing(&site.send("GET", &path, &[WATCHER, JSON], Body::empty()).await, &kept.secrets, &path);
        }
    }
    assert_eq!(looked, kinds.len() * (all.len() - 1), "every operation but the stream, which was read apart");
    assert!(fine > (looked - runners) / 3, "{fine} of {looked} told anything, {runners} are for runners");
}

#[tokio::test]
async fn seams_tell_nothing_either() {
    let site = site(true).await;
    let kinds = workflows(&site).await;
    for workflow in kinds {
        let kept = waiting(&site, workflow).await;
        let path = format!("/v1/host/sample/test/runs/{}/events", kept.run);
        tells_nothing(&site.send("GET", &path, &[WATCHER, JSON], Body::empty()).await, &kept.secrets, &path);
        let path = format!("/v1/host/sample/test/runs/{}/variables", kept.run);
        let body = json!({"variables": {"a": 1}}).to_string();
        tells_nothing(&site.send("POST", &path, &[WATCHER], body).await, &kept.secrets, &path);
    }
}

#[tokio::test]
async fn who_may_answer_has_the_link_wherever_it_was() {
    let site = site(false).await;
    workflows(&site).await;
    let kept = waiting(&site, "approval").await;
    let values = whole_stream(&site, &format!("/v1/runs/{}/events?streamMode=values", kept.run), FULL).await;
    assert!(values.text.contains(&kept.secrets[0]), "{}", values.text);
    let view = site.get(&format!("/v1/runs/{}", kept.run)).await;
    assert_eq!(view.header("cache-control"), "no-store", "nobody on the way keeps a credential");
}

#[tokio::test]
async fn the_address_of_a_link_is_kept_quiet() {
    let site = site(false).await;
    workflows(&site).await;
    let kept = waiting(&site, "approval").await;
    let view = site.get(&format!("/v1/runs/{}", kept.run)).await.json();
    let link = format!("/v1/interrupts/{}", view["interrupt"]["interruptToken"].as_str().unwrap());
    let answer = json!({"resumeValue": {"action": "accept"}}).to_string();
    let forged = format!("{link}x");
    let tries = [
        ("GET", &link, String::new(), 200),
        ("GET", &forged, String::new(), 404),
        ("POST", &forged, answer.clone(), 404),
        ("POST", &link, "{}".to_owned(), 400),
        ("POST", &link, answer.clone(), 200),
        // It was good for one answer to one question.
        ("POST", &link, answer, 409),
        ("GET", &link, String::new(), 409),
    ];
    for (method, path, body, status) in tries {
        let answer = site.send(method, path, &[], body).await;
        assert_eq!(answer.status, status, "{method}: {}", answer.text);
        let quiet = (answer.header("cache-control"), answer.header("referrer-policy"));
        assert_eq!(quiet, ("no-store", "no-referrer"), "{method} {status}");
    }
}
