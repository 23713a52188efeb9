//! What a run may use up: the work of its expressions, the size of its values, the ways through its schemas. New bounds
//! hold at registration and when something is evaluated, never when a record is read.

use std::sync::Arc;

use baton_engine::{Command, Effect, Features, Plan, outstanding};
use baton_model::{RunStatus, ValueBounds, code};
use serde_json::{Map, Value, json};

use crate::support::{World, plan, run, start_command, workflow};

const NONE: Value = Value::Null;

fn chain() -> String {
    "1+".repeat(2047) + "1"
}

/// As a plan is compiled for a run that is on record.
fn recorded(definition: Value) -> Arc<Plan> {
    let features = Features {
        conformance: true,
        for_test_endpoint: true,
        live_agents: true,
        recorded: true,
        ..Features::default()
    };
    Arc::new(Plan::compile(definition, features).expect("what was accepted once is read for ever"))
}

fn set(expression: &str) -> Value {
    workflow(&[("set", "core.setVariable", json!({"name": "x", "expression": expression}))], &[])
}

fn bounded(plan: Arc<Plan>, inputs: Value, max_value_bytes: u64, max_run_bytes: u64) -> World {
    let mut start = start_command(inputs);
    start.settings.values = Some(Box::new(ValueBounds { max_value_bytes, max_run_bytes, ..ValueBounds::default() }));
    World::started(plan, start)
}

fn message(world: &World) -> String {
    world.state.error().map(|fault| fault.message.clone()).unwrap_or_default()
}

#[test]
fn a_chain_that_is_too_long_is_refused_with_its_place_and_fails_politely_where_it_is_on_record() {
    let refused = Plan::compile(set(&chain()), Features::default()).map(|_| ()).expect_err("it is refused");
    assert!(refused.iter().any(|problem| problem.pointer == "/nodes/0/config/expression"), "{refused:?}");
    let world = World::started(recorded(set(&chain())), start_command(json!({})));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some(code::EXPRESSION_TOO_COSTLY)));
    assert!(message(&world).contains("node `set`, expression"), "{}", message(&world));
}

#[test]
fn every_place_of_an_expression_is_read_from_old_records() {
    let long = chain();
    let edge = json!({"condition": {"type": "expression", "expression": format!("{long} > 0")}});
    let noops = [("a", "core.noop", json!({})), ("b", "core.noop", json!({}))];
    let world = World::started(recorded(workflow(&noops, &[("a", "b", edge)])), start_command(json!({})));
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("edge `e0`, condition"), "{}", message(&world));

    let mut port = workflow(&[("a", "core.identity", json!({}))], &[]);
    port["nodes"][0]["inputs"] = json!({"total": {"type": "expression", "expression": long}});
    let world = World::started(recorded(port), start_command(json!({})));
    assert!(message(&world).contains("node `a`, inputs/total"), "{}", message(&world));

    let end = json!({"kind": "terminate"});
    let rules = json!({"rules": [{"when": "false", "decide": end}, {"when": long, "decide": end}], "otherwise": end});
    let lead = workflow(&[("lead", "core.orchestrator.supervisor", rules)], &[]);
    let world = World::started(recorded(lead), start_command(json!({})));
    assert!(message(&world).contains("node `lead`, rules/1/when"), "{}", message(&world));
}

#[test]
fn an_expression_that_is_too_costly_fails_its_node_once() {
    let list: Vec<u32> = (0..300).collect();
    let source = "variables.l.all(a, variables.l.all(b, variables.l.all(c, true)))";
    let mut definition = set(source);
    definition["nodes"][0]["settings"] = json!({"maxRetries": 3});
    let world = World::started(plan(definition), start_command(json!({"l": list})));
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert_eq!(world.types().iter().filter(|kind| **kind == "node.retried").count(), 0);
    for part in [source, "node `set`, expression", "200000 units"] {
        assert!(message(&world).contains(part), "{}", message(&world));
    }
}

