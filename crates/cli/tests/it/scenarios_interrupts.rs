//! Questions to people and to other systems: asked once, answered once, and what happens to late answers.

use crate::support;

use serde_json::{Value, json};
use support::audit;
use support::flow::{chain, node};
use support::test_server::test_server;
use support::web::{Web, is_terminal, nodes_of, of_type};

/// Starts a run and waits until it asks.
fn asking(web: &Web, workflow: &str, status: &str, node: &str) -> (String, Value) {
    let run = web.start(workflow);
    let snapshot = web.until_status(&run, status);
    assert_eq!(snapshot["currentNodeId"], node);
    assert_eq!(snapshot["interrupt"]["nodeId"], node);
    (run, snapshot)
}

#[test]
fn an_approval_waits_and_an_accept_completes_the_run() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, snapshot) = asking(&web, "conformance-approval", "waiting-approval", "gate");
    assert_eq!(snapshot["interrupt"]["kind"], "approval");
    assert_eq!(snapshot["interrupt"]["data"]["actions"], json!(["accept", "reject"]));
    let listed = web.get(&format!("/v1/interrupts?runId={run}")).expect(200);
    assert_eq!(listed["interrupts"][0]["nodeId"], "gate");

    let answered = web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    assert_eq!((&answered["runId"], &answered["nodeId"]), (&json!(run), &json!("gate")));
    let (snapshot, events) = web.ended(&run, "completed");
    assert!(snapshot.get("interrupt").is_none(), "{snapshot}");
    for kind in ["node.suspended", "interrupt.requested", "approval.requested", "node.resumed", "interrupt.resolved"] {
        assert_eq!(of_type(&events, kind).len(), 1, "{kind}");
    }
    let received = of_type(&events, "approval.received");
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["payload"]["action"], "accept");
    assert!(received[0]["payload"]["decidedBy"].is_string(), "{received:?}");
    assert_eq!(nodes_of(&events, "node.completed"), ["gate"]);
    assert!(!json!(events).to_string().contains("interruptToken"));
    assert_eq!(web.get(&format!("/v1/interrupts?runId={run}")).expect(200)["interrupts"], json!([]));
}

#[test]
fn a_bad_answer_changes_nothing() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
    let before = web.events(&run);
    for value in [json!({"action": "shrug"}), json!({"action": "edit-accept"}), json!({}), json!(null), json!("accept")]
    {
        web.resolve(&run, "gate", value).refused(400, "validation_error");
    }
    let path = format!("/v1/runs/{run}/interrupts/gate");
    web.post(&path, json!({})).refused(400, "validation_error");
    web.post(&path, json!({"resumeValue": {"action": "accept"}, "more": 1})).refused(400, "validation_error");
    web.resolve(&run, "elsewhere", json!({"action": "accept"})).refused(404, "interrupt_not_found");
    test_server.anonymous().resolve(&run, "gate", json!({"action": "accept"})).refused(401, "unauthenticated");
    assert_eq!(web.events(&run), before);
    assert_eq!(web.snapshot(&run)["status"], "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    web.ended(&run, "completed");
}

#[test]
fn a_rejection_fails_the_gate() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
    web.resolve(&run, "gate", json!({"action": "reject"})).expect(200);
    let (snapshot, events) = web.ended(&run, "failed");
    assert_eq!(snapshot["error"]["code"], "approval_rejected");
    assert_eq!(nodes_of(&events, "node.failed"), ["gate"]);
}

#[test]
fn a_clarification_takes_an_answer_to_every_question() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, snapshot) = asking(&web, "conformance-clarification", "waiting-input", "ask");
    assert_eq!(snapshot["interrupt"]["kind"], "clarification");
    assert_eq!(snapshot["interrupt"]["data"]["questions"][0]["id"], "q1");
    for value in [json!({}), json!({"answers": {}}), json!({"answers": {"q2": "x"}})] {
        web.resolve(&run, "ask", value).refused(400, "validation_error");
    }
    web.resolve(&run, "ask", json!({"answers": {"q1": "left"}})).expect(200);
    let (_, events) = web.ended(&run, "completed");
    let resolved = of_type(&events, "clarification.resolved");
    assert_eq!(resolved[0]["payload"]["answers"], json!({"q1": "left"}));

    let (run, _) = asking(&web, "conformance-clarification", "waiting-input", "ask");
    web.resolve(&run, "ask", json!({"answers": [{"id": "q1", "answer": "right"}]})).expect(200);
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(of_type(&events, "clarification.resolved")[0]["payload"]["answers"], json!({"q1": "right"}));
}

