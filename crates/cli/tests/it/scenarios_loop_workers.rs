//! What workers are given and what is taken over from them, one after the other and side by side.

use crate::support;

use serde_json::{Value, json};
use support::test_server::{conformance_host, test_server};
use support::wait_for;
use support::web::{Web, of_type};

const SEAM: &str = "/v1/host/sample";
const CHAIN: &str = "core.workflowChain.event";

fn test_endpoint(web: &Web, path: &str, body: Value) -> support::http::Answer {
    web.post(&format!("{SEAM}/{path}"), body)
}

/// The children of a run that has ended, in the order they were dispatched, each log audited.
fn children(web: &Web, events: &[Value]) -> Vec<Value> {
    let dispatched = of_type(events, "node.dispatched");
    dispatched
        .iter()
        .map(|event| {
            let child = event["payload"]["childRunId"].as_str().unwrap();
            let snapshot = web.snapshot(child);
            assert_eq!(snapshot["workflowId"], event["payload"]["childWorkflowId"]);
            assert_eq!(snapshot["parentRunId"], event["runId"]);
            web.ended(child, snapshot["status"].as_str().unwrap()).0
        })
        .collect()
}

fn completed(web: &Web, workflow: &str) -> (Value, Vec<Value>, Vec<Value>) {
    let (snapshot, events) = web.ended(&web.start(workflow), "completed");
    let children = children(web, &events);
    (snapshot, events, children)
}

fn collected(events: &[Value]) -> usize {
    of_type(events, CHAIN).iter().filter(|event| event["payload"]["phase"] == "output.harvested").count()
}

#[test]
fn a_worker_gets_what_the_mapping_names() {
    let test_server = test_server();
    let web = test_server.web();
    let (_, _, children) = completed(&web, "conformance-dispatch-input-mapping");
    assert_eq!(children.len(), 1);
    assert_eq!((&children[0]["status"], &children[0]["parentNodeId"]), (&json!("completed"), &json!("dispatch")));
    assert_eq!(children[0]["inputs"]["childGreeting"], "Alice");
    assert_eq!(children[0]["variables"]["childGreeting"], "Alice");
    // What the parent has not set is not there at all.
    let (_, _, children) = completed(&web, "conformance-dispatch-input-mapping-no-default");
    assert!(children[0]["inputs"].get("childGreeting").is_none(), "{children:?}");
    assert!(children[0]["variables"].get("childGreeting").is_none(), "{children:?}");
}

#[test]
fn the_outputs_of_a_worker_are_collected() {
    let test_server = test_server();
    let (snapshot, events, _) = completed(&test_server.web(), "conformance-dispatch-output-mapping");
    assert_eq!(snapshot["variables"]["parentResult"], "done");
    assert_eq!(collected(&events), 1);
}

/// A loop with one worker, registered in the short form test suites use, under a name of their taste.
fn one_worker(web: &Web, name: &str, worker: &str) -> String {
    let plan =
        json!([{"kind": "next-worker", "nextWorkerIds": [worker]}, {"kind": "terminate", "reason": "goal-reached"}]);
    let config = json!({
        "askUserRouting": "auto", "workerDispatchModel": "child-run", "fanOutPolicy": "sequential",
        "outputMapping": {"parentResult": "childOutcome"}
    });
    let nodes = json!([
        {"nodeId": "supervisor", "typeId": "core.orchestrator.supervisor", "config": {"mockDispatchPlan": plan}},
        {"nodeId": "dispatch", "typeId": "core.dispatch", "config": config},
    ]);
    let registered = test_endpoint(web, "workflows", json!({"workflowId": name, "nodes": nodes})).expect(201);
    assert_eq!(registered["workflowId"], name);
    web.start(name)
}

