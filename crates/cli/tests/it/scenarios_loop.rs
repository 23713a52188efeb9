//! The supervisor loop as a client sees it: turns, handoffs, held decisions, bounds. Every log touched is audited.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::test_server::{KEYS, test_server};
use support::web::{Web, nodes_of, of_type, place};
use support::{Running, wait_for};

const CHAIN: &str = "core.workflowChain.event";
const ESCALATED: &str = "core.workflowChain.confidence-escalated";
const DECIDED: &str = "runOrchestrator.decided";

fn phases(events: &[Value]) -> Vec<&str> {
    of_type(events, CHAIN).iter().map(|event| event["payload"]["phase"].as_str().unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    of_type(events, DECIDED).iter().map(|event| event["payload"]["decision"]["kind"].as_str().unwrap()).collect()
}

/// One decision a turn: 1, 2, 3, …, the same agent throughout, one terminate and nothing after it.
#[track_caller]
fn check_turns(events: &[Value]) {
    let decided = of_type(events, DECIDED);
    for (turn, event) in decided.iter().enumerate() {
        assert_eq!(event["payload"]["iteration"], turn + 1, "{event}");
        assert_eq!(event["payload"]["agentId"], decided[0]["payload"]["agentId"]);
    }
    let kinds = kinds(events);
    let ends = kinds.iter().filter(|kind| **kind == "terminate").count();
    assert!(ends <= 1 && (ends == 0 || kinds.last() == Some(&"terminate")), "{kinds:?}");
}

/// Every chain is well-formed: each phase is caused by the one before, the first by a decision.
#[track_caller]
fn check_chains(events: &[Value]) {
    let by_id = |id: &Value| events.iter().find(|event| event["eventId"] == *id).unwrap_or_else(|| panic!("{id}"));
    for event in of_type(events, CHAIN) {
        let cause = by_id(&event["causationId"]);
        assert!(cause["sequence"].as_u64() < event["sequence"].as_u64());
        let expected = match event["payload"]["phase"].as_str().unwrap() {
            "dispatch.began" => {
                assert_eq!(cause["type"], DECIDED, "{event}");
                assert!(event["payload"].get("childRunId").is_none());
                continue;
            }
            "dispatch.succeeded" | "dispatch.failed" => "dispatch.began",
            "child.completed" | "child.failed" | "child.cancelled" => "dispatch.succeeded",
            "output.harvested" => "child.completed",
            other => panic!("{other}"),
        };
        assert_eq!(cause["payload"]["phase"], expected, "{event}");
        assert_eq!(cause["payload"]["workerId"], event["payload"]["workerId"]);
    }
}

#[track_caller]
fn ended(web: &Web, run: &str, status: &str) -> (Value, Vec<Value>) {
    let (snapshot, events) = web.ended(run, status);
    check_turns(&events);
    check_chains(&events);
    (snapshot, events)
}

/// Registers a loop by its decisions and starts it.
fn start_loop(web: &Web, id: &str, plan: &[Value], dispatch: Value) -> String {
    let nodes = json!([
        {"nodeId": "supervisor", "typeId": "core.orchestrator.supervisor", "config": {"mockDispatchPlan": plan}},
        {"nodeId": "dispatch", "typeId": "core.dispatch", "config": dispatch},
    ]);
    let answer = web.post("/v1/host/sample/workflows", json!({"workflowId": id, "nodes": nodes}));
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    web.start(id)
}

fn next(worker: &str) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": [worker]})
}

fn done() -> Value {
    json!({"kind": "terminate", "reason": "goal-reached"})
}

/// The child of a run's only (or newest) worker so far.
fn child_of(web: &Web, run: &str) -> String {
    wait_for("a worker is dispatched", || {
        let events = web.events(run);
        let event = of_type(&events, "node.dispatched").pop()?;
        Some(event["payload"]["childRunId"].as_str().unwrap().to_owned())
    })
}

