//! Runs over HTTP: start, look, list, stop, and do it only once.

use crate::support;

use axum::body::Body;
use futures_util::future::{FutureExt as _, join_all};
use serde_json::{Value, json};
use support::{FULL, Site};

async fn site() -> Site {
    let site = Site::open().await;
    site.register("noop", "core.noop", json!({})).await;
    site.register("slow", "core.delay", json!({"ms": 60_000})).await;
    site
}

#[tokio::test]
async fn a_run_starts_ends_and_can_be_looked_at() {
    let site = site().await;
    let answer = site.post("/v1/runs", json!({"workflowId": "noop", "inputs": {"a": 1}, "tags": ["t"]})).await;
    assert_eq!(answer.status, 201);
    let created = answer.json();
    let run = created["runId"].as_str().unwrap();
    assert_eq!(created["eventsUrl"], format!("/v1/runs/{run}/events"));
    assert!(!["completed", "failed", "cancelled"].contains(&created["status"].as_str().unwrap()));
    site.reach(run, "completed").await;
    let snapshot = site.get(created["statusUrl"].as_str().unwrap()).await.json();
    assert_eq!((&snapshot["runId"], &snapshot["status"]), (&json!(run), &json!("completed")));
    let listed = site.get("/v1/runs?status=completed&tag=t&workflowId=noop").await.json();
    assert_eq!(listed["runs"][0]["runId"], run);
    assert_eq!(site.get("/v1/runs?status=failed").await.json()["runs"], json!([]));
}