#[test]
fn outputs_of_a_failed_worker_are_never_collected_and_the_loop_goes_on() {
    let test_server = test_server();
    let web = test_server.web();
    let run = one_worker(&web, "any-name.with-dots-1", "conformance-dispatch-deterministic-fail-child");
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(collected(&events), 0);
    assert!(snapshot["variables"].get("parentResult").is_none());
    let failed = of_type(&events, CHAIN).into_iter().find(|event| event["payload"]["phase"] == "child.failed").unwrap();
    assert_eq!(failed["payload"]["error"]["code"], "hvmap_1b_failed_fixture");
    assert_eq!(children(&web, &events)[0]["status"], "failed");
}

#[test]
fn outputs_of_a_cancelled_worker_are_never_collected() {
    let test_server = test_server();
    let web = test_server.web();
    let run = one_worker(&web, "hvmap-cancelled", "conformance-dispatch-cancellable-child");
    let child = wait_for("the worker is dispatched", || {
        let events = web.events(&run);
        let event = of_type(&events, "node.dispatched").into_iter().next()?;
        assert_eq!(event["payload"]["childStatus"], "running");
        Some(event["payload"]["childRunId"].as_str().unwrap().to_owned())
    });
    web.cancel(&child);
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(collected(&events), 0);
    assert!(snapshot["variables"].get("parentResult").is_none());
    assert!(of_type(&events, CHAIN).iter().any(|event| event["payload"]["phase"] == "child.cancelled"));
    web.ended(&child, "cancelled");
}

#[test]
fn one_worker_feeds_the_next_and_an_override_replaces_the_default() {
    let test_server = test_server();
    let web = test_server.web();
    let (snapshot, events, children) = completed(&web, "conformance-dispatch-cross-worker-handoff");
    assert_eq!(snapshot["variables"]["sharedVar"], "hello");
    assert_eq!(children[1]["inputs"], json!({"input": "hello"}));
    // The second begins after the first is harvested.
    let phases: Vec<&Value> = of_type(&events, CHAIN).into_iter().map(|event| &event["payload"]["phase"]).collect();
    assert_eq!(
        phases[..5],
        ["dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested", "dispatch.began"]
    );
    let (_, _, children) = completed(&web, "conformance-dispatch-per-worker-override");
    assert_eq!(children[0]["inputs"], json!({"input": "default-x-value"}));
    assert_eq!(children[1]["inputs"], json!({"input": "shared-value"}));
}

#[test]
fn a_mapping_whose_capability_is_off_is_refused_by_name() {
    // Switches are the whole host's, so this host is nobody else's.
    let folder = tempfile::tempdir().unwrap();
    let host = conformance_host(folder.path(), &[]);
    let web = Web::new(&host.url, Some("alpha"));
    let toggle = |body: Value| test_endpoint(&web, "test/capability-toggle", body);
    assert_eq!(toggle(json!({"name": "__probe__", "value": null})).expect(200), json!({"overlay": {}}));
    // Without a supervisor, and with settings this host does not know: the capability is still what is named.
    let dispatch = json!([{"nodeId": "d", "typeId": "core.dispatch",
        "config": {"nextWorkerIds": ["conformance-noop"], "inputMapping": {"a": "b"}}}]);
    let call = json!([{"nodeId": "s", "typeId": "core.subWorkflow",
        "config": {"childWorkflowId": "conformance-noop", "inputMapping": {"a": "b"}}}]);
    let table = [("agents.dispatchMapping", dispatch), ("subWorkflow.inputMapping", call)];
    for (capability, nodes) in &table {
        let register = || test_endpoint(&web, "workflows", json!({"workflowId": "refused-mapping", "nodes": nodes}));
        let overlay = toggle(json!({"name": capability, "value": false})).expect(200);
        assert_eq!(overlay, json!({"overlay": {*capability: false}}));
        assert_eq!(register().refused(400, "validation_error")["details"]["requiredCapability"], *capability);
        assert_eq!(toggle(json!({"name": capability, "value": null})).expect(200), json!({"overlay": {}}));
        assert!(register().refused(400, "validation_error")["details"].get("requiredCapability").is_none());
    }
    for reset in [("test/capability-toggle", json!({"reset": true})), ("test/reset", json!({}))] {
        toggle(json!({"name": "agents.dispatchMapping", "value": false})).expect(200);
        test_endpoint(&web, reset.0, reset.1).expect(200);
        assert_eq!(toggle(json!({"name": "__probe__", "value": null})).expect(200), json!({"overlay": {}}));
    }
    toggle(json!({})).refused(400, "validation_error");
    let run = one_worker(&web, "mapped-again", "conformance-dispatch-output-mapping-child");
    assert_eq!(web.ended(&run, "completed").0["variables"]["parentResult"], "done");
}

