#![allow(clippy::unwrap_used)]

use super::*;
use crate::body;
use serde_json::json;

fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn wanted(request: Value, headers: &[(&'static str, &str)]) -> Result<(Option<String>, StartRun), ApiError> {
    let caller = crate::auth::tests::caller("k:acme");
    super::check(body::parse(request.to_string().as_bytes())?, &caller, &map(headers), 100)
}

fn check(request: Value, headers: &[(&'static str, &str)]) -> Result<StartRun, ApiError> {
    wanted(request, headers).map(|(_, start)| start)
}

#[test]
fn a_full_request_is_carried_over() {
    let request = json!({
        "workflowId": "w", "inputs": {"a": 1}, "tenantId": "acme", "scopeId": "s", "configurable": {"recursionLimit": 3},
        "tags": ["t"], "metadata": {"k": {"n": [1]}},
    });
    let start = check(request, &[("x-dedup", "enforce"), ("x-force-engine-version", "-1")]).unwrap();
    assert_eq!((start.workflow_id.as_str(), start.scope_id.as_deref()), ("w", Some("s")));
    assert_eq!((start.exclusive, start.force_engine_version), (true, Some(-1)));
    assert_eq!(start.inputs["a"], 1);
    assert_eq!(start.configurable["recursionLimit"], 3);
}

#[test]
fn an_agent_stands_in_the_place_of_a_workflow() {
    let (agent, start) = wanted(json!({"agentId": "vendor.acme.team.editor", "inputs": {"task": "x"}}), &[]).unwrap();
    assert_eq!(agent.as_deref(), Some("vendor.acme.team.editor"));
    assert_eq!((start.workflow_id.as_str(), &start.inputs["task"]), ("", &json!("x")));
    assert_eq!(wanted(json!({"workflowId": "w"}), &[]).unwrap().0, None);
}

#[test]
fn refusals_name_their_place_and_status() {
    let long = "x".repeat(257);
    let cases = [
        (json!({}), 400, "validation_error"),
        (json!({"workflowId": ""}), 400, "validation_error"),
        (json!({"workflowId": "w".repeat(129)}), 400, "validation_error"),
        (json!({"workflowId": "w", "surprise": 1}), 400, "validation_error"),
        (json!({"workflowId": "w", "inputs": []}), 400, "validation_error"),
        (json!({"workflowId": "w", "tenantId": "other"}), 403, "forbidden"),
        (json!({"workflowId": "w", "tags": [""]}), 400, "validation_error"),
        (json!({"workflowId": "w", "tags": [long]}), 400, "validation_error"),
        (json!({"workflowId": "w", "tags": vec!["t"; 101]}), 400, "validation_error"),
        (json!({"workflowId": "w", "metadata": {"a": {"b": {"c": {"d": {}}}}}}), 400, "validation_error"),
        (json!({"workflowId": "w", "metadata": {"a": "x".repeat(100)}}), 400, "validation_error"),
        (json!({"workflowId": "w", "metadata": {"subject": "ann"}}), 400, "validation_error"),
        (json!({"mode": "eval"}), 501, "capability_not_provided"),
        (json!({"mode": "other", "workflowId": "w"}), 400, "validation_error"),
        (json!({"agentId": ""}), 400, "validation_error"),
        (json!({"agentId": "a".repeat(257)}), 400, "validation_error"),
        (json!({"agentId": "a", "mode": "eval"}), 501, "capability_not_provided"),
        (json!({"agentId": "a", "workflowId": "w"}), 400, "validation_error"),
        (json!({"workflowId": "w", "callbackUrl": "https://x.example"}), 501, "capability_not_provided"),
        (json!({"workflowId": "w", "residency": {"region": "eu"}}), 422, "residency_unavailable"),
    ];
    for (request, status, code) in cases {
        let error = check(request.clone(), &[]).unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (status, code), "{request}");
    }
    assert!(check(json!({"workflowId": "w", "metadata": {"a": {"b": {"c": {"d": 1}}}}}), &[]).is_ok());
    assert!(check(json!({"workflowId": "w"}), &[("x-dedup", "perhaps")]).is_err());
    let error = check(json!({"workflowId": "w"}), &[("x-force-engine-version", "two")]).unwrap_err();
    assert_eq!(error.code, "unsupported_force_engine_version");
}

#[test]
fn a_started_run_links_to_itself() {
    let started = StartedRun { run_id: RunId::new("run_1"), status: baton_model::RunStatus::Running };
    let (status, body) = render(&started);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 201);
    assert_eq!(
        body,
        json!({"runId": "run_1", "status": "running", "eventsUrl": "/v1/runs/run_1/events", "statusUrl": "/v1/runs/run_1"})
    );
}

#[test]
fn a_trace_is_carried_over_and_never_refused() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let of = |headers: &[(&'static str, &str)]| read_trace(&map(headers));
    let trace = of(&[("traceparent", parent), ("tracestate", "a=1")]).unwrap();
    assert_eq!((trace.parent.as_str(), trace.state.as_deref()), (parent, Some("a=1")));
    assert_eq!(of(&[("traceparent", parent)]).unwrap().state, None);
    assert_eq!(of(&[("traceparent", "nonsense"), ("tracestate", "a=1")]), None);
    assert_eq!(of(&[("tracestate", "a=1")]), None);
}
