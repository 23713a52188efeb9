//! Which question an answer is for, over HTTP: the name it has everywhere, and what a late, a second and a foreign
//! answer hear.

use crate::support;

use baton_model::event::EscalationInterrupt;
use serde_json::{Value, json};
use support::{FULL, JSON, OTHER, READER, Site};

fn accept() -> Value {
    json!({"action": "accept"})
}

async fn doubtful(site: &Site) -> String {
    site.register("worker", "core.noop", json!({})).await;
    let rules = json!({
        "rules": [{
            "when": "iteration == 1",
            "decide": {"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.3},
        }],
        "otherwise": {"kind": "terminate", "reason": "enough", "confidence": 0.2},
    });
    let nodes = [("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", json!({}))];
    site.register_chain("doubtful", &nodes).await;
    site.start("doubtful").await
}

/// What the run asks, once it is something else than `before`.
async fn asked(site: &Site, run: &str, status: &str, before: Option<&str>) -> Value {
    let mut after = String::new();
    for _ in 0..100 {
        let page = site.get(&format!("/v1/runs/{run}/events/poll?timeout=1{after}")).await.json();
        after = format!("&lastSequence={}", page["lastEventSeq"]);
        let view = site.get(&format!("/v1/runs/{run}")).await.json();
        let open = &view["interrupt"];
        if open["interruptId"].is_string() && open["interruptId"].as_str() != before {
            assert_eq!(view["status"], status, "{view}");
            return open.clone();
        }
    }
    panic!("{run} asks nothing new");
}

#[tokio::test]
async fn a_question_has_one_name_wherever_it_shows() {
    let site = Site::open().await;
    let run = doubtful(&site).await;
    let open = asked(&site, &run, "waiting-approval", None).await;
    let id = &open["interruptId"];
    let listed = site.get(&format!("/v1/interrupts?runId={run}")).await.json();
    assert_eq!(&listed["interrupts"][0]["interruptId"], id);
    let link = site.get(&format!("/v1/interrupts/{}", open["interruptToken"].as_str().unwrap())).await.json();
    assert_eq!(&link["interruptId"], id);
    for event in site.log(&run).await {
        if ["node.suspended", "interrupt.requested", "approval.requested"].contains(&event["type"].as_str().unwrap()) {
            assert_eq!(&event["payload"]["interruptId"], id, "{event}");
        }
    }
}

#[tokio::test]
async fn a_second_click_answers_nothing() {
    let site = Site::open().await;
    let run = doubtful(&site).await;
    let path = format!("/v1/runs/{run}/interrupts/lead");
    let first = asked(&site, &run, "waiting-approval", None).await["interruptId"].as_str().unwrap().to_owned();
    let body = json!({"interruptId": first, "resumeValue": accept()});
    assert_eq!(site.post(&path, body.clone()).await.status, 200);
    let second = asked(&site, &run, "waiting-approval", Some(&first)).await["interruptId"].clone();
    for again in [body, json!({"resumeValue": accept()}), json!({"interruptId": null, "resumeValue": accept()})] {
        let refused = site.post(&path, again).await.refused(409, "interrupt_already_resolved");
        assert_eq!(refused["openInterruptId"], second, "{refused}");
    }
    // Nobody else hears of it, and nothing odd is taken for a name.
    let named = json!({"interruptId": second, "resumeValue": accept()}).to_string();
    site.send("POST", &path, &[OTHER, JSON], named.clone()).await.refused(404, "run_not_found");
    site.send("POST", &path, &[READER, JSON], named).await.refused(403, "forbidden");
    for odd in [json!(1), json!(["x"]), json!({"id": second})] {
        site.post(&path, json!({"interruptId": odd, "resumeValue": accept()})).await.refused(400, "validation_error");
    }
    let long = json!({"interruptId": "x".repeat(50_000), "resumeValue": accept()});
    let refused = site.post(&path, long).await;
    refused.refused(409, "interrupt_already_resolved");
    assert!(refused.text.len() < 2000, "what was sent is not sent back");
    assert_eq!(site.post(&path, json!({"interruptId": second, "resumeValue": accept()})).await.status, 200);
    site.reach(&run, "completed").await;
    let late = json!({"interruptId": first, "resumeValue": accept()});
    site.post(&path, late).await.refused(409, "interrupt_already_resolved");
}

#[tokio::test]
async fn an_answer_may_be_the_whole_body_under_the_older_name() {
    let site = Site::open().await;
    site.register("gated", "core.approvalGate", json!({"actions": ["accept", "reject"]})).await;
    for body in [
        accept(),
        json!({"resumeValue": accept()}),
        json!({"action": "accept", "interruptId": "int:n:1"}),
        json!({"resumeValue": accept(), "interruptId": "int:n:1"}),
    ] {
        let run = site.start("gated").await;
        site.reach(&run, "waiting-approval").await;
        let answered = site.post(&format!("/v1/runs/{run}/approvals/n"), body.clone()).await;
        assert_eq!(answered.status, 200, "{body}: {}", answered.text);
        site.reach(&run, "completed").await;
    }
    let run = site.start("gated").await;
    site.reach(&run, "waiting-approval").await;
    let path = format!("/v1/runs/{run}/approvals/n");
    let refused = site.post(&path, json!({"interruptId": "int:n:2", "action": "accept"})).await;
    refused.refused(409, "interrupt_already_resolved");
    for bad in [
        json!({}),
        json!({"act": "accept"}),
        json!({"action": "nonsense"}),
        json!({"action": "accept", "interruptId": 1}),
    ] {
        site.post(&path, bad).await.refused(400, "validation_error");
    }
    let elsewhere = site.post(&format!("/v1/runs/{run}/interrupts/n"), accept()).await;
    elsewhere.refused(400, "validation_error");
}

#[tokio::test]
async fn a_link_that_leads_nowhere_is_no_matter_of_the_body() {
    let site = Site::open().await;
    for body in ["", "{", "[]", "{}", r#"{"resumeValue":1,"x":2}"#, r#"{"resumeValue":{"action":"accept"}}"#] {
        for headers in [&[JSON][..], &[JSON, ("idempotency-key", "k")]] {
            let refused = site.send("POST", "/v1/interrupts/unknown-token", headers, body.to_owned()).await;
            refused.refused(404, "interrupt_not_found");
        }
    }
    site.register("gated", "core.approvalGate", json!({})).await;
    let run = site.start("gated").await;
    let open = asked(&site, &run, "waiting-approval", None).await;
    let path = format!("/v1/interrupts/{}", open["interruptToken"].as_str().unwrap());
    site.send("POST", &path, &[JSON], "{".to_owned()).await.refused(400, "validation_error");
    let other = json!({"interruptId": "int:n:9", "resumeValue": accept()}).to_string();
    site.send("POST", &path, &[JSON], other).await.refused(409, "interrupt_already_resolved");
    let body = json!({"interruptId": open["interruptId"], "resumeValue": accept()}).to_string();
    assert_eq!(site.send("POST", &path, &[JSON], body).await.status, 200);
    site.send("POST", &path, &[JSON], "{".to_owned()).await.refused(409, "interrupt_already_resolved");
}

#[tokio::test]
async fn a_held_decision_shows_where_a_clarification_asks_about_it() {
    let site = Site::configured(|options| options.escalation.interrupt = EscalationInterrupt::Clarification).await;
    let run = doubtful(&site).await;
    let open = asked(&site, &run, "waiting-clarification", None).await;
    let wanted = json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.3});
    let link = site.get(&format!("/v1/interrupts/{}", open["interruptToken"].as_str().unwrap())).await.json();
    let listed = site.get(&format!("/v1/interrupts?runId={run}")).await.json()["interrupts"][0].clone();
    for seen in [&open, &link, &listed] {
        let question = &seen["data"]["questions"][0];
        assert!(question["question"].as_str().unwrap().contains("next-worker worker"), "{seen}");
        assert_eq!(question["schema"]["default"], wanted, "{seen}");
    }
    let summary = site.get(&format!("/v1/runs?idPrefix={run}")).await.text;
    assert!(summary.contains("next-worker worker"), "{summary}");
    let path = format!("/v1/runs/{run}/interrupts/lead");
    let body = json!({"interruptId": open["interruptId"], "resumeValue": {"answers": {"decision": "accept"}}});
    assert_eq!(site.post(&path, body).await.status, 200);
    let next = asked(&site, &run, "waiting-clarification", open["interruptId"].as_str()).await;
    // As an approval of the same would be answered.
    let body = json!({"interruptId": next["interruptId"], "resumeValue": accept()});
    assert_eq!(site.post(&path, body).await.status, 200);
    site.reach(&run, "completed").await;
}