#[test]
fn a_quorum_counts_voters_not_votes() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-interrupt-quorum", "waiting-approval", "gate");
    let vote = |voter: &str, action: &str| {
        web.resolve(&run, "gate", json!({"action": action, "voter": voter})).expect(200)["status"].clone()
    };
    assert_eq!(vote("ada", "accept"), "waiting-approval");
    assert_eq!(vote("ada", "accept"), "waiting-approval");
    assert_eq!(vote("grace", "accept"), "waiting-approval");
    // One of three against is no majority.
    assert_eq!(vote("alan", "reject"), "waiting-approval");
    assert_eq!(web.snapshot(&run)["status"], "waiting-approval");
    vote("alan", "accept");
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(of_type(&events, "interrupt.resolved").len(), 1);
    assert_eq!(nodes_of(&events, "node.completed"), ["gate"]);
}

#[test]
fn a_majority_against_ends_a_quorum() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-interrupt-quorum", "waiting-approval", "gate");
    for voter in ["ada", "grace"] {
        web.resolve(&run, "gate", json!({"action": "reject", "voter": voter})).expect(200);
    }
    assert_eq!(web.ended(&run, "failed").0["error"]["code"], "approval_rejected");
}

#[test]
fn an_external_event_must_match_its_correlation_and_comes_through_the_link() {
    let test_server = test_server();
    let web = test_server.web();
    let workflow = "conformance-interrupt-external-event";
    let (run, snapshot) = asking(&web, workflow, "waiting-external", "wait-for-external");
    let token = snapshot["interrupt"]["interruptToken"].as_str().unwrap();
    let path = format!("/v1/interrupts/{token}");
    assert!(snapshot["interrupt"]["callbackUrl"].as_str().unwrap().ends_with(&path));
    // The link is its own credential.
    let outside = test_server.anonymous();
    let shown = outside.get(&path).expect(200);
    assert_eq!((&shown["kind"], &shown["key"]), (&json!("external-event"), &snapshot["interrupt"]["key"]));
    let answer = |status: &str| json!({"resumeValue": {"orderId": "fixture-order-1", "status": status, "more": 1}});
    let mismatch = outside.post(&path, answer("cancelled"));
    assert!(matches!(mismatch.status, 400 | 422), "{}", mismatch.text());
    audit::envelope(&mismatch.json());
    assert_eq!(web.snapshot(&run)["status"], "waiting-external");
    outside.post(&path, answer("completed")).expect(200);
    web.ended(&run, "completed");
    outside.post(&path, answer("completed")).refused(409, "interrupt_already_resolved");
    let mut forged = token.to_owned();
    forged.replace_range(..1, if token.starts_with('A') { "B" } else { "A" });
    outside.get(&format!("/v1/interrupts/{forged}")).refused(404, "interrupt_not_found");
    outside.get("/v1/interrupts/nonsense").refused(404, "interrupt_not_found");
}

#[test]
fn the_same_event_may_come_with_a_key_and_in_its_envelope() {
    let test_server = test_server();
    let web = test_server.web();
    let workflow = "conformance-interrupt-external-event";
    let (run, _) = asking(&web, workflow, "waiting-external", "wait-for-external");
    let value = json!({"eventPayload": {"orderId": "fixture-order-1", "status": "completed"}});
    web.resolve(&run, "wait-for-external", value).expect(200);
    web.ended(&run, "completed");
}

#[test]
fn a_link_cannot_answer_where_a_key_is_required() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, snapshot) = asking(&web, "conformance-interrupt-auth-required", "waiting-approval", "gate");
    let answer = json!({"resumeValue": {"action": "accept"}});
    if let Some(token) = snapshot["interrupt"]["interruptToken"].as_str() {
        test_server.anonymous().post(&format!("/v1/interrupts/{token}"), answer).refused(403, "forbidden");
    }
    test_server.keyed("reader").resolve(&run, "gate", json!({"action": "accept"})).refused(403, "forbidden");
    assert_eq!(web.snapshot(&run)["status"], "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    web.ended(&run, "completed");
}