#[test]
fn a_handoff_goes_through_its_four_states() {
    let test_server = test_server();
    let web = test_server.web();
    let model = test_server.anonymous().get("/.well-known/openwop").expect(200)["multiAgent"]["executionModel"].clone();
    assert_eq!(model["supported"], true);
    assert!((1..=5).contains(&model["version"].as_u64().unwrap()));
    let run = web.start("conformance-multi-agent-handoff");
    let (snapshot, events) = ended(&web, &run, "completed");
    assert_eq!(phases(&events), ["dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"]);
    let chain = of_type(&events, CHAIN);
    assert_eq!(chain[0]["causationId"], of_type(&events, DECIDED)[0]["eventId"]);
    for pair in chain.windows(2) {
        assert_eq!(pair[1]["causationId"], pair[0]["eventId"]);
    }
    assert_eq!(chain[3]["payload"]["harvestedKeys"], json!(["parentResult"]));
    assert_eq!(snapshot["variables"]["parentResult"], "handoff-complete");
    assert_eq!(snapshot["runOrchestrator"]["agentId"], of_type(&events, DECIDED)[0]["payload"]["agentId"]);
    // The child can be found before it is said to run, and knows where it comes from.
    let dispatched = place(&events, "node.dispatched") as u64;
    assert!(chain[0]["sequence"].as_u64().unwrap() < dispatched && dispatched < chain[1]["sequence"].as_u64().unwrap());
    let child = events[dispatched as usize]["payload"]["childRunId"].as_str().unwrap();
    let (child, _) = web.ended(child, "completed");
    assert_eq!((&child["parentRunId"], &child["parentNodeId"]), (&json!(run), &json!("dispatch")));
    // The mapping is applied before the harvest says so.
    assert!((place(&events, "variable.changed") as u64) < chain[3]["sequence"].as_u64().unwrap());
    let order = ["supervisor", "dispatch", "supervisor", "dispatch"];
    assert_eq!(nodes_of(&events, "node.started"), order);
    assert_eq!(nodes_of(&events, "node.completed"), order);
}

#[test]
fn a_supervisor_dispatches_and_terminates() {
    let test_server = test_server();
    let web = test_server.web();
    let (_, events) = ended(&web, &web.start("conformance-orchestrator-dispatch"), "completed");
    let first = &of_type(&events, DECIDED)[0]["payload"];
    assert!(first["agentId"].as_str().unwrap().len() >= 3);
    assert!(!first["decision"]["nextWorkerIds"].as_array().unwrap().is_empty());
    let (_, events) = ended(&web, &web.start("conformance-orchestrator-terminate"), "completed");
    assert_eq!(kinds(&events), ["terminate"]);
    // A supervisor that was told nothing still shows a whole loop.
    let (_, events) = ended(&web, &web.start("conformance-dispatch-loop"), "completed");
    assert_eq!(kinds(&events), ["next-worker", "terminate"]);
}

#[test]
fn an_answer_reaches_the_next_turn() {
    let test_server = test_server();
    let web = test_server.web();
    let ask = json!({"kind": "ask-user", "prompt": "Which colour?"});
    let run = start_loop(&web, "conformance-loop-ask", &[ask, done()], json!({"askUserRouting": "auto"}));
    let snapshot = web.until_status(&run, "waiting-input");
    assert_eq!(snapshot["interrupt"]["kind"], "clarification");
    let events = web.events(&run);
    assert!(place(&events, DECIDED) < place(&events, "clarification.requested"));
    web.resolve(&run, "dispatch", json!({"answers": {"answer": "blue"}})).expect(200);
    let (_, events) = ended(&web, &run, "completed");
    assert_eq!(kinds(&events), ["ask-user", "terminate"]);
    assert_eq!(of_type(&events, "interrupt.requested").len(), 1);
    let completed = of_type(&events, "node.completed");
    let dispatch = completed.iter().find(|event| event["nodeId"] == "dispatch").unwrap();
    assert!(dispatch["payload"].to_string().contains("blue"), "{dispatch}");
}