#[tokio::test]
async fn pages_cover_every_run_once_newest_first() {
    let site = site().await;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.push(json!(site.start("noop").await));
    }
    started.reverse();
    let (mut listed, mut cursor) = (Vec::<Value>::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/runs?limit=2{cursor}")).await.json();
        listed.extend(page["runs"].as_array().unwrap().iter().map(|run| run["runId"].clone()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(listed, started);
}

#[tokio::test]
async fn the_same_key_and_request_start_one_run() {
    let site = site().await;
    let first = site.keyed("k", "/v1/runs", json!({"workflowId": "noop", "inputs": {"a": 1, "b": 2}})).await;
    assert_eq!((first.status.as_u16(), first.header("openwop-idempotent-replay")), (201, "false"));
    for _ in 0..5 {
        let again = site.keyed("k", "/v1/runs", json!({"inputs": {"b": 2, "a": 1}, "workflowId": "noop"})).await;
        assert_eq!((again.status.as_u16(), again.header("openwop-idempotent-replay")), (201, "true"));
        assert_eq!(again.text, first.text);
    }
    let other = site.keyed("k", "/v1/runs", json!({"workflowId": "noop"})).await;
    other.refused(409, "idempotency_key_mismatch");
    assert!(!other.text.contains("runId"));
    let fresh = site.keyed("k2", "/v1/runs", json!({"workflowId": "noop"})).await;
    assert_ne!(fresh.json()["runId"], first.json()["runId"]);
    let foreign = site
        .send(
            "POST",
            "/v1/runs",
            &[support::OTHER, ("idempotency-key", "k")],
            json!({"workflowId": "noop"}).to_string(),
        )
        .await;
    foreign.refused(404, "workflow_not_found");
}

#[tokio::test]
async fn ten_at_once_under_one_key_are_one_run() {
    let site = site().await;
    let answers = join_all((0..10).map(|_| site.keyed("k", "/v1/runs", json!({"workflowId": "noop"})))).await;
    let fresh = answers.iter().filter(|answer| answer.header("openwop-idempotent-replay") == "false").count();
    assert_eq!(fresh, 1);
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.text == answers[0].text));
    assert_eq!(site.get("/v1/runs").await.json()["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_caller_who_hangs_up_and_asks_again_gets_the_same_run() {
    let site = site().await;
    let request = || site.keyed("k", "/v1/runs", json!({"workflowId": "noop"}));
    assert!(request().now_or_never().is_none(), "the first caller is gone before the answer");
    let again = request().await;
    assert_eq!((again.status.as_u16(), again.header("openwop-idempotent-replay")), (201, "true"));
    assert_eq!(site.get("/v1/runs").await.json()["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_the_caller_will_correct_is_not_kept_under_the_key() {
    let site = site().await;
    site.keyed("k", "/v1/runs", json!({"workflow": "noop"})).await.refused(400, "validation_error");
    assert_eq!(site.keyed("k", "/v1/runs", json!({"workflowId": "noop"})).await.status, 201);
    let long = "k".repeat(256);
    site.keyed(&long, "/v1/runs", json!({"workflowId": "noop"})).await.refused(400, "validation_error");
}

#[tokio::test]
async fn cancelling_works_once_and_is_harmless_after_the_end() {
    let site = site().await;
    let run = site.start("slow").await;
    let answer = site.send("POST", &format!("/v1/runs/{run}/cancel"), &[FULL], Body::empty()).await;
    assert_eq!(answer.status, 200);
    assert!(["cancelling", "cancelled"].contains(&answer.json()["status"].as_str().unwrap()));
    site.reach(&run, "cancelled").await;
    let done = site.start("noop").await;
    site.reach(&done, "completed").await;
    let answer = site.post(&format!("/v1/runs/{done}/cancel"), json!({"reason": "late"})).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (200, &json!("completed")));
    site.post("/v1/runs/run_nobody/cancel", json!({})).await.refused(404, "run_not_found");
    site.post(&format!("/v1/runs/{done}/cancel"), json!({"force": true})).await.refused(400, "validation_error");
}

#[tokio::test]
async fn a_bulk_cancel_answers_for_each_id_in_order() {
    let site = site().await;
    let (slow, done) = (site.start("slow").await, site.start("noop").await);
    site.reach(&done, "completed").await;
    let ids = json!({"runIds": ["run_nobody", slow, done]});
    for _ in 0..2 {
        let results = site.post("/v1/runs:bulk-cancel", ids.clone()).await.json()["results"].clone();
        assert_eq!((&results[0]["runId"], &results[0]["error"]["code"]), (&json!("run_nobody"), &json!("not_found")));
        assert_eq!((&results[1]["runId"], &results[1]["ok"]), (&json!(slow), &json!(true)));
        assert_eq!((&results[2]["runId"], &results[2]["error"]["code"]), (&json!(done), &json!("run_terminal")));
        site.reach(&slow, "cancelled").await;
    }
    let many = json!({"runIds": vec!["r"; 101]});
    let details = site.post("/v1/runs:bulk-cancel", many).await.refused(400, "validation_error");
    assert_eq!(details["maxRunIds"], 100);
    site.post("/v1/runs:bulk-cancel", json!({"runIds": []})).await.refused(400, "validation_error");
    site.post("/v1/runs:bulk-cancel", json!({"runIds": [1]})).await.refused(400, "validation_error");
}

#[tokio::test]
async fn a_pause_is_repeatable_under_its_key_only() {
    let site = site().await;
    let run = site.start("slow").await;
    let path = format!("/v1/runs/{run}:pause");
    let first = site.keyed("p", &path, json!({"drainPolicy": "immediate"})).await;
    assert_eq!((first.status.as_u16(), &first.json()["status"]), (202, &json!("paused")));
    assert!(first.json()["pausedAt"].is_string());
    let again = site.keyed("p", &path, json!({"drainPolicy": "immediate"})).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (202, first.text.as_str()));
    let conflict = site.post(&path, json!({})).await;
    assert_eq!(conflict.status, 409);
    assert_eq!(conflict.json()["details"]["runStatus"], "paused");
    let resumed = site.send("POST", &format!("/v1/runs/{run}:resume"), &[FULL], Body::empty()).await;
    assert_eq!((resumed.status.as_u16(), &resumed.json()["status"]), (202, &json!("running")));
    assert_eq!(site.post(&format!("/v1/runs/{run}:resume"), json!({})).await.status, 409);
}

#[tokio::test]
async fn a_gate_waits_for_its_answer() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;
    let open = site.get("/v1/interrupts").await.json();
    assert_eq!((&open["interrupts"][0]["runId"], &open["interrupts"][0]["nodeId"]), (&json!(run), &json!("n")));
    let path = format!("/v1/runs/{run}/interrupts/n");
    site.post(&path, json!({})).await.refused(400, "validation_error");
    site.post(&path, json!({"resumeValue": {"action": "dance"}})).await.refused(400, "validation_error");
    site.post(&format!("/v1/runs/{run}/interrupts/m"), json!({"resumeValue": 1}))
        .await
        .refused(404, "interrupt_not_found");
    let answer = site.post(&path, json!({"resumeValue": {"action": "accept"}})).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["nodeId"]), (200, &json!("n")), "{}", answer.text);
    site.reach(&run, "completed").await;
    assert_eq!(site.get("/v1/interrupts").await.json()["interrupts"], json!([]));
    site.send("GET", "/v1/interrupts/forged.token", &[], Body::empty()).await.refused(404, "interrupt_not_found");
}