#[test]
fn a_sub_workflow_reports_its_child() {
    let test_server = test_server();
    let (snapshot, events, children) = completed(&test_server.web(), "conformance-subworkflow-parent");
    let call = of_type(&events, "node.completed").into_iter().find(|event| event["nodeId"] == "subwf-call").unwrap();
    let outputs = &call["payload"]["outputs"];
    assert_eq!((&outputs["childRunId"], &outputs["childStatus"]), (&children[0]["runId"], &json!("completed")));
    assert_eq!(children[0]["parentNodeId"], "subwf-call");
    assert_eq!(snapshot["variables"]["childOutcome"], "child-completed");
}

#[test]
fn a_sub_workflow_is_seeded_once() {
    let test_server = test_server();
    let web = test_server.web();
    let (_, _, children) = completed(&web, "conformance-subworkflow-input-mapping");
    assert_eq!(children[0]["variables"]["receivedPrdId"], "prd-1");
    let (_, _, children) = completed(&web, "conformance-subworkflow-input-mapping-no-default");
    assert_ne!(children[0]["variables"].get("receivedPrdId"), Some(&Value::Null));
    // What happens to the parent later does not reach the child.
    let run = web.start("conformance-subworkflow-mid-run-mutation");
    let snapshot = web.until_status(&run, "waiting-approval");
    let child = snapshot["childRuns"][0]["runId"].as_str().unwrap();
    let path = format!("test/runs/{run}/variables");
    let changed = test_endpoint(&web, &path, json!({"variables": {"currentPrdId": "changed-id"}})).expect(200);
    assert_eq!(changed["variables"]["currentPrdId"], "changed-id");
    assert_eq!(web.snapshot(&run)["variables"]["currentPrdId"], "changed-id");
    assert_eq!(web.snapshot(child)["variables"]["receivedPrdId"], "seeded-id");
    web.resolve(child, "child-gate", json!({"action": "accept"})).expect(200);
    web.ended(&run, "completed");
    assert_eq!(web.ended(child, "completed").0["variables"]["receivedPrdId"], "seeded-id");
    let foreign = test_server.keyed("beta");
    test_endpoint(&foreign, &path, json!({"variables": {}})).refused(404, "run_not_found");
}

/// A fan-out through the seam; its log, and each child's, audited.
fn fan_out(web: &Web, workers: &[&str], config: Value) -> Value {
    let answer = test_endpoint(web, "dispatch/fanout", json!({"nextWorkerIds": workers, "config": config})).expect(200);
    let status = if answer["joinOutcome"] == "failed" { "failed" } else { "completed" };
    let (_, events) = web.ended(answer["runId"].as_str().unwrap(), status);
    children(web, &events);
    let (fan_out, join) = (of_type(&events, "core.dispatch.fanOut"), of_type(&events, "core.dispatch.join"));
    assert_eq!((fan_out.len(), join.len()), (1, 1));
    assert_eq!(fan_out[0]["payload"]["childCount"], workers.len());
    assert_eq!(fan_out[0]["causationId"], join[0]["causationId"]);
    assert_eq!(join[0]["payload"]["mergeOrder"], answer["mergeOrder"]);
    assert_eq!(answer["children"].as_array().unwrap().len(), workers.len());
    answer
}

fn parallel(join: Value) -> Value {
    json!({"fanOutPolicy": "parallel", "joinPolicy": join})
}

