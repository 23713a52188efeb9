//! `vendor.baton.http`: one request, announced before it is made, and never made twice because nobody knows.

use crate::support;

use baton_engine::{Features, Plan, Returned};
use baton_model::event::DrainPolicy;
use baton_model::{OutcomePolicy, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{broken, ok, tool_calls, unknown};
use support::second::second;
use support::{World, run, stored, workflow};

fn definition(extra: Value, settings: Value) -> Value {
    let mut config = json!({"method": "POST", "url": "https://example.com/orders", "body": {"n": 1}});
    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let mut definition = workflow(&[("call", "vendor.baton.http", config)], &[]);
    definition["nodes"][0]["settings"] = settings;
    definition
}

fn calling(extra: Value) -> World {
    run(definition(extra, json!({})))
}

/// What the log says of the call, in order.
fn story(world: &World) -> Vec<&str> {
    let wanted = ["agent.", "baton.effect", "interrupt.", "node."];
    world.types().into_iter().filter(|kind| wanted.iter().any(|start| kind.starts_with(start))).collect()
}

#[test]
fn a_request_is_announced_made_and_its_answer_judged() {
    let mut world = calling(json!({"into": "answer", "headers": {"x-team": "tide"}}));
    assert_eq!(world.types(), ["run.started", "node.started", "agent.toolCalled"]);
    let call = world.tool();
    assert_eq!(
        call.arguments,
        json!({"method": "POST", "url": "https://example.com/orders", "body": {"n": 1}, "headers": {"x-team": "tide"}})
    );
    assert_eq!((call.key.as_str(), call.tool.id.as_str()), ("run_test/call:1:0:0:0", "openwop:http.request"));
    assert_eq!(tool_calls(&world.refolded()), std::slice::from_ref(&call));
    let response = json!({"status": 201, "body": {"id": 7}});
    assert!(world.returns(&call, ok(response.clone())));
    assert_eq!(story(&world), ["node.started", "agent.toolCalled", "agent.toolReturned", "node.completed"]);
    assert_eq!((world.variable("answer"), world.status()), (Some(&response), RunStatus::Completed));
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"response": response}));
    let events = [world.payloads("agent.toolCalled"), world.payloads("agent.toolReturned")].concat();
    assert!(events.iter().all(|event| event["agentId"] == "core.system"), "nobody's agent: the host calls");
    let parts: Vec<bool> = world.log.iter().map(|record| record.part.unwrap().outside).collect();
    assert_eq!(parts[2..5], [false, true, false], "the answer is recorded before it is judged");
    Audit::check(&world.log);
}

#[test]
fn what_is_done_when_nobody_knows() {
    let asks: &[&str] =
        &["node.started", "agent.toolCalled", "baton.effect.unknown", "node.suspended", "interrupt.requested"];
    let verify = json!({"outcomePolicy": "verify", "verifyUrl": "https://example.com/look"});
    let table: [(Value, OutcomePolicy, Option<&str>); 5] = [
        (json!({}), OutcomePolicy::Ask, None),
        (json!({"method": "GET", "body": null}), OutcomePolicy::Retry, None),
        (json!({"outcomePolicy": "retry"}), OutcomePolicy::Retry, None),
        (verify, OutcomePolicy::Verify, None),
        (json!({"outcomePolicy": "fail"}), OutcomePolicy::Fail, Some("effect_outcome_unknown")),
    ];
    for (extra, policy, code) in table {
        let mut definition = definition(extra.clone(), json!({"maxRetries": 2}));
        if extra["body"].is_null() && extra["method"] == "GET" {
            definition["nodes"][0]["config"].as_object_mut().unwrap().remove("body");
        }
        let mut world = run(definition);
        let call = world.tool();
        assert_eq!(call.tool.outcome_policy, policy, "{extra}");
        world.returns(&call, unknown());
        assert_eq!(world.error_code(), code, "{extra}");
        match policy {
            OutcomePolicy::Ask => {
                assert_eq!(story(&world), asks);
                world.answer("call", json!({"action": "done", "result": {"status": 200}})).unwrap();
                assert_eq!(world.payloads("node.completed")[0]["outputs"]["response"]["status"], 200);
            }
            OutcomePolicy::Retry => {
                let again = world.tool();
                assert_eq!((again.key, again.again, again.verify), (call.key, 1, false));
            }
            OutcomePolicy::Verify => {
                let looked = world.tool();
                assert_eq!((looked.key.as_str(), looked.verify), (call.key.as_str(), true));
                assert_eq!(looked.arguments["verifyUrl"], "https://example.com/look");
                world.returns(&looked, Returned::NotDone);
                assert_eq!((world.tool().verify, world.tool().again), (false, 2));
            }
            OutcomePolicy::Fail => assert_eq!(world.payloads("node.retried"), [Value::Null; 0], "it is not made again"),
        }
        if !world.status().is_terminal() {
            world.cancel();
        }
        Audit::check(&world.log);
    }
}