#[test]
fn each_step_has_a_budget_of_its_own() {
    let list: Vec<u32> = (0..1000).collect();
    let config = json!({"name": "x", "expression": "variables.l.all(a, variables.l.exists(b, b == a % 20))"});
    let names: Vec<String> = (0..12).map(|n| format!("n{n:02}")).collect();
    let nodes: Vec<(&str, &str, Value)> =
        names.iter().map(|name| (name.as_str(), "core.setVariable", config.clone())).collect();
    let edges: Vec<(&str, &str, Value)> =
        names.windows(2).map(|two| (two[0].as_str(), two[1].as_str(), NONE)).collect();
    let world = World::started(plan(workflow(&nodes, &edges)), start_command(json!({"l": list})));
    assert_eq!(world.status(), RunStatus::Completed, "{}", message(&world));
}

#[test]
fn a_text_that_doubles_each_round_stops_at_the_bound() {
    let nodes = [
        ("loop", "core.loop", json!({"count": 40})),
        ("grow", "core.setVariable", json!({"name": "s", "expression": "variables.s + variables.s"})),
    ];
    let edges = [("loop", "grow", json!({"sourceOutput": "body"})), ("grow", "loop", NONE)];
    let mut definition = workflow(&nodes, &edges);
    definition["variables"] = json!([{"name": "s", "type": "string", "defaultValue": "x"}]);
    let world = run(definition);
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("max_value_bytes"), "{}", message(&world));
    assert_eq!(world.variable("s").unwrap().as_str().unwrap().len(), 1 << 20);
}

#[test]
fn values_that_no_expression_made_are_bounded_too() {
    let identity = |inputs: Value| {
        let mut definition = workflow(&[("a", "core.identity", json!({}))], &[]);
        definition["nodes"][0]["inputs"] = inputs;
        plan(definition)
    };
    let text = |bytes: usize| json!({"x": {"type": "static", "value": "y".repeat(bytes)}});
    // A little may stand around a value of the largest size.
    let world = bounded(identity(text(10_000)), json!({}), 10_000, 100_000);
    assert_eq!(world.status(), RunStatus::Completed, "{}", message(&world));
    let world = bounded(identity(text(15_000)), json!({}), 10_000, 100_000);
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("`x`") && message(&world).contains("max_value_bytes"), "{}", message(&world));
    // Together, too.
    let world = bounded(identity(text(6_000)), json!({"a": "z".repeat(6_000)}), 10_000, 10_000);
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("max_run_bytes"), "{}", message(&world));
}

#[test]
fn a_channel_that_grows_stops_at_the_bound() {
    let nodes = [
        ("loop", "core.loop", json!({"count": 100})),
        ("say", "core.channelWrite", json!({"channelName": "log", "value": "w".repeat(1000)})),
    ];
    let edges = [("loop", "say", json!({"sourceOutput": "body"})), ("say", "loop", NONE)];
    let world = bounded(plan(workflow(&nodes, &edges)), json!({}), 10_000, 100_000);
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("`log`"), "{}", message(&world));
    assert_eq!(world.payloads("channel.written").len(), 14);
}

#[test]
fn what_was_counted_is_what_is_there() {
    let nodes = [
        ("loop", "core.loop", json!({"count": 20, "into": "i"})),
        ("grow", "core.setVariable", json!({"name": "s", "expression": "'x' + string(variables.i)"})),
        ("say", "core.channelWrite", json!({"channelName": "log", "expression": "variables.s", "maxSize": 3})),
    ];
    let edges = [("loop", "grow", json!({"sourceOutput": "body"})), ("grow", "say", NONE), ("say", "loop", NONE)];
    // 20 rounds of replacing a few bytes stay within a bound that their sum would break.
    let world = bounded(plan(workflow(&nodes, &edges)), json!({}), 100, 120);
    assert_eq!(world.status(), RunStatus::Completed, "{}", message(&world));
}