#[test]
fn a_fan_out_joins_by_its_policy() {
    const SLOW: &str = "conformance-dispatch-cancellable-child";
    const FAILS: &str = "conformance-dispatch-deterministic-fail-child";
    const QUICK: &str = "conformance-noop";
    let test_server = test_server();
    let web = test_server.web();
    let names = ["conformance.child.a", "conformance.child.b", "conformance.child.c"];
    let all = fan_out(&web, &names, parallel(json!({"mode": "wait-all", "onChildFailure": "collect"})));
    assert_eq!((&all["joinOutcome"], all["mergeOrder"].as_array().unwrap().len()), (&json!("satisfied"), 3));
    assert!(all["children"].as_array().unwrap().iter().all(|child| child["childStatus"] == "completed"));
    let bounded = json!({"fanOutPolicy": "parallel", "maxConcurrency": 1});
    assert_eq!(fan_out(&web, &names, bounded)["completedCount"], 3);

    let table = [
        (json!({"mode": "first"}), vec![SLOW, QUICK], "satisfied", ["cancelled", "completed"]),
        (json!({"mode": "quorum", "quorum": 1}), vec![SLOW, QUICK], "satisfied", ["cancelled", "completed"]),
        (json!({"mode": "race"}), vec![SLOW, FAILS], "partial", ["cancelled", "failed"]),
        (json!({"mode": "wait-all"}), vec![QUICK, FAILS], "partial", ["completed", "failed"]),
        (
            json!({"mode": "wait-all", "onChildFailure": "absorb"}),
            vec![QUICK, FAILS],
            "partial",
            ["completed", "failed"],
        ),
        (
            json!({"mode": "wait-all", "onChildFailure": "fail-fast"}),
            vec![SLOW, FAILS],
            "failed",
            ["cancelled", "failed"],
        ),
    ];
    for (join, workers, outcome, statuses) in table {
        let answer = fan_out(&web, &workers, parallel(join.clone()));
        assert_eq!(answer["joinOutcome"], outcome, "{join}: {answer}");
        let ended: Vec<&Value> =
            answer["children"].as_array().unwrap().iter().map(|child| &child["childStatus"]).collect();
        assert_eq!(ended, statuses, "{join}: {answer}");
    }
    // Whether the good one was done when the quorum became impossible is a matter of luck.
    let out_of_reach = fan_out(&web, &[QUICK, FAILS], parallel(json!({"mode": "quorum", "quorum": 2})));
    assert_eq!(out_of_reach["joinOutcome"], "failed");
}

#[test]
fn a_fan_out_that_cannot_be_is_refused() {
    let test_server = test_server();
    let web = test_server.web();
    let post = |workers: Value, config: Value| {
        test_endpoint(&web, "dispatch/fanout", json!({"nextWorkerIds": workers, "config": config}))
    };
    post(json!(["w1", "w2"]), json!({"joinPolicy": {"mode": "first"}})).refused(400, "validation_error");
    post(json!(["w1", "w2"]), parallel(json!({"mode": "quorum"}))).refused(400, "validation_error");
    post(json!(["w1", "w2"]), parallel(json!({"mode": "quorum", "quorum": 3}))).refused(400, "validation_error");
    post(json!(["w1", "w2"]), parallel(json!({"mode": "best-effort"}))).refused(400, "validation_error");
    post(json!(["w1", "w2"]), json!({"fanOutPolicy": "reject"})).refused(400, "fan_out_unsupported");
    post(json!(["Not A Workflow"]), json!({})).refused(400, "validation_error");
    post(json!([]), json!({})).refused(400, "validation_error");
    // A worker that asks somebody would keep the caller waiting: its run is ended instead.
    let refusal = post(json!(["conformance-approval", "w1"]), json!({})).refused(400, "validation_error");
    web.ended(refusal["details"]["runId"].as_str().unwrap(), "cancelled");
}

