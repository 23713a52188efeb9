//! `vendor.baton.tool`: one call of any tool of the catalogue, announced before it is made.

use crate::support;

use baton_engine::{Features, Plan, Returned};
use baton_model::event::DrainPolicy;
use baton_model::tool::{ToolFault, ToolStatus};
use baton_model::{OutcomePolicy, RunStatus, ToolOutcome};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{broken, ok, tool_calls, unknown};
use support::second::second;
use support::tools::{AWAY, LOOK, MAIL, REMEMBER, TYPED};
use support::{World, plan, run, start_command, stored, workflow};

fn definition(config: Value, settings: Value) -> Value {
    let mut definition = workflow(&[("call", "vendor.baton.tool", config)], &[]);
    definition["nodes"][0]["settings"] = settings;
    definition
}

fn calling(config: Value) -> World {
    run(definition(config, json!({})))
}

fn complains(message: &str) -> Returned {
    let error = ToolFault {
        code: "mcp_tool_invocation_failed".to_owned(),
        message: message.to_owned(),
        details: None,
        retryable: Some(false),
    };
    let outcome = ToolOutcome { status: ToolStatus::Error, value: Value::Null, error: Some(error), duration_ms: None };
    Returned::Outcome { outcome, written: Vec::new() }
}

fn problems(config: Value) -> Vec<String> {
    let features = Features { conformance: true, ..Features::default() };
    let found = Plan::compile(definition(config, json!({})), features).err().unwrap_or_default();
    found.into_iter().map(|problem| problem.pointer).collect()
}

#[test]
fn a_tool_is_looked_up_announced_called_and_its_result_kept() {
    let mut world =
        calling(json!({"tool": MAIL, "argumentsExpression": "{'n': 1 + 1}", "into": "answer", "waitForRunnerMs": 5}));
    assert_eq!(world.types(), ["run.started", "node.started", "agent.toolCalled"]);
    let call = world.tool();
    assert_eq!((call.key.as_str(), call.tool.id.as_str()), ("run_test/call:1:0:0:0", MAIL));
    assert_eq!((call.arguments.clone(), call.runner.wait_ms), (json!({"n": 2}), Some(5)));
    assert_eq!(tool_calls(&world.refolded()), std::slice::from_ref(&call), "the tool itself is on the log");
    assert!(world.returns(&call, ok(json!({"sent": true}))));
    let announced = &world.payloads("agent.toolCalled")[0];
    assert_eq!((&announced["agentId"], &announced["principal"]), (&json!("core.system"), &json!("core.system")));
    assert_eq!(announced["transport"], "mcp");
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"result": {"sent": true}, "isError": false}));
    assert_eq!((world.variable("answer"), world.status()), (Some(&json!({"sent": true})), RunStatus::Completed));
    let trusts: Vec<bool> = world.log.iter().map(|record| record.event.content_trust().is_some()).collect();
    assert_eq!(trusts[2..4], [true, true], "what is said to a tool, and what it says, nobody vouches for");
    Audit::check(&world.log);
}

#[test]
fn without_arguments_the_inputs_are() {
    let mut definition = definition(json!({"tool": LOOK}), json!({}));
    definition["nodes"][0]["inputs"] = json!({"n": {"type": "static", "value": 7}});
    assert_eq!(run(definition).tool().arguments, json!({"n": 7}));
    assert_eq!(calling(json!({"tool": LOOK, "arguments": {"n": 8}})).tool().arguments, json!({"n": 8}));
}

#[test]
fn mistakes_are_found_when_the_definition_is_read() {
    for (config, place) in [
        (json!({}), "tool"),
        (json!({"tool": ""}), "tool"),
        (json!({"tool": 5}), "tool"),
        (json!({"tool": "mcp:files"}), "tool"),
        (json!({"tool": "runner:gpu"}), "tool"),
        (json!({"tool": LOOK, "arguments": [1]}), "arguments"),
        (json!({"tool": LOOK, "arguments": {}, "argumentsExpression": "1"}), "arguments"),
        (json!({"tool": LOOK, "argumentsExpression": "1 +"}), "argumentsExpression"),
        (json!({"tool": LOOK, "timeoutMs": 0}), "timeoutMs"),
        (json!({"tool": LOOK, "outcomePolicy": "hope"}), "outcomePolicy"),
        (json!({"tool": LOOK, "outcomePolicy": "verify"}), "outcomePolicy"),
        (json!({"tool": LOOK, "onToolError": "ignore"}), "onToolError"),
        (json!({"tool": LOOK, "runnerVersion": " "}), "runnerVersion"),
        (json!({"tool": LOOK, "argumnets": {}}), "argumnets"),
    ] {
        assert_eq!(problems(config.clone()), [format!("/nodes/0/config/{place}")], "{config}");
    }
    let world = calling(json!({"tool": "runner:gpu.embed", "runnerVersion": "^1"}));
    assert_eq!(world.error_code(), Some("not_found"), "a runner's tool is looked up like any other");
}