#[tokio::test]
async fn a_run_that_is_being_paused_says_the_same_to_everybody_and_can_go_on_at_once() {
    let site = Site::open().await;
    site.register("slow", "core.delay", json!({"delayMs": 600_000})).await;
    let run = site.start("slow").await;
    site.reach(&run, "running").await;
    let drain = json!({"drainPolicy": "drain-current-node"});
    assert_eq!(site.post(&format!("/v1/runs/{run}:pause"), drain.clone()).await.status, 202);
    let refused = site.post(&format!("/v1/runs/{run}:pause"), drain).await.refused(409, "run_conflict");
    let view = site.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!((&refused["runStatus"], &refused["pausing"]), (&view["status"], &json!(true)));
    let resumed = site.post(&format!("/v1/runs/{run}:resume"), json!({})).await;
    assert_eq!((resumed.status.as_u16(), &resumed.json()["status"]), (202, &json!("running")), "{}", resumed.text);
    let refused = site.post(&format!("/v1/runs/{run}:resume"), json!({})).await.refused(409, "run_conflict");
    assert_eq!(refused["runStatus"], "running");
    let types: Vec<String> =
        site.log(&run).await.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert!(!types.contains(&"run.paused".to_owned()) && types.contains(&"run.resumed".to_owned()), "{types:?}");
    site.send("POST", &format!("/v1/runs/{run}/cancel"), &[FULL, JSON], "{}".to_owned()).await;
    site.reach(&run, "cancelled").await;
}
