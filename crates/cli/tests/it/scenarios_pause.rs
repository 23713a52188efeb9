//! Pausing and resuming: what stops, what goes on, and what a second request is told.

use crate::support;

use serde_json::{Value, json};
use support::http::Answer;
use support::test_server::test_server;
use support::web::{Web, nodes_of, of_type, place};

fn sleeping(web: &Web, ms: u64) -> String {
    web.start_with(json!({"workflowId": "conformance-delay", "inputs": {"delayMs": ms}}))
}

fn pause(web: &Web, run: &str, body: Value) -> Answer {
    web.post(&format!("/v1/runs/{run}:pause"), body)
}

/// A run that was paused while its node slept. A machine that is too slow for a short sleep gets a longer one.
fn paused(web: &Web, body: Value) -> (String, Value) {
    for ms in [400, 2000, 10_000] {
        let run = sleeping(web, ms);
        let answer = pause(web, &run, body.clone());
        if answer.status == 409 {
            web.ended(&run, "completed");
            continue;
        }
        let answer = answer.expect(202);
        web.until_status(&run, "paused");
        return (run, answer);
    }
    panic!("the run was always faster than the pause");
}

fn resume(web: &Web, run: &str) -> Answer {
    web.post(&format!("/v1/runs/{run}:resume"), json!({}))
}

#[test]
fn every_advertised_policy_is_accepted() {
    let test_server = test_server();
    let web = test_server.web();
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    let advertised = &document["runs"]["pauseResume"];
    assert_eq!(advertised["supported"], true);
    let policies = advertised["drainPolicies"].as_array().unwrap();
    assert!(!policies.is_empty());
    for policy in policies {
        let (run, answer) = paused(&web, json!({"drainPolicy": policy, "reason": "lunch"}));
        assert_eq!((&answer["runId"], &answer["status"]), (&json!(run), &json!("paused")));
        assert!(answer["pausedAt"].is_string(), "{answer}");
        let payload = of_type(&web.events(&run), "run.paused")[0]["payload"].clone();
        assert_eq!((&payload["drainPolicy"], &payload["reason"]), (policy, &json!("lunch")));
        let resumed = resume(&web, &run).expect(202);
        assert_eq!(resumed["status"], "running");
        assert!(resumed["resumedAt"].is_string(), "{resumed}");
        web.ended(&run, "completed");
    }
    let run = sleeping(&web, 30_000);
    pause(&web, &run, json!({"drainPolicy": "eventually"})).refused(400, "validation_error");
    pause(&web, &run, json!({"more": 1})).refused(400, "validation_error");
    web.cancel(&run);
    web.ended(&run, "cancelled");
}

#[test]
fn draining_lets_the_node_finish_first() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = paused(&web, json!({"drainPolicy": "drain-current-node"}));
    let events = web.events(&run);
    assert_eq!(nodes_of(&events, "node.completed"), ["wait"]);
    assert!(place(&events, "node.completed") < place(&events, "run.paused"));
    resume(&web, &run).expect(202);
    let (_, events) = web.ended(&run, "completed");
    // Completed work is not done again.
    assert_eq!(nodes_of(&events, "node.started"), ["wait"]);
}

#[test]
fn an_immediate_pause_interrupts_and_resuming_starts_the_node_afresh() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = paused(&web, json!({"drainPolicy": "immediate"}));
    assert!(nodes_of(&web.events(&run), "node.completed").is_empty());
    resume(&web, &run).expect(202);
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(nodes_of(&events, "node.completed"), ["wait"]);
    let attempts: Vec<_> =
        of_type(&events, "node.started").iter().map(|event| event["payload"]["attempt"].as_u64()).collect();
    assert_eq!(attempts.len(), 2, "{events:?}");
    assert!(attempts[0] < attempts[1], "{attempts:?}");
    assert!(place(&events, "run.paused") < place(&events, "run.resumed"));
}

#[test]
fn a_second_pause_is_a_conflict_unless_it_is_the_same_request() {
    let test_server = test_server();
    let web = test_server.web();
    let run = sleeping(&web, 30_000);
    let path = format!("/v1/runs/{run}:pause");
    let body = json!({"drainPolicy": "immediate"});
    let first = web.keyed("pause-once", &path, body.clone()).expect(202);
    let again = web.keyed("pause-once", &path, body.clone());
    assert_eq!(again.header("openwop-idempotent-replay"), Some("true"));
    assert_eq!(again.expect(202), first);
    let refusal = web.post(&path, body).json();
    assert_eq!(refusal["details"]["runStatus"], "paused", "{refusal}");
    assert!(refusal["details"]["pausedAt"].is_string(), "{refusal}");
    resume(&web, &run).expect(202);
    let refusal = resume(&web, &run);
    assert_eq!(refusal.expect(409)["details"]["runStatus"], "running");
    web.cancel(&run);
    web.ended(&run, "cancelled");
}

#[test]
fn a_waiting_run_keeps_its_question() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-approval");
    web.until_status(&run, "waiting-approval");
    let refusal = pause(&web, &run, json!({}));
    assert_eq!(refusal.expect(409)["details"]["runStatus"], "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    web.ended(&run, "completed");
}

#[test]
fn what_has_ended_can_be_neither_paused_nor_resumed() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    let (_, events) = web.ended(&run, "completed");
    for answer in [pause(&web, &run, json!({})), resume(&web, &run)] {
        assert_eq!(answer.expect(409)["details"]["runStatus"], "completed");
        support::audit::envelope(&answer.json());
    }
    assert_eq!(web.events(&run), events);
}

#[test]
fn a_paused_run_can_be_cancelled_and_stays_paused_until_then() {
    let test_server = test_server();
    let web = test_server.web();
    let (run, _) = paused(&web, json!({"drainPolicy": "immediate"}));
    let slept = web.snapshot(&run)["inputs"]["delayMs"].as_u64().unwrap();
    let events = web.events(&run);
    // Another delay of the same length, started later, ends: time has passed, and the paused one has not moved.
    let clock = sleeping(&web, slept);
    web.ended(&clock, "completed");
    assert_eq!(web.events(&run), events);
    web.cancel(&run);
    web.ended(&run, "cancelled");
}
