//! Limits that bind, channels that fold, and runs that start runs.

use crate::support;

use serde_json::{Value, json};
use support::flow::{chain, node};
use support::test_server::test_server;
use support::web::{nodes_of, of_type, place};

#[test]
fn a_bound_on_node_starts_binds_before_the_start() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start_with(json!({"workflowId": "conformance-cap-breach", "configurable": {"recursionLimit": 3}}));
    let (snapshot, events) = web.ended(&run, "failed");
    assert_eq!(snapshot["error"]["code"], "recursion_limit_exceeded");
    let breaches = of_type(&events, "cap.breached");
    assert_eq!(breaches.len(), 1);
    let payload = &breaches[0]["payload"];
    assert_eq!((&payload["kind"], &payload["limit"]), (&json!("node-executions"), &json!(3)));
    assert!(payload["observed"].as_u64().unwrap() > 3);
    assert_eq!((&payload["nodeId"], &breaches[0]["nodeId"]), (&json!("n4"), &json!("n4")));
    assert!(place(&events, "cap.breached") < place(&events, "run.failed"));
    assert_eq!(nodes_of(&events, "node.started"), ["n1", "n2", "n3"]);
    let enough = json!({"workflowId": "conformance-cap-breach", "configurable": {"recursionLimit": 6}});
    web.ended(&web.start_with(enough), "completed");
}

#[test]
fn a_bound_on_time_ends_the_run_with_the_breach_on_the_log() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({"workflowId": "conformance-run-duration-breach", "configurable": {"runTimeoutMs": 1000}});
    let run = web.start_with(body);
    let (snapshot, events) = web.ended(&run, "failed");
    assert_eq!(snapshot["error"]["code"], "run_timeout");
    let breaches = of_type(&events, "cap.breached");
    assert_eq!(breaches.len(), 1);
    let payload = &breaches[0]["payload"];
    assert_eq!((&payload["kind"], &payload["limit"]), (&json!("run-duration"), &json!(1000)));
    assert!(payload["observed"].as_u64().unwrap() > 1000, "{payload}");
}

#[test]
fn a_bound_out_of_range_is_refused_at_the_door() {
    let test_server = test_server();
    let web = test_server.web();
    for configurable in [
        json!({"recursionLimit": 0}),
        json!({"recursionLimit": "3"}),
        json!({"recursionLimit": 1.5}),
        json!({"runTimeoutMs": -1}),
    ] {
        let body = json!({"workflowId": "conformance-noop", "configurable": configurable});
        web.post("/v1/runs", body).refused(400, "validation_error");
    }
    // More than the host allows is cut down to what it allows.
    let body = json!({"workflowId": "conformance-noop", "configurable": {"recursionLimit": 1_000_000_000}});
    web.ended(&web.start_with(body), "completed");
}

#[test]
fn a_workflow_may_say_what_can_be_configured() {
    let test_server = test_server();
    let web = test_server.web();
    let workflow = "conformance-configurable-schema";
    let definition = web.get(&format!("/v1/workflows/{workflow}")).expect(200);
    assert_eq!(definition["configurableSchema"]["additionalProperties"], false);
    let start =
        |configurable: Value| web.post("/v1/runs", json!({"workflowId": workflow, "configurable": configurable}));
    for configurable in [json!({"recursionLimit": "many"}), json!({"unknown": 1}), json!({"tags": [1]})] {
        let answer = start(configurable);
        assert!(matches!(answer.status, 400 | 422), "{}", answer.text());
        answer.refused(answer.status, "validation_error");
    }
    let run = start(json!({"recursionLimit": 5, "tags": ["a"]})).expect(201)["runId"].as_str().unwrap().to_owned();
    web.ended(&run, "completed");
}

#[test]
fn old_values_leave_a_channel_before_a_new_one_enters() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-channel-ttl");
    let (snapshot, events) = web.ended(&run, "completed");
    let kept = snapshot["variables"]["events"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0]["value"], "d");
    assert!(kept[0]["_ts"].is_u64());
    let written: Vec<&Value> =
        of_type(&events, "channel.written").iter().map(|event| &event["payload"]["value"]).collect();
    assert_eq!(written, ["a", "b", "c", "d"]);
}