#[test]
fn inputs_that_are_too_large_are_refused_at_the_door() {
    let definition = plan(set("1"));
    for inputs in [json!({"x": "y".repeat(20_000)}), json!({"a": "y".repeat(8_000), "x": "y".repeat(8_000)})] {
        let mut start = start_command(inputs);
        start.settings.values =
            Some(Box::new(ValueBounds { max_value_bytes: 10_000, max_run_bytes: 12_000, ..ValueBounds::default() }));
        let mut world = World::new(Arc::clone(&definition));
        let refusal = world.command(&Command::Start(Box::new(start))).expect_err("it is refused");
        assert_eq!(refusal.fault.code, code::VALIDATION_ERROR);
        assert_eq!(refusal.fault.details.unwrap()["path"], json!("/inputs/x"));
    }
}

#[test]
fn the_bounds_are_recorded_and_absent_ones_are_the_usual() {
    let world = bounded(plan(set("1")), json!({}), 10_000, 20_000);
    let mut facts = serde_json::to_value(&world.state.started().unwrap().private).unwrap();
    assert_eq!(facts["values"], json!({"maxValueBytes": 10_000, "maxRunBytes": 20_000, "maxUnits": 200_000}));
    facts.as_object_mut().unwrap().remove("values");
    let old: baton_model::event::RunSettings = serde_json::from_value(facts).unwrap();
    assert_eq!(old.values, None);
}

#[test]
fn what_a_child_made_is_bounded_where_it_is_taken_over() {
    let call = json!({"workflowId": "child", "outputMapping": {"mine": "made"}});
    let mut world = bounded(plan(workflow(&[("call", "core.subWorkflow", call)], &[])), json!({}), 10_000, 20_000);
    let child = outstanding(&world.state)
        .into_iter()
        .find_map(|effect| match effect {
            Effect::StartChild { plan, .. } => Some(plan.run),
            _ => None,
        })
        .unwrap();
    world.command(&Command::ChildStarted { child: child.clone() }).unwrap();
    let variables: Map<String, Value> = [("made".to_owned(), json!("m".repeat(20_000)))].into_iter().collect();
    let outcome =
        baton_engine::ChildOutcome { status: RunStatus::Completed, variables, error: None, memory: 0, usage: None };
    world.command(&Command::ChildEnded { child, outcome }).unwrap();
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert_eq!(world.variable("mine"), None);
}

/// 32 levels, each with two ways to the next.
fn bomb() -> Value {
    let mut defs = Map::new();
    for level in 0..32 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
    }
    defs.insert("l32".to_owned(), json!({"type": "string"}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

#[test]
fn a_schema_with_too_many_ways_is_refused_and_judges_nothing_where_it_is_on_record() {
    let mut definition = set("1");
    definition["configurableSchema"] = bomb();
    let refused = Plan::compile(definition.clone(), Features::default()).map(|_| ()).expect_err("it is refused");
    assert_eq!(refused[0].pointer, "/configurableSchema");
    assert!(refused[0].message.contains("too costly"), "{refused:?}");
    let (_, why) = recorded(definition).check_configurable(&Map::new()).expect_err("it judges nothing");
    assert!(why.contains("too costly"), "{why}");
}

#[test]
fn schemas_are_bounded_in_every_way() {
    let nested = (0..70).fold(json!({}), |inner, _| json!({"not": inner}));
    let many: Map<String, Value> = (0..5000).map(|n| (format!("p{n}"), json!({}))).collect();
    let refused = [
        bomb(),
        nested,
        json!({"properties": many}),
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        json!({"$dynamicRef": "#me", "$dynamicAnchor": "me"}),
        json!({"pattern": "(a{100}){100}"}),
        json!({"patternProperties": {"(a{100}){100}": {}}}),
        json!({"description": "x".repeat(300_000)}),
        json!({"$ref": "https://example.com/x.json"}),
    ];
    for schema in refused {
        let mut definition = set("1");
        definition["configurableSchema"] = schema.clone();
        assert!(Plan::compile(definition, Features::default()).is_err(), "{schema}");
    }
    let tree =
        json!({"properties": {"kids": {"items": {"$ref": "#"}}, "name": {"type": "string", "pattern": "^(?!x)\\w+$"}}});
    let wide: Map<String, Value> =
        (0..500).map(|n| (format!("p{n}"), json!({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]}))).collect();
    let accepted = [
        tree,
        json!({"properties": wide, "$defs": {"n": {"type": "number"}}}),
        json!({"$id": "https://example.com/a.json", "$ref": "b.json#/$defs/x", "$defs": {"b": {"$id": "b.json", "$defs": {"x": true}}}}),
        json!({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "object"}}}),
        json!({"$ref": "#/$defs/with%20space~1slash", "$defs": {"with space/slash": {}}}),
    ];
    for schema in accepted {
        let mut definition = set("1");
        definition["configurableSchema"] = schema.clone();
        let plan = Plan::compile(definition, Features::default());
        assert!(plan.is_ok(), "{schema}: {:?}", plan.err());
        assert_eq!(plan.unwrap().check_configurable(&Map::new()), Ok(()), "{schema}");
    }
}

