//! Where inputs come from, which edges open, and what never shows.

use crate::support;

use baton_engine::snapshot;
use baton_model::RunStatus;
use serde_json::{Value, json};
use support::{World, plan, run, start_command, workflow};

const NONE: Value = Value::Null;

/// `first` sets `n` to 2, then `end` receives this port as `x`.
fn received(port: Value) -> World {
    let nodes = [("first", "core.setVariable", json!({"name": "n", "value": 2})), ("end", "core.end", json!({}))];
    let mut definition = workflow(&nodes, &[("first", "end", NONE)]);
    definition["nodes"][1]["inputs"] = json!({"x": port});
    run(definition)
}

#[test]
fn a_port_takes_its_value_from_four_places() {
    let table = [
        (json!({"type": "static", "value": {"deep": [1]}}), json!({"deep": [1]})),
        (json!({"type": "expression", "expression": "variables.n * 3"}), json!(6)),
        (json!({"type": "expression", "expression": "nodes.first.n + 1"}), json!(3)),
        (json!({"type": "connection", "nodeId": "first", "outputKey": "n"}), json!(2)),
        (json!({"type": "variable", "variableName": "n"}), json!(2)),
    ];
    for (port, expected) in table {
        let world = received(port.clone());
        assert_eq!(world.payloads("run.completed"), [json!({"outputs": {"x": expected}})], "{port}");
    }
}

#[test]
fn what_is_optional_may_be_missing_and_the_rest_may_not() {
    let connection = json!({"type": "connection", "nodeId": "first", "outputKey": "nope"});
    let variable = json!({"type": "variable", "variableName": "nope"});
    for mut port in [connection, variable] {
        let missing = received(port.clone());
        assert_eq!((missing.status(), missing.error_code()), (RunStatus::Failed, Some("input_missing")), "{port}");
        assert_eq!(missing.state.error().unwrap().details.as_ref().unwrap()["input"], "x");
        assert_eq!(missing.nodes_of("node.failed"), ["end"]);
        port["optional"] = true.into();
        assert_eq!(received(port).payloads("run.completed"), [json!({})]);
    }
}

#[test]
fn null_is_not_missing() {
    let world = received(json!({"type": "static", "value": null}));
    assert_eq!(world.payloads("run.completed"), [json!({"outputs": {"x": null}})]);
}

#[test]
fn an_expression_that_fails_fails_its_node_and_is_named() {
    let port = received(json!({"type": "expression", "expression": "variables.n / 0"}));
    let conditional = run(workflow(&[("end", "core.conditional", json!({"expression": "1 / 0 == 1"}))], &[]));
    let not_bool = run(workflow(&[("end", "core.conditional", json!({"expression": "1"}))], &[]));
    let set = run(workflow(&[("end", "core.setVariable", json!({"assign": {"a": "variables.gone"}}))], &[]));
    let table = [(port, "variables.n / 0"), (conditional, "1 / 0 == 1"), (not_bool, "1"), (set, "variables.gone")];
    for (world, expression) in table {
        assert_eq!(world.error_code(), Some("expression_error"), "{expression}");
        let error = world.state.error().unwrap();
        assert_eq!(error.details.as_ref().unwrap()["expression"], expression);
        assert!(error.message.contains(expression));
        assert_eq!(world.nodes_of("node.failed"), ["end"]);
    }
}

#[test]
fn an_edge_that_cannot_be_judged_fails_its_source() {
    let condition = json!({"condition": {"type": "expression", "expression": "variables.gone > 1"}});
    let nodes = [("a", "core.noop", json!({})), ("b", "core.noop", json!({}))];
    let world = run(workflow(&nodes, &[("a", "b", condition)]));
    assert_eq!((world.error_code(), world.nodes_of("node.failed")), (Some("expression_error"), vec!["a"]));
    let details = world.state.error().unwrap().details.clone().unwrap();
    assert_eq!((&details["expression"], &details["edgeId"]), (&json!("variables.gone > 1"), &json!("e0")));
}

#[test]
fn expression_errors_are_not_tried_again() {
    let mut definition = workflow(&[("a", "core.conditional", json!({"expression": "variables.gone"}))], &[]);
    definition["settings"] = json!({"maxRetries": 5});
    assert_eq!(run(definition).nodes_of("node.started").len(), 1);
}