#[test]
fn appends_keep_the_order_of_the_log() {
    let test_server = test_server();
    let web = test_server.web();
    let write = |at: usize| {
        node(&format!("w{at}"), "core.channelWrite", json!({"channelName": "notes", "reducer": "append", "value": at}))
    };
    web.post("/v1/workflows", chain("append-order", (0..5).map(write).collect())).expect(201);
    let run = web.start("append-order");
    let (snapshot, events) = web.ended(&run, "completed");
    let written: Vec<Value> =
        of_type(&events, "channel.written").iter().map(|event| event["payload"]["value"].clone()).collect();
    assert_eq!(json!(written), json!([0, 1, 2, 3, 4]));
    assert_eq!(snapshot["variables"]["notes"], json!(written));
}

#[test]
fn a_message_is_taken_once() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-message-reducer");
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(of_type(&events, "channel.written").len(), 2);
    assert_eq!(snapshot["channels"]["messages"].as_array().unwrap().len(), 1, "{snapshot}");
}

#[test]
fn a_child_gives_its_result_to_its_parent_and_keeps_its_own_log() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-subworkflow-parent");
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(snapshot["variables"]["childOutcome"], "child-completed");
    let child = snapshot["childRuns"][0]["runId"].as_str().unwrap();
    assert_eq!(snapshot["childRuns"][0]["status"], "completed");
    let called = events
        .iter()
        .find(|event| event["type"] == "node.completed" && event["nodeId"] == "subwf-call")
        .expect("the call completes");
    assert_eq!(called["payload"]["outputs"], json!({"childRunId": child, "childStatus": "completed"}));
    let (snapshot, own) = web.ended(child, "completed");
    assert_eq!((&snapshot["parentRunId"], &snapshot["parentNodeId"]), (&json!(run), &json!("subwf-call")));
    assert_eq!(snapshot["owner"]["tenant"], "acme");
    assert!(!nodes_of(&own, "node.started").is_empty());
    assert!(nodes_of(&events, "node.started").iter().all(|node| !nodes_of(&own, "node.started").contains(node)));
}

#[test]
fn a_child_is_fed_by_its_parent() {
    let test_server = test_server();
    let web = test_server.web();
    let fed = |workflow: &str| {
        let (snapshot, _) = web.ended(&web.start(workflow), "completed");
        let child = snapshot["childRuns"][0]["runId"].as_str().unwrap().to_owned();
        web.ended(&child, "completed").0["variables"]["receivedPrdId"].clone()
    };
    // What the parent gives wins over the child's own default; what it does not have leaves that default alone.
    assert_eq!(fed("conformance-subworkflow-input-mapping"), "prd-1");
    assert_eq!(fed("conformance-subworkflow-input-mapping-no-default"), "baked-in");
}

#[test]
fn an_unknown_child_fails_the_node_that_calls_it() {
    let test_server = test_server();
    let web = test_server.web();
    let call = node("call", "core.subWorkflow", json!({"workflowId": "no-such-child"}));
    web.post("/v1/workflows", chain("calls-nobody", vec![call])).expect(201);
    let (snapshot, events) = web.ended(&web.start("calls-nobody"), "failed");
    assert_eq!(snapshot["error"]["code"], "unknown_child_workflow");
    assert_eq!(nodes_of(&events, "node.failed"), ["call"]);
}

#[test]
fn a_failed_child_fails_its_parent_unless_absorbed() {
    let test_server = test_server();
    let web = test_server.web();
    for (policy, status) in [("fail-parent", "failed"), ("absorb", "completed")] {
        let id = format!("calls-failure-{policy}");
        let call =
            node("call", "core.subWorkflow", json!({"workflowId": "conformance-failure", "onChildFailure": policy}));
        web.post("/v1/workflows", chain(&id, vec![call])).expect(201);
        let run = web.start(&id);
        let (snapshot, _) = web.ended(&run, status);
        assert_eq!(snapshot["childRuns"][0]["status"], "failed");
        web.ended(snapshot["childRuns"][0]["runId"].as_str().unwrap(), "failed");
    }
}

#[test]
fn a_run_that_calls_itself_comes_to_an_end() {
    let test_server = test_server();
    let web = test_server.web();
    let call = node("again", "core.subWorkflow", json!({"workflowId": "endless"}));
    web.post("/v1/workflows", chain("endless", vec![call])).expect(201);
    let (snapshot, _) = web.ended(&web.start("endless"), "failed");
    assert!(snapshot["error"]["code"].is_string(), "{snapshot}");
}