#[test]
fn a_value_that_its_schema_would_look_at_too_often_does_not_fit() {
    // Each level of the value doubles the ways.
    let twice = json!({"properties": {"a": {"$ref": "#"}}});
    let mut definition = set("1");
    definition["configurableSchema"] = json!({"anyOf": [twice, twice]});
    let plan = plan(definition);
    let deep = |levels: usize| {
        let value = (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        plan.check_configurable(value.as_object().unwrap())
    };
    assert_eq!(deep(8), Ok(()));
    let (_, why) = deep(40).expect_err("it would take for ever");
    assert!(why.contains("looks"), "{why}");
}

#[test]
fn a_pattern_that_backtracks_gives_up_soon() {
    let mut definition = set("1");
    definition["configurableSchema"] = json!({"properties": {"x": {"pattern": "^(?=(a+)+$)b"}}});
    let plan = plan(definition);
    let value = json!({"x": format!("{}c", "a".repeat(200))});
    assert!(plan.check_configurable(value.as_object().unwrap()).is_err());
}

#[test]
fn a_long_list_is_looped_over_without_paying_for_all_of_it_each_round() {
    let items: Vec<Value> = (0..40).map(|n| json!({"n": n, "text": "t".repeat(5000)})).collect();
    let nodes = [
        ("loop", "core.loop", json!({"items": "variables.items", "into": "item"})),
        ("note", "core.setVariable", json!({"name": "last", "expression": "variables.item.n"})),
    ];
    let edges = [("loop", "note", json!({"sourceOutput": "body"})), ("note", "loop", NONE)];
    let world = World::started(plan(workflow(&nodes, &edges)), start_command(json!({"items": items})));
    assert_eq!(world.status(), RunStatus::Completed, "{}", message(&world));
    assert_eq!(world.variable("last"), Some(&json!(39)));
}

#[test]
fn a_mistake_is_told_once_and_shortly() {
    let told = |definition: Value| Plan::compile(definition, Features::default()).map(|_| ()).expect_err("refused");
    for source in ["@".repeat(4000), "1 +".repeat(1300), "'".repeat(4000), format!("x.{}(", "y".repeat(4000))] {
        let problems = told(set(&source));
        let message = &problems[0].message;
        assert!(problems.len() == 1 && message.len() < 600, "{} bytes for {}", message.len(), &source[..9]);
    }
    // Many of them are counted, not told.
    let names: Vec<String> = (0..300).map(|n| format!("n{n}")).collect();
    let config = json!({"name": "x", "expression": "@@"});
    let nodes: Vec<(&str, &str, Value)> =
        names.iter().map(|name| (name.as_str(), "core.setVariable", config.clone())).collect();
    let problems = told(workflow(&nodes, &[]));
    assert_eq!((problems.len(), problems[50].message.as_str()), (51, "There are 250 more problems."));
}

#[test]
fn all_that_is_read_of_a_definition_is_bounded_together() {
    let names: Vec<String> = (0..200).map(|n| format!("n{n}")).collect();
    let definition = |config: Value| {
        let nodes: Vec<(&str, &str, Value)> =
            names.iter().map(|name| (name.as_str(), "core.setVariable", config.clone())).collect();
        workflow(&nodes, &[])
    };
    let long = format!("[{}1]", "1, ".repeat(1300));
    let many = definition(json!({"name": "x", "expression": long}));
    let refused = Plan::compile(many.clone(), Features::default()).map(|_| ()).expect_err("it is too much");
    assert!(refused.iter().all(|problem| problem.message.contains("together") || problem.message.contains("more")));
    // What is on record is read as far as it goes, and the rest fails when it is used.
    let world = World::started(recorded(many), start_command(json!({})));
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(Plan::compile(definition(json!({"name": "x", "expression": "1 + 1"})), Features::default()).is_ok());
}

#[test]
fn ordinary_patterns_of_edges_pass_and_are_compiled_once() {
    let edge = |pattern: &str| json!({"condition": {"type": "regex", "left": "name", "right": pattern}});
    let nodes = [("a", "core.noop", json!({})), ("b", "core.noop", json!({}))];
    for pattern in [r"^\w{1,64}$", r"^\p{L}{1,64}$", "^[a-z]+$"] {
        // Two on one node: what they cost is paid when they are read.
        let edges = [("a", "b", edge(pattern)), ("a", "b", edge(pattern))];
        let world = World::started(plan(workflow(&nodes, &edges)), start_command(json!({"name": "ada"})));
        assert_eq!(world.status(), RunStatus::Completed, "{pattern}: {}", message(&world));
        assert!(world.types().iter().filter(|kind| **kind == "node.completed").count() == 2, "{pattern}");
    }
    // On record, whatever it is: it fails when it is used.
    let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    for pattern in [deep.as_str(), "(a{100}){100}", &"a".repeat(5000)] {
        let definition = workflow(&nodes, &[("a", "b", edge(pattern))]);
        assert!(Plan::compile(definition.clone(), Features::default()).is_err(), "{}", &pattern[..9]);
        let world = World::started(recorded(definition), start_command(json!({"name": "ada"})));
        assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY), "{}", &pattern[..9]);
    }
}