#[test]
fn a_tool_that_is_not_here_says_so_and_one_whose_server_is_away_is_tried_again() {
    let retrying = json!({"maxRetries": 1, "retryDelayMs": 10});
    let world = run(definition(json!({"tool": "mcp:t.nothing"}), retrying.clone()));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("not_found")));
    assert!(world.payloads("node.retried").is_empty(), "it is not there the second time either");
    let mut world = run(definition(json!({"tool": AWAY}), retrying));
    assert_eq!(world.nodes_of("node.retried"), ["call"]);
    world.wait(10);
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("mcp_server_disconnected")));
    let mut start = start_command(json!({}));
    start.settings.tool_grant = Some(vec![MAIL.to_owned()]);
    let world = World::started(plan(definition(json!({"tool": LOOK}), json!({}))), start);
    assert_eq!(world.error_code(), Some("forbidden"));
}

#[test]
fn arguments_that_do_not_fit_are_recorded_and_not_sent() {
    let world = run(definition(json!({"tool": MAIL, "arguments": {"n": "x"}}), json!({"maxRetries": 3})));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("validation_error")));
    let story = ["run.started", "node.started", "agent.toolCalled", "agent.toolReturned", "node.failed", "run.failed"];
    assert_eq!(world.types(), story);
    Audit::check(&world.log);
}

#[test]
fn a_result_must_be_what_the_tool_promises() {
    let mut world = run(definition(json!({"tool": TYPED}), json!({"maxRetries": 3})));
    let call = world.tool();
    world.returns(&call, ok(json!({"n": "three"})));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("tool_result_invalid")));
    let mut world = calling(json!({"tool": TYPED}));
    let call = world.tool();
    world.returns(&call, ok(json!({"n": 3})));
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_tool_that_says_it_failed_fails_its_node_or_is_heard() {
    let mut world = calling(json!({"tool": LOOK}));
    let call = world.tool();
    world.returns(&call, complains("No such city."));
    assert_eq!(world.error_code(), Some("mcp_tool_invocation_failed"));
    let mut world = calling(json!({"tool": LOOK, "onToolError": "return", "into": "answer"}));
    let call = world.tool();
    world.returns(&call, complains("No such city."));
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"result": "No such city.", "isError": true}));
    let mut world = calling(json!({"tool": LOOK, "onToolError": "return"}));
    let call = world.tool();
    world.returns(&call, broken());
    assert_eq!(world.error_code(), Some("external_call_failed"), "only what the tool itself says is a result");
}

#[test]
fn what_is_done_when_nobody_knows() {
    for (policy, expected) in
        [(None, OutcomePolicy::Ask), (Some("retry"), OutcomePolicy::Retry), (Some("fail"), OutcomePolicy::Fail)]
    {
        let mut config = json!({"tool": MAIL});
        policy.inspect(|policy| config["outcomePolicy"] = json!(policy));
        let mut world = run(definition(config, json!({"maxRetries": 2})));
        let call = world.tool();
        assert_eq!(call.tool.outcome_policy, expected);
        world.returns(&call, unknown());
        match expected {
            OutcomePolicy::Retry => {
                let again = world.tool();
                assert_eq!((again.key, again.again), (call.key, 1));
            }
            OutcomePolicy::Fail => assert_eq!(world.error_code(), Some("effect_outcome_unknown")),
            _ => {
                assert_eq!(world.status(), RunStatus::WaitingApproval);
                world.answer("call", json!({"action": "done", "result": {"id": 1}})).unwrap();
                assert_eq!(world.payloads("node.completed")[0]["outputs"]["result"], json!({"id": 1}));
            }
        }
    }
}

