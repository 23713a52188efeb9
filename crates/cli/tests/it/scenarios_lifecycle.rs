//! From 201 to the last event: what a run promises, however it ends and however often it is asked for.

use crate::support;

use std::collections::BTreeSet;

use serde_json::json;
use support::test_server::test_server;
use support::web::{nodes_of, of_type, place};

#[test]
fn a_run_completes_and_its_snapshot_echoes_it() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(snapshot["workflowId"], "conformance-noop");
    assert_eq!(snapshot["owner"]["tenant"], "acme");
    assert!(snapshot["startedAt"].is_string() && snapshot["completedAt"].is_string());
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run.started", "node.started", "node.completed", "run.completed"]);
}

#[test]
fn an_input_comes_back_as_it_was() {
    let test_server = test_server();
    let web = test_server.web();
    let payload = json!({
        "text": "naïve – ☂", "number": 1.5, "big": 9_007_199_254_740_991_u64, "none": null, "yes": true,
        "list": [1, [2, {"three": []}]], "": {"deep": {"deeper": {"deepest": {}}}}
    });
    let run = web.start_with(json!({"workflowId": "conformance-identity", "inputs": {"payload": payload}}));
    let (snapshot, _) = web.ended(&run, "completed");
    assert_eq!(snapshot["variables"]["payload"], payload);
}

#[test]
fn undeclared_inputs_are_tolerated_and_declared_defaults_hold() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start_with(json!({"workflowId": "conformance-noop", "inputs": {"unknown": 1}}));
    web.ended(&run, "completed");
    let run = web.start_with(json!({"workflowId": "conformance-cancellable", "inputs": {}}));
    assert_eq!(web.until_status(&run, "running")["variables"]["delayMs"], 30_000);
    web.cancel(&run);
    web.ended(&run, "cancelled");
}

#[test]
fn tags_and_metadata_are_kept_and_change_nothing() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({
        "workflowId": "conformance-noop", "tags": ["one", "two"],
        "metadata": {"x-vendor.note": {"a": [1]}}, "configurable": {"vendor.key": 1}
    });
    let run = web.start_with(body.clone());
    let (mut snapshot, _) = web.ended(&run, "completed");
    // The host adds on whose behalf the run is.
    assert_eq!(snapshot["metadata"].as_object_mut().unwrap().remove("subject"), Some(json!("tenant:acme")));
    for member in ["tags", "metadata", "configurable"] {
        assert_eq!(snapshot[member], body[member], "{member}");
    }
}

#[test]
fn a_failure_names_its_code_in_the_snapshot_and_on_the_log() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-failure");
    let (snapshot, events) = web.ended(&run, "failed");
    assert_eq!(snapshot["error"]["code"], "conformance_test_failure");
    let failed = of_type(&events, "node.failed");
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["payload"]["nodeId"], "fail");
    assert_eq!(failed[0]["payload"]["error"]["code"], "conformance_test_failure");
    assert_eq!(events.last().unwrap()["payload"]["error"]["code"], "conformance_test_failure");
}

#[test]
fn two_readings_of_a_log_are_the_same() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(web.events(&run), events);
    let poll = || web.get(&format!("/v1/runs/{run}/events/poll")).expect(200);
    assert_eq!(poll(), poll());
    assert_eq!(poll()["events"], json!(events));
    let ids: BTreeSet<&str> = events.iter().map(|event| event["eventId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len());
}

#[test]
fn nodes_of_a_chain_complete_in_their_order() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-multi-node");
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(nodes_of(&events, "node.completed"), ["a", "b", "c"]);
    assert_eq!(nodes_of(&events, "node.started"), ["a", "b", "c"]);
}

#[test]
fn a_missing_capability_is_a_failed_run_not_a_refused_one() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-capability-missing");
    let (snapshot, events) = web.ended(&run, "failed");
    assert_eq!(snapshot["error"]["code"], "capability_not_provided");
    assert!(snapshot["error"]["message"].as_str().unwrap().contains("conformance.never-provided"), "{snapshot}");
    assert!(of_type(&events, "node.started").is_empty(), "{events:?}");
}

#[test]
fn a_node_type_that_needs_a_missing_capability_is_refused_at_registration() {
    let test_server = test_server();
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    assert_ne!(document["conversationPrimitive"], true);
    let gate = json!({
        "id": "talk", "typeId": "core.conversationGate", "name": "talk", "position": {"x": 0, "y": 0},
        "config": {}, "inputs": {}
    });
    let definition = json!({
        "id": "gated", "name": "gated", "version": "1", "nodes": [gate], "edges": [], "triggers": [],
        "variables": [], "metadata": {}, "settings": {}
    });
    let refusal = test_server.web().post("/v1/workflows", definition).refused(422, "capability_required");
    let details = &refusal["details"];
    assert_eq!((&details["nodeId"], &details["offendingTypeId"]), (&json!("talk"), &json!("core.conversationGate")));
    assert_eq!(details["requiredCapability"], "conversationPrimitive");
    test_server.web().post("/v1/runs", json!({"workflowId": "gated"})).refused(404, "workflow_not_found");
}