#[test]
fn what_goes_into_a_node_is_added_up_before_it_is_copied() {
    let ports = |kind: &str, count: usize, port: Value| {
        let mut definition = workflow(&[("a", kind, json!({}))], &[]);
        let ports: Map<String, Value> = (0..count).map(|n| (format!("p{n:03}"), port.clone())).collect();
        definition["nodes"][0]["inputs"] = Value::Object(ports);
        bounded(plan(definition), json!({"big": "b".repeat(9_000)}), 10_000, 1_000_000)
    };
    let variable = json!({"type": "variable", "variableName": "big"});
    for kind in ["core.noop", "core.merge", "core.identity"] {
        let world = ports(kind, 400, variable.clone());
        assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY), "{kind}");
        assert!(message(&world).contains("The node's inputs"), "{}", message(&world));
        let world = ports(kind, 2, variable.clone());
        assert_eq!(world.status(), RunStatus::Completed, "{kind}: {}", message(&world));
    }
    let world = ports("core.noop", 5, json!({"type": "static", "value": "s".repeat(9_000)}));
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    let world = ports("core.noop", 5, json!({"type": "expression", "expression": "variables.big"}));
    assert!(message(&world).contains("The node's inputs"), "{}", message(&world));
}

#[test]
fn a_child_is_given_and_gives_no_more_than_its_node_may_hold() {
    let many: Map<String, Value> = (0..400).map(|n| (format!("k{n}"), json!("big"))).collect();
    let call = |config: Value| plan(workflow(&[("call", "core.subWorkflow", config)], &[]));
    let given = call(json!({"workflowId": "child", "inputMapping": many}));
    let world = bounded(given, json!({"big": "b".repeat(9_000)}), 10_000, 1_000_000);
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("is given"), "{}", message(&world));

    let harvest = call(json!({"workflowId": "child", "outputMapping": many}));
    let mut world = bounded(harvest, json!({}), 10_000, 100_000_000);
    let child = first_child(&world);
    world.command(&Command::ChildStarted { child: child.clone() }).unwrap();
    let variables: Map<String, Value> = [("big".to_owned(), json!("m".repeat(9_000)))].into_iter().collect();
    let outcome =
        baton_engine::ChildOutcome { status: RunStatus::Completed, variables, error: None, memory: 0, usage: None };
    world.command(&Command::ChildEnded { child, outcome }).unwrap();
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("taken over"), "{}", message(&world));
}