#[test]
fn a_worker_that_does_not_exist_costs_a_turn_not_the_run() {
    let test_server = test_server();
    let web = test_server.web();
    let run = start_loop(&web, "conformance-loop-nobody", &[next("nobody-of-this-name"), done()], json!({}));
    let (_, events) = ended(&web, &run, "completed");
    assert_eq!(phases(&events), ["dispatch.began", "dispatch.failed"]);
    let failed = &of_type(&events, CHAIN)[1]["payload"];
    assert_eq!(failed["error"]["code"], "unknown_child_workflow");
    assert!(failed.get("childRunId").is_none());
    assert!(of_type(&events, "node.dispatched").is_empty());
}

#[test]
fn a_worker_that_waits_makes_its_parent_wait() {
    let test_server = test_server();
    let web = test_server.web();
    let run = start_loop(&web, "conformance-loop-waiting", &[next("conformance-approval"), done()], json!({}));
    let snapshot = web.until_status(&run, "waiting-approval");
    assert_eq!(snapshot["childRuns"][0]["status"], "waiting-approval");
    let child = snapshot["childRuns"][0]["runId"].as_str().unwrap();
    web.resolve(child, "gate", json!({"action": "accept"})).expect(200);
    let (_, events) = ended(&web, &run, "completed");
    assert_eq!(phases(&events), ["dispatch.began", "dispatch.succeeded", "child.completed"]);
    web.ended(child, "completed");
}

#[test]
fn cancelling_a_loop_cancels_its_worker_first() {
    let test_server = test_server();
    let web = test_server.web();
    let plan = [next("conformance-dispatch-cancellable-child"), done()];
    let run = start_loop(&web, "conformance-loop-cancelled", &plan, json!({"outputMapping": {"r": "childOutcome"}}));
    let child = child_of(&web, &run);
    web.cancel(&run);
    let (snapshot, events) = ended(&web, &run, "cancelled");
    assert_eq!(phases(&events), ["dispatch.began", "dispatch.succeeded", "child.cancelled"]);
    assert!(snapshot["variables"].get("r").is_none());
    let (_, events) = web.ended(&child, "cancelled");
    assert_eq!(events.last().unwrap()["payload"]["reason"], "parent-cancelled");
}

#[test]
fn turns_are_bounded() {
    let test_server = test_server();
    let web = test_server.web();
    let limit = test_server.anonymous().get("/.well-known/openwop").expect(200)["limits"]["maxLoopIterations"].clone();
    assert!(limit.as_u64().unwrap() >= 1);
    let bounded =
        |turns: Value| json!({"workflowId": "conformance-dispatch-loop", "configurable": {"maxLoopIterations": turns}});
    let run = web.start_with(bounded(json!(1)));
    let (snapshot, events) = ended(&web, &run, "failed");
    assert_eq!(snapshot["error"]["code"], "loop_limit_exceeded");
    assert_eq!(snapshot["error"]["details"]["iteration"], 2);
    assert_eq!(kinds(&events), ["next-worker"]);
    let breach = of_type(&events, "cap.breached");
    assert_eq!(breach.len(), 1);
    let payload = &breach[0]["payload"];
    assert_eq!(
        (&payload["kind"], &payload["limit"], &payload["observed"]),
        (&json!("loop-iterations"), &json!(1), &json!(2))
    );
    // The supervisor of the turn too many did not run; what the first turn did is kept.
    assert_eq!(nodes_of(&events, "node.started"), ["supervisor", "dispatch"]);
    assert_eq!(phases(&events), ["dispatch.began", "dispatch.succeeded", "child.completed"]);
    // Two are enough, and asking for more than the host allows is allowed less.
    ended(&web, &web.start_with(bounded(json!(2))), "completed");
    ended(&web, &web.start_with(bounded(json!(u32::MAX))), "completed");
    for wrong in [json!(0), json!(-1), json!(1.5), json!("many"), json!(null)] {
        web.post("/v1/runs", bounded(wrong)).refused(400, "validation_error");
    }
}