#[test]
fn a_running_run_is_cancelled_before_its_node_ends() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start_with(json!({"workflowId": "conformance-cancellable", "inputs": {"delayMs": 10_000}}));
    let running = web.until_status(&run, "running");
    assert_eq!(running["currentNodeId"], "wait");
    let answer = web.post(&format!("/v1/runs/{run}/cancel"), json!({"reason": "enough"})).expect(200);
    assert!(answer["status"] == "cancelled" || answer["status"] == "cancelling", "{answer}");
    let (_, events) = web.ended(&run, "cancelled");
    let payload = &events.last().unwrap()["payload"];
    assert_eq!(payload["reason"], "enough");
    assert!(payload.get("parentRunId").is_none(), "{payload}");
    assert!(of_type(&events, "node.completed").is_empty());
}

#[test]
fn cancelling_what_has_ended_says_how_it_ended() {
    let test_server = test_server();
    let web = test_server.web();
    for (workflow, status) in [("conformance-noop", "completed"), ("conformance-failure", "failed")] {
        let run = web.start(workflow);
        let (_, events) = web.ended(&run, status);
        assert_eq!(web.cancel(&run)["status"], status);
        assert_eq!(web.events(&run), events);
    }
    let run = web.start("conformance-cancellable");
    web.cancel(&run);
    web.ended(&run, "cancelled");
    assert_eq!(web.cancel(&run)["status"], "cancelled");
}

#[test]
fn many_are_cancelled_at_once_each_by_itself_and_in_order() {
    let test_server = test_server();
    let web = test_server.web();
    let waiting = [web.start("conformance-cancellable"), web.start("conformance-cancellable")];
    let done = web.start("conformance-noop");
    web.ended(&done, "completed");
    let ids = json!([waiting[1], "run_nowhere", done, waiting[0]]);
    let bulk = || web.post("/v1/runs:bulk-cancel", json!({"runIds": ids, "reason": "sweep"})).expect(200);
    let results = bulk()["results"].clone();
    let order: Vec<_> = results.as_array().unwrap().iter().map(|item| item["runId"].clone()).collect();
    assert_eq!(json!(order), ids);
    for at in [0, 3] {
        assert_eq!(results[at]["ok"], true);
        assert!(results[at]["status"] == "cancelled" || results[at]["status"] == "cancelling", "{results}");
    }
    assert_eq!((&results[1]["ok"], &results[1]["error"]["code"]), (&json!(false), &json!("not_found")));
    assert_eq!((&results[2]["ok"], &results[2]["error"]["code"]), (&json!(false), &json!("run_terminal")));
    for run in &waiting {
        web.ended(run, "cancelled");
    }
    let again = bulk()["results"].clone();
    assert_eq!((&again[0]["ok"], &again[0]["status"]), (&json!(true), &json!("cancelled")));

    web.post("/v1/runs:bulk-cancel", json!({"runIds": []})).refused(400, "validation_error");
    let many: Vec<String> = (0..101).map(|n| format!("run_{n}")).collect();
    let refusal = web.post("/v1/runs:bulk-cancel", json!({"runIds": many})).refused(400, "validation_error");
    assert!(refusal["details"]["maxRunIds"].as_u64().unwrap() >= 1);
    web.post("/v1/runs:bulk-cancel", json!({"runIds": [1]})).refused(400, "validation_error");
    web.post("/v1/runs:bulk-cancel", json!({"runIds": [done], "more": 1})).refused(400, "validation_error");
}