#[test]
fn a_parent_shows_its_childs_question_and_takes_it_along_when_cancelled() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-interrupt-parent-child-cancel");
    let snapshot = web.until_status(&run, "waiting-approval");
    assert_eq!(snapshot["currentNodeId"], "spawn-child");
    let child = snapshot["childRuns"][0]["runId"].as_str().unwrap().to_owned();
    let waiting = web.until_status(&child, "waiting-approval");
    assert_eq!(waiting["currentNodeId"], "child-gate");
    assert_eq!((&waiting["parentRunId"], &waiting["parentNodeId"]), (&json!(run), &json!("spawn-child")));
    web.cancel(&run);
    web.ended(&run, "cancelled");
    let (_, events) = web.ended(&child, "cancelled");
    let payload = &events.last().unwrap()["payload"];
    assert_eq!((&payload["reason"], &payload["parentRunId"]), (&json!("parent-cancelled"), &json!(run)));
    web.resolve(&child, "child-gate", json!({"action": "accept"})).refused(410, "interrupt_gone");
    let token = waiting["interrupt"]["interruptToken"].as_str().unwrap();
    let late =
        test_server.anonymous().post(&format!("/v1/interrupts/{token}"), json!({"resumeValue": {"action": "accept"}}));
    late.refused(409, "interrupt_already_resolved");
}

#[test]
fn answering_the_child_lets_the_parent_go_on() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-interrupt-parent-child-cancel");
    let child = web.until_status(&run, "waiting-approval")["childRuns"][0]["runId"].as_str().unwrap().to_owned();
    web.resolve(&child, "child-gate", json!({"action": "accept"})).expect(200);
    web.ended(&child, "completed");
    let (snapshot, _) = web.ended(&run, "completed");
    assert_eq!(snapshot["childRuns"][0]["status"], "completed");
}

#[test]
fn an_answer_after_a_cancel_comes_too_late() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
    web.cancel(&run);
    web.ended(&run, "cancelled");
    web.resolve(&run, "gate", json!({"action": "accept"})).refused(422, "interrupt_cancelled");
    web.ended(&run, "cancelled");
}

#[test]
fn a_cancel_racing_an_answer_has_one_winner() {
    let test_server = test_server();
    let web = test_server.web();
    for round in 0..10 {
        let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
        // The older name of the route.
        let path = format!("/v1/runs/{run}/approvals/gate");
        let (cancelled, resolved) = std::thread::scope(|scope| {
            let cancel = scope.spawn(|| web.post(&format!("/v1/runs/{run}/cancel"), json!({})));
            let resolve = scope.spawn(|| web.post(&path, json!({"resumeValue": {"action": "accept"}})));
            (cancel.join().unwrap(), resolve.join().unwrap())
        });
        assert_eq!(cancelled.status, 200, "{}", cancelled.text());
        assert!(matches!(resolved.status, 200 | 404 | 409 | 422), "{}", resolved.text());
        let snapshot = web.until(&run, |snapshot| is_terminal(snapshot["status"].as_str().unwrap()));
        let expected = if resolved.status == 200 { "completed" } else { "cancelled" };
        assert_eq!(snapshot["status"], expected, "round {round}");
        let (_, events) = web.ended(&run, expected);
        assert_eq!(of_type(&events, "approval.received").len(), usize::from(resolved.status == 200));
    }
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..8).map(|_| scope.spawn(|| web.resolve(&run, "gate", json!({"action": "accept"})))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for late in answers.iter().filter(|answer| answer.status != 200) {
        assert!(matches!(late.status, 404 | 409), "{}", late.text());
        audit::envelope(&late.json());
    }
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(of_type(&events, "approval.received").len(), 1);
}

#[test]
fn an_answer_under_a_key_can_be_repeated() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
    let path = format!("/v1/runs/{run}/interrupts/gate");
    let answer = || web.keyed("answer-once", &path, json!({"resumeValue": {"action": "accept"}}));
    let first = answer().expect(200);
    let again = answer();
    assert_eq!(again.header("openwop-idempotent-replay"), Some("true"));
    assert_eq!(again.expect(200), first);
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(of_type(&events, "approval.received").len(), 1);
}