#[test]
fn time_is_bounded_and_takes_the_worker_along() {
    let test_server = test_server();
    let web = test_server.web();
    let limits = test_server.anonymous().get("/.well-known/openwop").expect(200)["limits"].clone();
    assert!(limits["maxRunDurationMs"].as_u64().unwrap() >= 1000);
    let plan = [next("conformance-dispatch-cancellable-child"), done()];
    let first = start_loop(&web, "conformance-loop-slow", &plan, json!({}));
    web.cancel(&first);
    let run = web.start_with(json!({"workflowId": "conformance-loop-slow", "configurable": {"runTimeoutMs": 1000}}));
    let child = child_of(&web, &run);
    let (snapshot, events) = ended(&web, &run, "failed");
    assert_eq!(snapshot["error"]["code"], "run_timeout");
    let breach = &of_type(&events, "cap.breached")[0]["payload"];
    assert_eq!((&breach["kind"], &breach["limit"]), (&json!("run-duration"), &json!(1000)));
    assert!(breach["observed"].as_u64().unwrap() > 1000, "{breach}");
    assert_eq!(phases(&events).last(), Some(&"child.cancelled"));
    web.ended(&child, "cancelled");
}

/// A conformance host whose held decisions ask this kind of question.
fn host_asking(folder: &Path, kind: &str) -> Running {
    let env = [("BATON_API_KEYS", KEYS), ("BATON_ESCALATION_INTERRUPT", kind)];
    Running::start(folder, &["serve", "--conformance"], &env)
}

/// Starts the unsure loop and waits for its question. `waiting-clarification` is not among the statuses the snapshot's
/// schema lists, so this does not go through the audited readers.
fn unsure(web: &Web, status: &str) -> (String, Value) {
    let body = json!({"workflowId": "conformance-multi-agent-confidence-escalation"});
    let run = web.post("/v1/runs", body).expect(201)["runId"].as_str().unwrap().to_owned();
    let read = || Some(web.get(&format!("/v1/runs/{run}")).expect(200));
    let snapshot = wait_for(&format!("{run} is {status}"), || read().filter(|snapshot| snapshot["status"] == status));
    (run, snapshot)
}

#[track_caller]
fn check_held(web: &Web, run: &str, kind: &str) {
    let events = web.events(run);
    assert!(of_type(&events, CHAIN).is_empty() && of_type(&events, DECIDED).is_empty());
    let escalated = of_type(&events, ESCALATED);
    assert_eq!(escalated.len(), 1);
    let payload = &escalated[0]["payload"];
    assert_eq!((&payload["confidence"], &payload["floor"]), (&json!(0.3), &json!(0.5)));
    assert_eq!(payload["escalationKind"], if kind == "clarification" { "clarify" } else { "escalate" });
    assert_eq!(payload["originalDecision"]["confidence"], 0.3);
    assert_eq!(payload["workerId"], "conformance-multi-agent-handoff-child");
    let cause =
        events.iter().find(|event| event["eventId"] == escalated[0]["causationId"]).expect("a cause on this log");
    assert_eq!((&cause["type"], &cause["nodeId"]), (&json!("node.started"), &json!("supervisor")));
    assert!(place(&events, ESCALATED) < place(&events, "interrupt.requested"));
    assert_eq!(of_type(&events, "interrupt.requested").len(), 1);
}

#[track_caller]
fn check_ratified(web: &Web, run: &str) {
    let (_, events) = ended(web, run, "completed");
    assert_eq!(kinds(&events), ["next-worker", "terminate"]);
    assert_eq!(of_type(&events, ESCALATED).len(), 1);
    assert!(place(&events, "interrupt.resolved") < place(&events, DECIDED));
    assert_eq!(phases(&events), ["dispatch.began", "dispatch.succeeded", "child.completed"]);
}