#[test]
fn each_kind_of_condition_opens_and_closes() {
    let set = json!({"assign": {
        "n": "2", "word": "'hello'", "list": "[1, 'x']", "map": "{'k': {'deep': 1}}", "zero": "0", "no": "''", "f": "2.0"
    }});
    let table = [
        ("expression", json!({"expression": "variables.n == 2"}), true),
        ("expression", json!({"expression": "variables.n == 3"}), false),
        ("equals", json!({"left": "variables.n", "right": 2}), true),
        ("equals", json!({"left": "n", "right": 2.0}), true),
        ("equals", json!({"left": "variables.map.k.deep", "right": 1}), true),
        ("equals", json!({"left": "nodes.set.list.1", "right": "x"}), true),
        ("equals", json!({"left": "variables.gone", "right": null}), true),
        ("equals", json!({"left": "variables.n", "right": "2"}), false),
        ("notEquals", json!({"left": "variables.n", "right": 3}), true),
        ("notEquals", json!({"left": "variables.f", "right": 2}), false),
        ("contains", json!({"left": "variables.word", "right": "ell"}), true),
        ("contains", json!({"left": "variables.list", "right": 1}), true),
        ("contains", json!({"left": "variables.map", "right": "k"}), true),
        ("contains", json!({"left": "variables.n", "right": 2}), false),
        ("regex", json!({"left": "variables.word", "right": "^h.*o$"}), true),
        ("regex", json!({"left": "variables.word", "right": "^x"}), false),
        ("regex", json!({"left": "variables.n", "right": "2"}), false),
        ("truthy", json!({"left": "variables.list"}), true),
        ("truthy", json!({"left": "variables.zero"}), false),
        ("truthy", json!({"left": "variables.gone"}), false),
        ("falsy", json!({"left": "variables.no"}), true),
        ("falsy", json!({"left": "variables.word"}), false),
    ];
    for (kind, mut condition, open) in table {
        condition["type"] = kind.into();
        let nodes = [("set", "core.setVariable", set.clone()), ("next", "core.noop", json!({}))];
        let world = run(workflow(&nodes, &[("set", "next", json!({"condition": condition}))]));
        assert_eq!(world.nodes_of("node.completed").contains(&"next"), open, "{condition}");
    }
}

#[test]
fn a_condition_sees_what_its_node_has_just_written() {
    let nodes = [
        ("count", "core.channelWrite", json!({"channelName": "c", "reducer": "counter", "value": 3})),
        ("next", "core.noop", json!({})),
    ];
    let condition =
        json!({"condition": {"type": "expression", "expression": "variables.c == 3 && nodes.count.value == 3"}});
    assert_eq!(run(workflow(&nodes, &[("count", "next", condition)])).nodes_of("node.completed"), ["count", "next"]);
}

const SECRET: &str = "hunter2";

/// A run with a sensitive input, in which this node handles it.
fn leaky(type_id: &str, config: Value, inputs: Value) -> World {
    let mut definition = workflow(
        &[("n", type_id, config), ("body", "core.noop", json!({})), ("end", "core.end", json!({}))],
        &[("n", "body", json!({"sourceOutput": "body"})), ("body", "n", NONE), ("n", "end", NONE)],
    );
    if type_id != "core.loop" {
        definition["edges"].as_array_mut().unwrap().remove(1);
    }
    definition["nodes"][0]["inputs"] = inputs;
    definition["nodes"][2]["inputs"] = json!({
        "copied": {"type": "connection", "nodeId": "n", "outputKey": "value", "optional": true},
        "direct": {"type": "variable", "variableName": "secret"},
    });
    definition["variables"] = json!([{"name": "secret", "type": "object", "sensitive": true}]);
    definition["channels"] = json!({
        "vault": {"reducer": "append", "sensitive": true},
        "strict": {"reducer": "replace", "sensitive": true, "schema": {"type": "number"}},
    });
    let mut world = World::started(plan(definition), start_command(json!({"secret": SECRET})));
    while world.status() == RunStatus::Running && world.sleep_until_next() {}
    world
}

#[test]
fn a_sensitive_value_shows_nowhere() {
    let port = json!({"x": {"type": "variable", "variableName": "secret"}, "value": {"type": "expression", "expression": "variables.secret"}});
    let table = [
        ("core.noop", json!({}), json!({})),
        ("core.getVariable", json!({"name": "secret"}), json!({})),
        ("core.identity", json!({}), port.clone()),
        ("core.merge", json!({}), port.clone()),
        ("core.setVariable", json!({"name": "secret", "value": SECRET.repeat(2)}), json!({})),
        ("core.setVariable", json!({"name": "copy"}), port.clone()),
        (
            "core.setVariable",
            json!({"assign": {"copy": "'Bearer ' + variables.secret", "again": "variables.copy"}}),
            json!({}),
        ),
        ("core.setVariable", json!({"assign": {"copy": "inputs.x"}}), port.clone()),
        ("core.setVariable", json!({"assign": {"all": "[variables]"}}), json!({})),
        ("core.setVariable", json!({"assign": {"all": "variables.map(k, variables[k])"}}), json!({})),
        ("core.setVariable", json!({"assign": {"bad": "variables.secret + 1"}}), json!({})),
        ("core.setVariable", json!({"assign": {"bad": "variables[variables.secret]"}}), json!({})),
        ("core.setVariable", json!({"assign": {"bad": "'x'.matches('(' + variables.secret)"}}), json!({})),
        ("core.channelWrite", json!({"channelName": "vault", "value": SECRET}), json!({})),
        ("core.channelWrite", json!({"channelName": "strict", "value": SECRET}), json!({})),
        ("core.channelWrite", json!({"channelName": "open", "expression": "variables.secret"}), json!({})),
        ("core.loop", json!({"items": "[variables.secret]", "into": "item"}), json!({})),
        ("core.approvalGate", json!({}), json!({"artifact": {"type": "variable", "variableName": "secret"}})),
    ];
    for (type_id, config, inputs) in table {
        let world = leaky(type_id, config.clone(), inputs);
        for record in &world.log {
            let public = record.public_json(&world.state.run);
            assert!(!public.contains(SECRET), "{type_id} {config}: {public}");
        }
        let view = serde_json::to_string(&snapshot(&world.state).unwrap()).unwrap();
        assert!(!view.contains(SECRET), "{type_id} {config}: {view}");
        assert_eq!(snapshot(&world.state).unwrap().variables["secret"], "[REDACTED]");
        let truth = world.variable("secret").unwrap().as_str().unwrap();
        assert!(truth.starts_with(SECRET), "nodes still see the value itself");
    }
}