#[test]
fn each_worker_gets_its_own_inputs() {
    let test_server = test_server();
    let web = test_server.web();
    let workers = json!(["conformance.child", "conformance.child"]);
    let body = json!({
        "nextWorkerIds": workers,
        "nextWorkerInputs": [{"contactId": "c-1"}, {"contactId": "c-2"}],
        "inputMapping": {"contactId": "from-mapping", "region": "us"},
    });
    let answer = test_endpoint(&web, "dispatch/per-item", body.clone()).expect(200);
    let inputs: Vec<&Value> = answer["children"].as_array().unwrap().iter().map(|child| &child["inputs"]).collect();
    assert_eq!(*inputs[0], json!({"contactId": "c-1", "region": "us"}));
    assert_eq!(*inputs[1], json!({"contactId": "c-2", "region": "us"}));
    let (_, events) = web.ended(answer["runId"].as_str().unwrap(), "completed");
    assert_eq!(children(&web, &events).len(), 2);
    // A replay has what was recorded, and nobody works again.
    let mut again = body;
    again["replay"] = true.into();
    let replayed = test_endpoint(&web, "dispatch/per-item", again).expect(200);
    let recorded: Vec<&Value> = replayed["children"].as_array().unwrap().iter().map(|child| &child["inputs"]).collect();
    assert_eq!(recorded, inputs);
    let (replay, _) = web.ended(replayed["runId"].as_str().unwrap(), "completed");
    let source = replay["forkedFrom"]["runId"].as_str().unwrap().to_owned();
    let listed =
        |run: &str| web.get(&format!("/v1/runs?parentRunId={run}")).expect(200)["runs"].as_array().unwrap().len();
    assert_eq!((listed(&source), listed(replayed["runId"].as_str().unwrap())), (2, 0));
    let short = json!({"nextWorkerIds": workers, "nextWorkerInputs": [{"contactId": "c-1"}]});
    let refusal = test_endpoint(&web, "dispatch/per-item", short).refused(400, "validation_error");
    let (_, events) = web.ended(refusal["details"]["runId"].as_str().unwrap(), "failed");
    assert!(of_type(&events, "node.dispatched").is_empty() && of_type(&events, CHAIN).is_empty());
}

#[test]
fn outputs_are_attested_and_merged_only_with_a_yes() {
    let test_server = test_server();
    let web = test_server.web();
    let attest = |outputs: Value, gate: Value, action: Option<&str>| {
        let mut body = json!({"childOutputs": outputs, "outputAttestation": gate});
        if let Some(action) = action {
            body["approvalAction"] = json!(action);
        }
        let answer = test_endpoint(&web, "subrun/attest", body).expect(200);
        let status = if action.is_none() && answer["merged"] == false { "cancelled" } else { "completed" };
        let (_, events) = web.ended(answer["runId"].as_str().unwrap(), status);
        assert_eq!(collected(&events) == 1, answer["merged"] == true);
        answer
    };
    let one = attest(json!({"report": "done", "score": 0.9, "tags": ["a", "b"]}), json!({"checksum": true}), None);
    let other = attest(json!({"tags": ["a", "b"], "score": 0.9, "report": "done"}), json!({"checksum": true}), None);
    // SHA-256 of {"report":"done","score":0.9,"tags":["a","b"]}, the canonical form.
    let digest = "63a0014fbc71ddd0e41e568822b956dc0e1e22c1c0bdccdd64dc86d38538d55a";
    assert_eq!(one["attestation"], json!({"checksum": digest, "algorithm": "sha256"}));
    assert_eq!(other["attestation"], one["attestation"]);
    assert_eq!(one["mergedValues"], json!({"report": "done", "score": 0.9, "tags": ["a", "b"]}));
    assert_eq!(one["harvestedEvent"]["payload"]["attestation"], one["attestation"]);

    let gate = json!({"requireApproval": true});
    for (action, merged) in
        [(Some("accept"), true), (Some("edit-accept"), true), (Some("reject"), false), (None, false)]
    {
        let answer = attest(json!({"artifact": "x"}), gate.clone(), action);
        assert_eq!(answer["merged"], merged, "{action:?}");
        assert_eq!(answer["attestation"]["algorithm"], "sha256");
        assert_eq!(answer.get("mergedValues").is_some(), merged, "{action:?}");
    }
    let refused = [
        json!({"childOutputs": {}, "outputAttestation": gate}),
        json!({"childOutputs": {"a": 1}, "outputAttestation": gate, "approvalAction": "shrug"}),
        json!({"childOutputs": {"a": 1}, "outputAttestation": {"requireApproval": "yes"}}),
    ];
    for body in refused {
        test_endpoint(&web, "subrun/attest", body).refused(400, "validation_error");
    }
}