#[test]
fn a_decision_below_the_floor_is_held_whatever_the_question() {
    let table = [
        ("approval", "waiting-approval", json!({"action": "accept"})),
        ("clarification", "waiting-clarification", json!({"answers": {"decision": "accept"}})),
        ("x-host-baton-low-confidence", "waiting-approval", json!({"action": "accept"})),
    ];
    for (kind, status, yes) in table {
        let folder = tempfile::tempdir().unwrap();
        let host = host_asking(folder.path(), kind);
        let web = Web::new(&host.url, Some("alpha"));
        let document = web.get("/.well-known/openwop").expect(200);
        let model = &document["multiAgent"]["executionModel"];
        assert_eq!(
            (&model["confidenceEscalationInterruptKind"], &model["confidenceEscalationFloor"]),
            (&json!(kind), &json!(0.5))
        );
        support::audit::protocol("capabilities.schema.json", &document);
        let (run, snapshot) = unsure(&web, status);
        assert_eq!((&snapshot["interrupt"]["kind"], &snapshot["currentNodeId"]), (&json!(kind), &json!("supervisor")));
        check_held(&web, &run, kind);
        web.resolve(&run, "supervisor", yes).expect(200);
        check_ratified(&web, &run);
        let url = document["baton"]["vendorExtensionsUrl"].as_str();
        assert_eq!(url.is_some(), kind.starts_with("x-host-"));
        if let Some(url) = url {
            let mapping = Web::new(&host.url, None).get(url).expect(200)["interruptKinds"][0].clone();
            assert_eq!((&mapping["kind"], &mapping["waitingStatus"]), (&json!(kind), &json!(status)));
        }
        assert_eq!(host.stop(), 0);
    }
}

#[test]
fn a_held_decision_can_be_changed_sent_back_or_refused() {
    let test_server = test_server();
    let web = test_server.web();
    let held = || unsure(&web, "waiting-approval").0;
    let run = held();
    for wrong in [
        json!({}),
        json!({"action": "edit-accept"}),
        json!({"action": "edit-accept", "editedArtifactData": {"kind": "escalate"}}),
    ] {
        web.resolve(&run, "supervisor", wrong).refused(400, "validation_error");
    }
    check_held(&web, &run, "approval");
    let edited = json!({"action": "edit-accept", "editedArtifactData": next("conformance-noop")});
    web.resolve(&run, "supervisor", edited).expect(200);
    let (_, events) = ended(&web, &run, "completed");
    assert_eq!(of_type(&events, DECIDED)[0]["payload"]["decision"], next("conformance-noop"));
    assert_eq!(of_type(&events, "node.dispatched")[0]["payload"]["childWorkflowId"], "conformance-noop");

    let run = held();
    let again = json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "Think again."}});
    web.resolve(&run, "supervisor", again).expect(200);
    // Nothing was decided, so it is the same turn once more, and the script is as unsure as before.
    web.until_status(&run, "waiting-approval");
    let events = web.events(&run);
    assert_eq!((of_type(&events, ESCALATED).len(), of_type(&events, DECIDED).len()), (2, 0));
    // Whoever clicked twice has said nothing about this one.
    let late = web.resolve(&run, "supervisor", json!({"action": "reject"})).refused(409, "interrupt_already_resolved");
    assert_eq!(late["details"]["openInterruptId"], web.snapshot(&run)["interrupt"]["interruptId"], "{late}");
    web.resolve_open(&run, "supervisor", json!({"action": "reject"})).expect(200);
    let (snapshot, events) = ended(&web, &run, "failed");
    assert_eq!(snapshot["error"]["code"], "approval_rejected");
    assert!(of_type(&events, DECIDED).is_empty() && of_type(&events, CHAIN).is_empty());
}