#[tokio::test]
async fn a_signed_link_is_its_own_credential_and_works_once() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;
    let interrupt = site.get(&format!("/v1/runs/{run}")).await.json()["interrupt"].clone();
    let link = format!("/v1/interrupts/{}", interrupt["interruptToken"].as_str().unwrap());
    let open = site.send("GET", &link, &[], Body::empty()).await.json();
    assert_eq!((&open["runId"], &open["nodeId"], &open["kind"]), (&json!(run), &json!("n"), &json!("approval")));
    let accept = json!({"resumeValue": {"action": "accept"}}).to_string();
    let answer = site.send("POST", &link, &[("idempotency-key", "a")], accept.clone()).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["runId"]), (200, &json!(run)), "{}", answer.text);
    site.reach(&run, "completed").await;
    let again = site.send("POST", &link, &[("idempotency-key", "a")], accept.clone()).await;
    assert_eq!((again.header("openwop-idempotent-replay"), &again.text), ("true", &answer.text));
    site.send("POST", &link, &[], accept.clone()).await.refused(409, "interrupt_already_resolved");
    let forged = format!("{}x", link);
    site.send("POST", &forged, &[("idempotency-key", "a")], accept).await.refused(404, "interrupt_not_found");
}

#[tokio::test]
async fn workflows_are_versioned_by_content_and_read_back_verbatim() {
    let site = site().await;
    let listed = site.get("/v1/workflows").await.json();
    assert_eq!(listed["workflows"].as_array().unwrap().len(), 2);
    let first = site.get("/v1/workflows/noop").await;
    assert_eq!(first.json()["nodes"][0]["typeId"], "core.noop");
    let same = site.post("/v1/workflows", first.json()).await;
    assert_eq!((same.status.as_u16(), &same.json()["version"]), (200, &json!(1)));
    let mut changed = first.json();
    changed["name"] = json!("renamed");
    let new = site.post("/v1/workflows", changed).await;
    assert_eq!((new.status.as_u16(), &new.json()["version"]), (201, &json!(2)));
    let headers = [FULL, ("if-none-match", first.header("etag"))];
    assert_eq!(site.send("GET", "/v1/workflows/noop", &headers, Body::empty()).await.status, 200);
    site.get("/v1/workflows/nobody").await.refused(404, "workflow_not_found");
    site.post("/v1/workflows", json!({"id": "x"})).await.refused(400, "validation_error");
}