#[test]
fn a_sub_workflow_merges_only_with_a_yes() {
    let test_server = test_server();
    let web = test_server.web();
    let config = json!({
        "workflowId": "conformance-subworkflow-child", "outputMapping": {"childOutcome": "childResult"},
        "outputAttestation": {"requireApproval": true}
    });
    let nodes = json!([{"nodeId": "call", "typeId": "core.subWorkflow", "config": config}]);
    test_endpoint(&web, "workflows", json!({"workflowId": "attested-call", "nodes": nodes})).expect(201);
    for (action, merged) in [("accept", true), ("reject", false)] {
        let run = web.start("attested-call");
        let snapshot = web.until_status(&run, "waiting-approval");
        assert_eq!(snapshot["interrupt"]["data"]["artifactData"]["attestation"]["algorithm"], "sha256");
        assert!(snapshot["variables"].get("childOutcome").is_none(), "{snapshot}");
        web.resolve(&run, "call", json!({"action": action})).expect(200);
        let snapshot = web.until(&run, |snapshot| support::web::is_terminal(snapshot["status"].as_str().unwrap()));
        assert_eq!(snapshot["variables"].get("childOutcome").is_some(), merged, "{snapshot}");
        let (_, events) = web.ended(&run, snapshot["status"].as_str().unwrap());
        children(&web, &events);
    }
}

#[test]
fn what_a_test_endpoint_may_register_the_public_route_refuses() {
    let test_server = test_server();
    let web = test_server.web();
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "typeId": kind, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}});
    let register = |id: &str, nodes: &[Value]| {
        web.post(
            "/v1/workflows",
            json!({"id": id, "name": id, "version": "1", "nodes": nodes, "edges": [],
            "triggers": [], "variables": [], "metadata": {}, "settings": {}}),
        )
    };
    let noop = node("n", "core.noop", json!({}));
    register("dots.in-a-name", std::slice::from_ref(&noop)).refused(400, "validation_error");
    let script = json!({"mockDispatchPlan": [{"kind": "terminate"}]});
    let scripted = [node("s", "core.orchestrator.supervisor", script), node("d", "core.dispatch", json!({}))];
    register("scripted", &scripted).refused(400, "validation_error");
    register("conformance-scripted", &scripted).expect(201);
}

#[test]
fn test_endpoints_are_for_callers_with_a_key_and_for_conformance_mode() {
    let test_server = test_server();
    let posts = [
        "test/reset",
        "test/capability-toggle",
        "workflows",
        "test/runs/r/variables",
        "subrun/attest",
        "dispatch/fanout",
        "dispatch/per-item",
    ];
    for path in posts {
        test_endpoint(&test_server.anonymous(), path, json!({})).refused(401, "unauthenticated");
    }
    test_endpoint(&test_server.keyed("reader"), "workflows", json!({"workflowId": "w", "nodes": []}))
        .refused(403, "forbidden");
    let folder = tempfile::tempdir().unwrap();
    let host = support::Running::start(folder.path(), &["serve"], &[("BATON_API_KEYS", "alpha:acme")]);
    for path in posts {
        test_endpoint(&Web::new(&host.url, Some("alpha")), path, json!({})).refused(404, "not_found");
    }
}