#[test]
fn a_held_decision_nobody_ratifies_is_rejected() {
    let test_server = test_server();
    let web = test_server.web();
    let unsure = json!({"kind": "terminate", "confidence": 0.49});
    let config = json!({"mockDispatchPlan": [unsure], "escalationTimeoutMs": 50});
    let nodes = json!([
        {"nodeId": "supervisor", "typeId": "core.orchestrator.supervisor", "config": config},
        {"nodeId": "dispatch", "typeId": "core.dispatch"},
    ]);
    web.post("/v1/host/sample/workflows", json!({"workflowId": "conformance-loop-late", "nodes": nodes})).expect(201);
    let (snapshot, events) = ended(&web, &web.start("conformance-loop-late"), "failed");
    assert_eq!(snapshot["error"]["code"], "approval_rejected");
    let escalated = of_type(&events, ESCALATED);
    assert_eq!((escalated.len(), escalated[0]["payload"].get("workerId")), (1, None));
    assert!(of_type(&events, DECIDED).is_empty());
}

#[test]
fn a_held_decision_outlives_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_asking(folder.path(), "approval");
    let web = Web::new(&host.url, Some("alpha"));
    let mut unsure = next("conformance-noop");
    unsure["confidence"] = json!(0.1);
    let run = start_loop(&web, "loop.across-a-restart", &[next("conformance-noop"), unsure.clone(), done()], json!({}));
    web.until_status(&run, "waiting-approval");
    let before = web.events(&run);
    host.kill();
    let host = host_asking(folder.path(), "approval");
    let web = Web::new(&host.url, Some("alpha"));
    assert_eq!(web.until_status(&run, "waiting-approval")["interrupt"]["data"]["artifactData"], unsure);
    assert_eq!(web.events(&run), before);
    web.resolve(&run, "supervisor", json!({"action": "accept"})).expect(200);
    let (snapshot, events) = ended(&web, &run, "completed");
    assert_eq!(kinds(&events), ["next-worker", "next-worker", "terminate"]);
    assert_eq!(of_type(&events, "node.dispatched").len(), 2);
    assert_eq!(snapshot["childRuns"].as_array().unwrap().len(), 2);
    assert_eq!(host.stop(), 0);
}

#[test]
fn an_unsure_agent_is_held_by_its_own_rule() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-orchestrator-low-confidence");
    let snapshot = web.until_status(&run, "waiting-approval");
    assert_eq!(snapshot["interrupt"]["kind"], "low-confidence");
    let events = web.events(&run);
    assert!(of_type(&events, DECIDED).is_empty() && of_type(&events, ESCALATED).is_empty());
    let suspended = &of_type(&events, "node.suspended")[0]["payload"];
    assert_eq!(suspended["reason"], "low-confidence");
    assert_eq!(suspended["agentId"], "core.conformance.low-conf-supervisor");
    assert_eq!((&suspended["threshold"], &suspended["observed"]), (&json!(0.7), &json!(0.5)));
    // Answering with the very decision that is held ratifies it.
    let decision = snapshot["interrupt"]["data"]["decision"].clone();
    web.resolve(&run, "supervisor", decision.clone()).expect(200);
    let events = loop_events(&web, &run);
    assert_eq!(of_type(&events, DECIDED)[0]["payload"]["decision"], decision);
    // A run that asks less of its agents is not stopped.
    let body =
        json!({"workflowId": "conformance-orchestrator-low-confidence", "configurable": {"escalationThreshold": 0.5}});
    let (_, events) = ended(&web, &web.start_with(body), "completed");
    assert!(of_type(&events, "node.suspended").is_empty());
}

/// The log once a decision is on it: the scripted agent is as unsure in every turn, so the run asks again later.
fn loop_events(web: &Web, run: &str) -> Vec<Value> {
    web.until(run, |snapshot| snapshot["status"] == "waiting-approval" || snapshot["status"] == "completed");
    let events = web.events(run);
    check_turns(&events);
    check_chains(&events);
    web.cancel(run);
    events
}