#[test]
fn a_known_failure_is_tried_again_under_another_key() {
    let mut world = run(definition(json!({}), json!({"maxRetries": 1, "retryDelayMs": 10})));
    let first = world.tool();
    world.returns(&first, broken());
    assert_eq!(world.nodes_of("node.retried"), ["call"]);
    world.wait(10);
    let second = world.tool();
    assert_ne!(first.key, second.key, "it is known not to have worked, so this is another request");
    assert!(!world.returns(&first, ok(json!(1))), "the first one is over");
    world.returns(&second, broken());
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("external_call_failed")));
    Audit::check(&world.log);
}

#[test]
fn a_request_that_takes_too_long_is_in_doubt_and_one_that_only_reads_is_late() {
    let mut world = run(definition(json!({}), json!({"timeout": 100, "maxRetries": 5})));
    world.wait(100);
    assert_eq!((world.status(), world.payloads("baton.effect.unknown").len()), (RunStatus::WaitingApproval, 1));
    world.wait(1000);
    world.answer("call", json!("retry")).unwrap();
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)));
    let get = json!({"method": "GET", "outcomePolicy": "ask"});
    let mut definition = definition(get, json!({"timeout": 100}));
    definition["nodes"][0]["config"].as_object_mut().unwrap().remove("body");
    let mut world = run(definition);
    world.wait(100);
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("node_timeout")));
    Audit::check(&world.log);
}

#[test]
fn pause_cancel_and_drain() {
    let mut world = calling(json!({}));
    let call = world.tool();
    world.pause(DrainPolicy::Immediate).unwrap();
    assert_eq!(world.tool(), call, "what is on its way comes back");
    assert!(world.returns(&call, ok(json!({"status": 200}))));
    assert_eq!(world.status(), RunStatus::Paused);
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::Completed);
    let mut world = calling(json!({}));
    let call = world.tool();
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    world.returns(&call, ok(json!({"status": 200})));
    assert_eq!((world.status(), world.nodes_of("node.completed")), (RunStatus::Paused, vec!["call"]));
    let mut world = calling(json!({}));
    let call = world.tool();
    world.cancel();
    assert_eq!(world.payloads("agent.toolReturned")[0]["error"]["code"], "effect_outcome_unknown");
    assert!(!world.returns(&call, ok(json!(1))));
    Audit::check(&world.log);
}

#[test]
fn what_is_made_of_a_secret_shows_nowhere() {
    let secret = json!({"body": null, "bodyExpression": "{'token': variables.token}", "into": "answer"});
    let mut definition = definition(secret, json!({}));
    definition["nodes"][0]["config"].as_object_mut().unwrap().remove("body");
    definition["variables"] =
        json!([{"name": "token", "type": "string", "defaultValue": "hunter2-hunter2", "sensitive": true}]);
    for failed in [false, true] {
        let mut world = run(definition.clone());
        let call = world.tool();
        assert_eq!(call.arguments["body"]["token"], "hunter2-hunter2", "it is sent in full");
        let fault = baton_model::ToolOutcome::failed("external_call_failed", "Bad token hunter2-hunter2.");
        world.returns(
            &call,
            if failed {
                Returned::Outcome { outcome: fault, written: vec![] }
            } else {
                ok(json!({"echo": "hunter2-hunter2"}))
            },
        );
        let shown: String = world.log.iter().map(|record| record.public_json(&world.state.run)).collect();
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(world.variable("answer").is_some(), !failed);
    }
}

#[test]
fn a_replay_makes_no_request() {
    let mut world = calling(json!({"outcomePolicy": "retry"}));
    for what in [unknown(), ok(json!({"status": 200}))] {
        let call = world.tool();
        world.returns(&call, what);
    }
    let log: Vec<_> = world.log.iter().map(stored).collect();
    let again = second(&world.state.run, world.state.plan(), &log, 0, 3);
    assert_eq!((again.difference, again.log.len()), (None, log.len()));
    assert_eq!(again.state.status(), RunStatus::Completed);
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let table = [
        (json!({"url": null}), "url"),
        (json!({"urlExpression": "'x'"}), "url"),
        (json!({"method": "TRACE"}), "method"),
        (json!({"headers": "x"}), "headers"),
        (json!({"bodyExpression": "1"}), "body"),
        (json!({"outcomePolicy": "pray"}), "outcomePolicy"),
        (json!({"outcomePolicy": "verify"}), "verifyUrl"),
        (json!({"uri": "x"}), "uri"),
    ];
    for (extra, field) in table {
        let problems =
            Plan::compile(definition(extra.clone(), json!({})), Features::default()).map(|_| ()).expect_err("refused");
        assert_eq!(problems[0].pointer, format!("/nodes/0/config/{field}"), "{extra}");
    }
    let world = calling(json!({"url": "ftp://example.com"}));
    assert_eq!((world.error_code(), world.payloads("agent.toolCalled").len()), (Some("validation_error"), 0));
}