#[test]
fn the_same_request_under_one_key_is_one_run() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({"workflowId": "conformance-idempotent", "inputs": {"nonce": "n-1"}});
    let first = web.keyed("one-key", "/v1/runs", body.clone());
    assert_ne!(first.header("openwop-idempotent-replay"), Some("true"));
    let created = first.expect(201);
    web.ended(created["runId"].as_str().unwrap(), "completed");
    for _ in 0..5 {
        let again = web.keyed("one-key", "/v1/runs", body.clone());
        assert_eq!(again.header("openwop-idempotent-replay"), Some("true"));
        assert_eq!(again.expect(201), created);
    }
    // The order of members is not part of the request.
    let reordered = r#"{"inputs":{"nonce":"n-1"},  "workflowId":"conformance-idempotent"}"#;
    let headers = [("Authorization", "Bearer alpha"), ("Idempotency-Key", "one-key")];
    let again = support::http::exchange(&web.address, "POST", "/v1/runs", &headers, reordered.as_bytes()).unwrap();
    assert_eq!(again.expect(201), created);

    let other = json!({"workflowId": "conformance-idempotent", "inputs": {"nonce": "n-2"}});
    let clash = web.keyed("one-key", "/v1/runs", other).refused(409, "idempotency_key_mismatch");
    assert!(!clash.to_string().contains(created["runId"].as_str().unwrap()), "{clash}");
    // The key belongs to the tenant.
    let stranger = test_server.keyed("beta").keyed("one-key", "/v1/runs", body).expect(201);
    assert_ne!(stranger["runId"], created["runId"]);
}

#[test]
fn ten_equal_requests_at_once_are_one_run() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({"workflowId": "conformance-idempotent", "inputs": {"nonce": "at-once"}});
    let runs: BTreeSet<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..10).map(|_| scope.spawn(|| web.keyed("at-once", "/v1/runs", body.clone()))).collect();
        let answers = calls.into_iter().map(|call| call.join().unwrap());
        answers.map(|answer| answer.expect(201)["runId"].as_str().unwrap().to_owned()).collect()
    });
    assert_eq!(runs.len(), 1, "{runs:?}");
    web.ended(runs.first().unwrap(), "completed");
}

#[test]
fn distinct_keys_are_distinct_runs() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({"workflowId": "conformance-idempotent", "inputs": {"nonce": "same"}});
    let start = |key: &str| web.keyed(key, "/v1/runs", body.clone()).expect(201)["runId"].clone();
    assert_ne!(start("key-a"), start("key-b"));
}

#[test]
fn a_refused_request_does_not_use_up_its_key() {
    let test_server = test_server();
    let web = test_server.web();
    web.keyed("second-try", "/v1/runs", json!({})).refused(400, "validation_error");
    let created = web.keyed("second-try", "/v1/runs", json!({"workflowId": "conformance-noop"})).expect(201);
    web.ended(created["runId"].as_str().unwrap(), "completed");
    let long = "k".repeat(256);
    web.keyed(&long, "/v1/runs", json!({"workflowId": "conformance-noop"})).refused(400, "validation_error");
}

#[test]
fn a_scope_can_be_kept_to_one_active_run() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({"workflowId": "conformance-cancellable", "scopeId": "only-one"});
    let enforce = [("X-Dedup", "enforce")];
    let first = web.send("POST", "/v1/runs", &enforce, Some(&body)).expect(201);
    let second = web.send("POST", "/v1/runs", &enforce, Some(&body));
    let refusal = second.refused(409, "run_already_active");
    assert_eq!(refusal["details"]["activeRunId"], first["runId"]);
    assert!(second.header("retry-after").is_some());
    let run = first["runId"].as_str().unwrap();
    web.cancel(run);
    web.ended(run, "cancelled");
    let third = web.send("POST", "/v1/runs", &enforce, Some(&body)).expect(201);
    let run = third["runId"].as_str().unwrap();
    web.cancel(run);
    web.ended(run, "cancelled");
}

#[test]
fn an_engine_version_can_be_forced_within_the_advertised_range() {
    let test_server = test_server();
    let web = test_server.web();
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    let range = &document["testing"]["forceEngineVersionRange"];
    let body = json!({"workflowId": "conformance-version-fold"});
    let start =
        |version: i64| web.send("POST", "/v1/runs", &[("X-Force-Engine-Version", &version.to_string())], Some(&body));
    let run = start(range["min"].as_i64().unwrap()).expect(201)["runId"].as_str().unwrap().to_owned();
    let (_, events) = web.ended(&run, "completed");
    assert!(place(&events, "run.started") == 0);
    start(range["max"].as_i64().unwrap() + 1).refused(400, "unsupported_force_engine_version");
}

#[test]
fn many_runs_at_once_all_end_and_never_mix() {
    let test_server = test_server();
    let web = test_server.web();
    let runs: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..10)
            .map(|worker| {
                let web = web.clone();
                scope.spawn(move || {
                    let workflow = if worker % 2 == 0 { "conformance-multi-node" } else { "conformance-noop" };
                    (0..5).map(|_| web.start(workflow)).collect::<Vec<_>>()
                })
            })
            .collect();
        calls.into_iter().flat_map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), 50);
    for run in runs {
        web.ended(&run, "completed");
    }
}
