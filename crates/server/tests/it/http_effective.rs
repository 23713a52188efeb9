//! What an agent comes to on this host, and who answered a question.

use crate::support;

use axum::body::Body;
use baton_model::{AgentCard, MemoryShape, TenantId};
use baton_runtime::AgentRegistry;
use serde_json::json;
use support::agents::{EDITOR, editor, staffed};
use support::{OTHER, Site};

#[tokio::test]
async fn the_manifest_is_narrowed_by_what_there_is_and_by_a_grant() {
    let card = AgentCard {
        tools: vec!["openwop:memory.list".to_owned(), "acme:missing".to_owned()],
        memory: MemoryShape { long_term: true, ..MemoryShape::default() },
        threshold: Some(0.9),
        ..editor()
    };
    let site = Site::configured(|options| {
        drop(staffed(options, [card]));
        options.limits.max_loop_iterations = 12;
    })
    .await;
    let path = format!("/v1/host/baton/agents/{EDITOR}/effective");
    let body = site.get(&path).await.json();
    assert_eq!((&body["agentId"], &body["packVersion"]), (&json!(EDITOR), &json!("1.2.0")));
    let tools: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["toolId"].clone()).collect();
    let available = tools.contains(&json!("openwop:memory.list"));
    let unavailable: Vec<_> = body["unavailable"].as_array().unwrap().clone();
    assert!(unavailable.contains(&json!("acme:missing")), "{body}");
    assert_eq!(available, !unavailable.contains(&json!("openwop:memory.list")), "{body}");
    assert_eq!(body["confidence"], json!({"threshold": 0.9, "from": "agent", "decisionFloor": 0.5}));
    assert_eq!((&body["memory"]["longTerm"], &body["bounds"]["maxLoopIterations"]), (&json!(true), &json!(12)));
    assert_eq!(body["model"]["class"], "writing", "{body}");
    assert_eq!(body["model"]["configured"], true);
    assert!(!body.to_string().contains("SYSTEM-PROMPT-TEXT"));

    let granted = site.get(&format!("{path}?toolGrant=acme:other")).await.json();
    assert_eq!(granted["tools"], json!([]), "a grant of something else leaves nothing");
    site.get("/v1/host/baton/agents/vendor.acme.team.nobody/effective").await.refused(404, "not_found");
}

#[tokio::test]
async fn another_tenants_agent_is_unknown() {
    let acme = TenantId::new("acme");
    let site = Site::configured(|options| {
        drop(staffed(options, []));
        options.agent_registry = AgentRegistry::default().with(Some(&acme), editor());
    })
    .await;
    let path = format!("/v1/host/baton/agents/{EDITOR}/effective");
    assert_eq!(site.get(&path).await.status, 200);
    site.send("GET", &path, &[OTHER], Body::empty()).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_second_answer_is_told_who_was_faster() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;
    let token = site.get(&format!("/v1/runs/{run}")).await.json()["interrupt"]["interruptToken"].clone();
    let link = format!("/v1/interrupts/{}", token.as_str().unwrap());
    let accept = json!({"resumeValue": {"action": "accept"}});
    let path = format!("/v1/runs/{run}/interrupts/n");
    assert_eq!(site.post(&path, accept.clone()).await.status, 200);
    site.reach(&run, "completed").await;

    let log = site.log(&run).await;
    let resolved = log.iter().find(|event| event["type"] == "interrupt.resolved").unwrap();
    let details = site.post(&path, accept.clone()).await.refused(409, "interrupt_already_resolved");
    assert_eq!((&details["resolvedAt"], &details["sequence"]), (&resolved["timestamp"], &resolved["sequence"]));
    assert_eq!(details["resolvedBy"], resolved["payload"]["resolvedBy"]);
    assert!(details["resolvedBy"].is_string(), "{details}");
    assert_eq!(details["outcome"], resolved["payload"]["outcome"]);
    let late = site.send("POST", &link, &[], accept.to_string()).await.refused(409, "interrupt_already_resolved");
    assert_eq!(late["resolvedAt"], details["resolvedAt"]);
    let looked = site.send("GET", &link, &[], Body::empty()).await.refused(409, "interrupt_already_resolved");
    assert_eq!(looked["resolvedBy"], details["resolvedBy"]);
}