#[test]
fn an_output_declared_sensitive_is_masked() {
    let mut definition = workflow(&[("n", "core.setVariable", json!({"name": "open", "value": 1}))], &[]);
    definition["nodes"][0]["outputSensitivity"] = json!({"open": true});
    let world = run(definition);
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"open": "[REDACTED]"}));
}

#[test]
fn a_derived_secret_still_works_inside() {
    let nodes = [
        ("copy", "core.setVariable", json!({"assign": {"copy": "variables.secret + '!'"}})),
        ("if", "core.conditional", json!({"expression": "variables.copy == 'hunter2!'"})),
        ("yes", "core.noop", json!({})),
    ];
    let mut definition = workflow(&nodes, &[("copy", "if", NONE), ("if", "yes", json!({"sourceOutput": "true"}))]);
    definition["variables"] = json!([{"name": "secret", "type": "string", "sensitive": true, "defaultValue": SECRET}]);
    let world = run(definition);
    assert_eq!(world.nodes_of("node.completed"), ["copy", "if", "yes"]);
    assert_eq!(world.payloads("variable.changed")[0]["next"], "[REDACTED]");
}

#[test]
fn a_channel_shows_itself_to_its_readers_only() {
    let mut definition = workflow(
        &[
            ("write", "core.channelWrite", json!({"channelName": "notes", "value": 1})),
            ("friend", "core.getVariable", json!({"name": "notes"})),
            ("stranger", "core.getVariable", json!({"name": "notes"})),
        ],
        &[("write", "friend", json!({})), ("friend", "stranger", json!({}))],
    );
    definition["channels"] = json!({"notes": {"reducer": "append", "access": {"readers": ["friend"]}}});
    let world = World::started(plan(definition), start_command(json!({})));
    assert_eq!(world.nodes_of("node.completed"), ["write", "friend"]);
    assert_eq!(world.error_code(), Some("channel_access_denied"));
}

/// A value can be wrapped once per round, and what is written must read back: a log that does not decode is lost.
#[test]
fn a_value_that_grows_too_deep_fails_its_node_before_it_is_written() {
    let world = run(workflow(
        &[
            ("first", "core.setVariable", json!({"name": "x", "value": 1})),
            ("loop", "core.loop", json!({"count": 200})),
            ("wrap", "core.setVariable", json!({"name": "x", "expression": "[variables.x]"})),
        ],
        &[("first", "loop", NONE), ("loop", "wrap", json!({"sourceOutput": "body"})), ("wrap", "loop", NONE)],
    ));
    for record in &world.log {
        let payload = serde_json::to_string(&record.event.payload()).unwrap();
        let private = record.event.private_json();
        let read = baton_model::Event::decode(record.event.type_name(), &payload, private.as_deref());
        assert_eq!(read.unwrap(), record.event);
    }
    assert_eq!(world.error_code(), Some("validation_error"));
}

#[test]
fn an_input_or_an_answer_that_is_too_deep_is_refused() {
    let deep = (0..100).fold(json!(1), |value, _| json!([value]));
    let gate = workflow(&[("gate", "core.interrupt", json!({"kind": "custom"}))], &[]);
    let mut world = World::new(plan(gate.clone()));
    let start = baton_engine::Command::Start(Box::new(start_command(json!({"x": deep}))));
    assert_eq!(world.command(&start).unwrap_err().fault.code, "validation_error");
    let mut world = run(gate);
    assert_eq!(world.answer("gate", deep).unwrap_err().fault.code, "validation_error");
    assert_eq!(world.status(), RunStatus::WaitingApproval);
}