fn first_child(world: &World) -> baton_model::RunId {
    let started = |effect| match effect {
        Effect::StartChild { plan, .. } => Some(plan.run),
        _ => None,
    };
    outstanding(&world.state).into_iter().find_map(started).unwrap()
}

#[test]
fn a_worker_that_would_be_given_too_much_fails_and_the_loop_goes_on() {
    let many: Map<String, Value> = (0..400).map(|n| (format!("k{n}"), json!("big"))).collect();
    let rules = json!({
        "rules": [{"when": "size(children) == 0 && iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": ["w"]}}],
        "otherwise": {"kind": "terminate"},
    });
    let nodes =
        [("lead", "core.orchestrator.supervisor", rules), ("hand", "core.dispatch", json!({"inputMapping": many}))];
    let definition = plan(workflow(&nodes, &[("lead", "hand", NONE), ("hand", "lead", NONE)]));
    let world = bounded(definition, json!({"big": "b".repeat(9_000)}), 10_000, 1_000_000);
    assert_eq!(world.status(), RunStatus::Completed, "{}", message(&world));
    let phases = world.payloads("core.workflowChain.event");
    assert_eq!(phases.len(), 2, "{:?}", world.types());
    assert!(phases[1].to_string().contains("is given"), "{phases:?}");
}

#[test]
fn outputs_and_names_count_in_what_a_run_keeps() {
    let names: Vec<String> = (0..10).map(|n| format!("n{n}")).collect();
    let nodes: Vec<(&str, &str, Value)> =
        names.iter().map(|name| (name.as_str(), "core.identity", json!({}))).collect();
    let edges: Vec<(&str, &str, Value)> =
        names.windows(2).map(|two| (two[0].as_str(), two[1].as_str(), NONE)).collect();
    let mut definition = workflow(&nodes, &edges);
    for node in definition["nodes"].as_array_mut().unwrap() {
        node["inputs"] = json!({"x": {"type": "static", "value": "y".repeat(5_000)}});
    }
    let world = bounded(plan(definition), json!({}), 10_000, 30_000);
    assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY));
    assert!(message(&world).contains("max_run_bytes"), "{}", message(&world));
    let done = world.types().iter().filter(|kind| **kind == "node.completed").count();
    // The variable that each of them sets is one of six.
    assert_eq!(done, 4);

    let mut start = start_command(json!({"n".repeat(20_000): 1}));
    start.settings.values =
        Some(Box::new(ValueBounds { max_value_bytes: 10_000, max_run_bytes: 15_000, ..ValueBounds::default() }));
    assert!(World::new(plan(set("1"))).command(&Command::Start(Box::new(start))).is_err());
}