/// Registers a workflow of one node, starts it and waits until it asks.
fn asking_own(web: &Web, id: &str, asker: Value, status: &str) -> String {
    let name = asker["id"].as_str().unwrap().to_owned();
    web.post("/v1/workflows", chain(id, vec![asker])).expect(201);
    asking(web, id, status, &name).0
}

#[test]
fn silence_is_a_rejection_never_a_yes() {
    let test_server = test_server();
    let web = test_server.web();
    let gate = node("gate", "core.approvalGate", json!({"title": "Quick!", "timeoutMs": 100}));
    web.post("/v1/workflows", chain("soon-too-late", vec![gate])).expect(201);
    let (_, events) = web.ended(&web.start("soon-too-late"), "failed");
    let resolved = &of_type(&events, "interrupt.resolved")[0]["payload"];
    assert_eq!((&resolved["outcome"], &resolved["reason"]), (&json!("rejected"), &json!("timeout")));
    assert_eq!(of_type(&events, "approval.received")[0]["payload"]["action"], "timeout");
    assert!(nodes_of(&events, "node.completed").is_empty());
}

#[test]
fn an_external_event_that_never_comes_fails_its_node() {
    let test_server = test_server();
    let web = test_server.web();
    let config = json!({"kind": "external-event", "data": {"eventType": "never"}, "timeoutMs": 100});
    web.post("/v1/workflows", chain("never-comes", vec![node("wait", "core.interrupt", config)])).expect(201);
    let (snapshot, events) = web.ended(&web.start("never-comes"), "failed");
    assert_eq!(snapshot["error"]["code"], "interrupt_timeout");
    assert_eq!(nodes_of(&events, "node.failed"), ["wait"]);
}

#[test]
fn each_action_asks_for_what_it_needs() {
    let test_server = test_server();
    let web = test_server.web();
    let actions = json!(["accept", "reject", "refine", "edit-accept", "ask"]);
    let gate = || node("gate", "core.approvalGate", json!({"title": "Draft", "actions": actions}));
    let run = asking_own(&web, "all-actions", gate(), "waiting-approval");
    // A question about the question is recorded, and the run goes on waiting.
    let asked = web.resolve(&run, "gate", json!({"action": "ask", "feedback": "Why?"})).expect(200);
    assert_eq!(asked["status"], "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "refine"})).refused(400, "validation_error");
    web.resolve(&run, "gate", json!({"action": "edit-accept"})).refused(400, "validation_error");
    let edited = json!({"action": "edit-accept", "editedArtifactData": {"text": "better"}});
    web.resolve(&run, "gate", edited).expect(200);
    let (_, events) = web.ended(&run, "completed");
    let received = &of_type(&events, "approval.received")[0]["payload"];
    assert_eq!(
        (&received["action"], &received["editedArtifactData"]),
        (&json!("edit-accept"), &json!({"text": "better"}))
    );
}

#[test]
fn older_words_for_a_decision_still_count() {
    let test_server = test_server();
    let web = test_server.web();
    for (decision, status) in [("approved", "completed"), ("rejected", "failed")] {
        let (run, _) = asking(&web, "conformance-approval", "waiting-approval", "gate");
        web.resolve(&run, "gate", json!({"decision": decision})).expect(200);
        web.ended(&run, status);
    }
}

#[test]
fn only_an_approver_approves() {
    let test_server = test_server();
    let web = test_server.web();
    let gate = node("gate", "core.approvalGate", json!({"title": "Ada only", "approversList": ["ada"]}));
    let run = asking_own(&web, "ada-only", gate, "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "accept", "voter": "eve"})).refused(403, "forbidden");
    assert_eq!(web.snapshot(&run)["status"], "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "accept", "voter": "ada"})).expect(200);
    web.ended(&run, "completed");
}

#[test]
fn an_answer_must_fit_the_schema_it_was_asked_with() {
    let test_server = test_server();
    let web = test_server.web();
    let schema = json!({"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}});
    let config = json!({"kind": "custom", "data": {"customKind": "how-many"}, "resumeSchema": schema});
    let run = asking_own(&web, "how-many", node("count", "core.interrupt", config), "waiting-approval");
    assert_eq!(web.snapshot(&run)["interrupt"]["resumeSchema"], schema);
    web.resolve(&run, "count", json!({"count": "many"})).refused(400, "validation_error");
    web.resolve(&run, "count", json!({"count": 3})).expect(200);
    web.ended(&run, "completed");
}