#[tokio::test]
async fn webhooks_are_registered_and_removed() {
    let site = Site::open().await;
    let body = json!({"url": "https://hooks.example.com/x", "events": ["run.completed"]});
    let answer = site.post("/v1/webhooks", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let registered = answer.json();
    assert_eq!(registered["secret"].as_str().unwrap().len(), 64);
    assert_eq!(registered["secretFingerprint"].as_str().unwrap().len(), 8);
    let path = format!("/v1/webhooks/{}", registered["webhookId"].as_str().unwrap());
    assert_eq!(site.send("DELETE", &path, &[FULL], Body::empty()).await.status, 204);
    site.send("DELETE", &path, &[FULL], Body::empty()).await.refused(404, "subscription_not_found");
    let loopback = json!({"url": "https://127.0.0.1/x", "events": ["*"]});
    site.post("/v1/webhooks", loopback).await.refused(400, "webhook_url_rejected");
    site.post("/v1/webhooks", json!({"url": "not a url", "events": ["*"]})).await.refused(400, "validation_error");
    site.post("/v1/webhooks", json!({"events": ["*"]})).await.refused(400, "validation_error");
}

/// While nothing is shown otherwise, a reader that knows it gets no body. Children count, though they are not in the log.
#[tokio::test]
async fn a_run_that_did_not_change_is_not_sent_again() {
    let site = Site::conforming().await;
    let claims = site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json();
    assert_eq!(claims["restTransport"]["conditionalRunGet"], true);
    // One who may not answer is shown no link, so the view does not age.
    let read = async |run: &str, tag: &str| {
        site.send("GET", &format!("/v1/runs/{run}"), &[support::READER, ("if-none-match", tag)], Body::empty()).await
    };
    let run = site.start("conformance-approval").await;
    site.reach(&run, "waiting-approval").await;
    let first = read(&run, "\"other\"").await;
    let tag = first.header("etag").to_owned();
    assert_eq!((first.status.as_u16(), tag.starts_with('"')), (200, true), "a strong one");
    for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let again = read(&run, &known).await;
        assert_eq!(
            (again.status.as_u16(), again.text.as_str(), again.header("etag")),
            (304, "", tag.as_str()),
            "{known}"
        );
    }
    let mine = site.get(&format!("/v1/runs/{run}")).await;
    assert_ne!(mine.header("etag"), tag, "who may answer is shown more");
    let answered =
        site.post(&format!("/v1/runs/{run}/interrupts/gate"), json!({"resumeValue": {"action": "accept"}})).await;
    assert_eq!(answered.status, 200, "{}", answered.text);
    site.reach(&run, "completed").await;
    let ended = read(&run, &tag).await;
    assert_eq!(ended.status, 200, "it has changed");
    assert_eq!(read(&run, ended.header("etag")).await.status, 304);
    site.post(&format!("/v1/runs/{run}:prune"), json!({})).await;
    assert_eq!(read(&run, ended.header("etag")).await.status, 200, "retention shows, and no sequence moved");
}

#[tokio::test]
async fn a_run_is_packed_for_whoever_takes_it_so() {
    use std::io::Read as _;
    let site = Site::open().await;
    site.register("w", "core.noop", json!({})).await;
    let key = ["sk-", "ant-9Lt7Nw2QrZ0aB8mYjPpQe"].concat();
    let started = site.post("/v1/runs", json!({"workflowId": "w", "inputs": {"note": key}})).await.json();
    let run = started["runId"].as_str().unwrap();
    site.reach(run, "completed").await;
    let claims = site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json();
    let path = format!("/v1/runs/{run}");
    let plain = site.send("GET", &path, &[FULL, ("accept-encoding", "identity")], Body::empty()).await;
    assert_eq!((plain.header("content-encoding"), plain.text.contains(&key)), ("", false));
    for coding in claims["restTransport"]["contentEncodings"].as_array().unwrap() {
        let coding = coding.as_str().unwrap();
        assert_eq!(coding, "gzip", "no other is read here");
        let request =
            axum::http::Request::builder().uri(&path).header(FULL.0, FULL.1).header("accept-encoding", coding);
        let response = site.raw(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.headers()["content-encoding"], coding);
        let tag = response.headers()["etag"].to_str().unwrap().to_owned();
        assert_ne!(tag, plain.header("etag"), "other bytes");
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, plain.text, "the same view, masked before it was packed");
        let again =
            site.send("GET", &path, &[FULL, ("accept-encoding", coding), ("if-none-match", &tag)], Body::empty()).await;
        assert_eq!((again.status.as_u16(), again.size), (304, 0));
    }
}