#[test]
fn counting_members_of_what_the_run_has_is_paid_for() {
    let many = |count: usize, expression: &str| {
        let list: Vec<u32> = (0..100).collect();
        let mut inputs: Map<String, Value> = (0..count).map(|n| (format!("v{n:04}"), json!(n))).collect();
        inputs.insert("l".to_owned(), json!(list));
        World::started(plan(set(expression)), start_command(Value::Object(inputs)))
    };
    let loops = |inner: &str| format!("variables.l.all(x, variables.l.all(y, {inner}))");
    for name in ["variables", "inputs"] {
        for inner in [
            format!("size({name}) > 0"),
            format!("{name} != {{}}"),
            format!("optional.ofNonZeroValue({name}).hasValue()"),
        ] {
            let world = many(4000, &loops(&inner));
            assert_eq!(world.error_code(), Some(code::EXPRESSION_TOO_COSTLY), "{inner}");
            let world = many(10, &loops(&inner));
            assert_eq!(world.status(), RunStatus::Completed, "{inner}: {}", message(&world));
        }
    }
    let world = many(4000, "size(variables)");
    assert_eq!(world.variable("x"), Some(&json!(4001)));
    assert_eq!(many(30, "variables.map(k, k).size() == size(variables)").variable("x"), Some(&json!(true)));
}

#[test]
fn an_answer_that_is_too_large_is_refused_and_the_question_stays_open() {
    let ask = workflow(&[("ask", "core.interrupt", json!({"kind": "custom"}))], &[]);
    let mut world = bounded(plan(ask), json!({}), 10_000, 20_000);
    let answer = |value: Value| Command::Resolve {
        node: baton_model::NodeId::new("ask"),
        interrupt: None,
        value,
        actor: baton_engine::Actor::default(),
    };
    let refusal = world.command(&answer(json!("a".repeat(20_000)))).expect_err("it is refused");
    assert_eq!(
        (refusal.kind, refusal.fault.code.as_str()),
        (baton_engine::RefusalKind::Invalid, code::VALIDATION_ERROR)
    );
    assert_eq!(world.state.interrupts().count(), 1);
    world.command(&answer(json!("a".repeat(9_000)))).expect("it fits");
    assert_eq!(world.status(), RunStatus::Completed, "{}", message(&world));
}

#[test]
fn what_a_branch_lays_over_its_source_keeps_to_the_bounds_of_the_source() {
    let plan = plan(set("1"));
    let bounds = ValueBounds { max_value_bytes: 10_000, max_run_bytes: 20_000, ..ValueBounds::default() };
    let values = |sizes: &[usize]| -> Map<String, Value> {
        sizes.iter().enumerate().map(|(n, size)| (format!("v{n}"), json!("y".repeat(*size)))).collect()
    };
    let none = Map::new();
    assert!(baton_engine::check_overlay(&plan, &values(&[9_000, 9_000]), &none, bounds).is_ok());
    assert!(baton_engine::check_overlay(&plan, &values(&[15_000]), &none, bounds).is_err());
    assert!(baton_engine::check_overlay(&plan, &none, &values(&[9_000, 9_000, 9_000]), bounds).is_err());
    assert!(baton_engine::check_overlay(&plan, &values(&[12_000]), &values(&[9_000]), bounds).is_err());
}

#[test]
fn values_of_a_definition_are_bounded_when_it_is_registered() {
    let with = |default: Value| {
        let mut definition = set("1");
        definition["variables"] = json!([{"name": "s", "type": "object", "defaultValue": default}]);
        definition
    };
    let refused = Plan::compile(with(json!("x".repeat(2_000_000))), Features::default()).map(|_| ()).unwrap_err();
    assert_eq!(refused[0].pointer, "/variables/0/defaultValue");
    recorded(with(json!("x".repeat(2_000_000))));
    assert!(Plan::compile(with(json!("x".repeat(1_000_000))), Features::default()).is_ok());
}