#[test]
fn a_known_failure_is_tried_again_under_another_key_and_a_late_answer_changes_nothing() {
    let mut world = run(definition(json!({"tool": MAIL}), json!({"maxRetries": 1, "retryDelayMs": 10})));
    let first = world.tool();
    world.returns(&first, broken());
    world.wait(10);
    let second = world.tool();
    assert_ne!(first.key, second.key);
    assert!(!world.returns(&first, ok(json!(1))), "it answers twice: the first call is over");
    assert!(world.returns(&second, ok(json!(2))));
    assert!(!world.returns(&second, ok(json!(3))));
    assert_eq!(world.payloads("node.completed")[0]["outputs"]["result"], 2);
}

#[test]
fn a_call_that_takes_too_long_is_in_doubt_and_one_that_only_reads_is_late() {
    let mut world = calling(json!({"tool": MAIL, "timeoutMs": 100}));
    assert_eq!(world.tool().timeout_ms, Some(100));
    world.wait(100);
    assert_eq!((world.status(), world.payloads("baton.effect.unknown").len()), (RunStatus::WaitingApproval, 1));
    let mut world = calling(json!({"tool": LOOK, "timeoutMs": 100}));
    world.wait(100);
    assert_eq!(world.error_code(), Some("node_timeout"));
}

#[test]
fn memory_is_a_tool_like_any_other() {
    let world = calling(json!({"tool": REMEMBER, "arguments": {"content": "sun"}}));
    assert_eq!(world.status(), RunStatus::Completed);
    let kept = &world.payloads("node.completed")[0]["outputs"]["result"]["entry"]["content"];
    assert_eq!((kept, world.types().contains(&"memory.written")), (&json!("sun"), true));
    let world = calling(json!({"tool": "openwop:envelope"}));
    assert_eq!(world.status(), RunStatus::Failed);
}

#[test]
fn pause_drain_and_cancel() {
    let mut world = World::new(plan(definition(json!({"tool": LOOK}), json!({}))));
    world.answering = false;
    world.command(&baton_engine::Command::Start(Box::new(start_command(json!({}))))).unwrap();
    assert!(world.question().is_some(), "the tool is being looked up");
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    assert!(world.question().is_some(), "what has begun goes on, or the run would never stop");
    world.answering = true;
    world.advance();
    let call = world.tool();
    world.returns(&call, ok(json!(1)));
    assert_eq!((world.status(), world.nodes_of("node.completed")), (RunStatus::Paused, vec!["call"]));
    let mut world = calling(json!({"tool": MAIL}));
    world.cancel();
    assert_eq!(world.status(), RunStatus::Cancelled);
    Audit::check(&world.log);
}

#[test]
fn what_is_told_a_secret_shows_nothing() {
    let mut definition = definition(json!({"tool": LOOK, "arguments": {}, "into": "late"}), json!({}));
    definition["nodes"][0]["config"] =
        json!({"tool": MAIL, "argumentsExpression": "{'to': variables.secret}", "into": "late"});
    definition["variables"] =
        json!([{"name": "secret", "type": "string", "defaultValue": "hunter2", "sensitive": true}]);
    let mut world = run(definition);
    let call = world.tool();
    assert_eq!(call.arguments, json!({"to": "hunter2"}));
    world.returns(&call, ok(json!({"echo": "hunter2"})));
    assert_eq!(world.variable("late"), Some(&json!({"echo": "hunter2"})));
    let shown: String =
        world.log.iter().map(|record| serde_json::to_string(&record.event.payload()).unwrap()).collect();
    assert!(!shown.replace("defaultValue", "").contains("hunter2"), "{shown}");
}

#[test]
fn a_replay_calls_nobody_and_comes_to_the_same() {
    let mut world = calling(json!({"tool": MAIL, "into": "answer"}));
    let call = world.tool();
    world.returns(&call, unknown());
    world.answer("call", json!("retry")).unwrap();
    let again = world.tool();
    world.returns(&again, ok(json!(4)));
    let log: Vec<_> = world.log.iter().map(stored).collect();
    for from in 0..=log.len() {
        let replayed = second(&world.state.run, world.state.plan(), &log, from, 1);
        assert_eq!(replayed.difference, None, "from {from}");
        assert_eq!(replayed.state.variables(), world.state.variables());
    }
}
