//! `vendor.baton.map` over a tool: items in order, a few at once, each once.

use crate::support;

use std::sync::Arc;

use baton_engine::{Features, Plan, RunState, ToolCall, evolve, snapshot};
use baton_model::event::DrainPolicy;
use baton_model::{Event, Record, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{broken, ok, tool_calls, unknown};
use support::second::second;
use support::tools::{AWAY, LOOK, MAIL, TYPED};
use support::{World, plan, run, start_command, stored, workflow};

fn definition(config: Value, settings: Value) -> Value {
    let mut definition = workflow(&[("each", "vendor.baton.map", config)], &[]);
    definition["nodes"][0]["settings"] = settings;
    definition
}

fn going(config: Value) -> World {
    run(definition(config, json!({})))
}

/// A map of a tool over the numbers up to `count`.
fn over(count: usize, tool: &str, extra: Value) -> Value {
    let items: Vec<Value> = (0..count).map(|n| json!({"n": n})).collect();
    let mut config = json!({"items": items, "tool": tool});
    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    config
}

fn places(calls: &[ToolCall]) -> Vec<i64> {
    calls.iter().map(|call| call.arguments["n"].as_i64().unwrap()).collect()
}

/// Answers every call that is wanted, until none is.
fn serve(world: &mut World, answer: impl Fn(&ToolCall) -> baton_engine::Returned) -> usize {
    let mut made = 0;
    while let Some(call) = world.tools().into_iter().next() {
        made += 1;
        assert!(world.returns(&call, answer(&call)));
    }
    made
}

fn outputs(world: &World) -> Value {
    world.payloads("node.completed")[0]["outputs"].clone()
}

#[test]
fn a_few_at_once_and_the_results_in_order() {
    let mut world = going(over(5, LOOK, json!({"maxConcurrency": 2, "into": "all"})));
    assert_eq!(
        world.types(),
        ["run.started", "node.started", "baton.map.started", "agent.toolCalled", "agent.toolCalled"]
    );
    assert_eq!(world.payloads("baton.map.started")[0], json!({"nodeId": "each", "count": 5, "maxConcurrency": 2}));
    assert_eq!(places(&world.tools()), [0, 1]);
    let second = world.tools()[1].clone();
    world.returns(&second, ok(json!("b")));
    assert_eq!(places(&world.tools()), [0, 2], "the next one begins as soon as there is room");
    let progress = snapshot(&world.state).unwrap().node_states["each"].progress.unwrap();
    assert_eq!((progress.total, progress.completed, progress.failed, progress.under_way), (5, 1, 0, 2));
    let keys: Vec<String> = world.tools().into_iter().map(|call| call.key).collect();
    assert_eq!(keys, ["run_test/each:1:0:0:0", "run_test/each:1:0:0:2"], "a key names the item");
    assert_eq!(serve(&mut world, |call| ok(json!(call.arguments["n"]))), 4);
    let expected = json!([0, "b", 2, 3, 4]);
    assert_eq!(outputs(&world), json!({"results": expected, "errors": [], "completed": 5, "failed": 0}));
    assert_eq!((world.variable("all"), world.status()), (Some(&expected), RunStatus::Completed));
    let view = snapshot(&world.state).unwrap();
    assert_eq!(view.node_states["each"].progress, None, "it is over");
    Audit::check(&world.log);
}

#[test]
fn the_list_may_come_from_anywhere_and_is_looked_at_once() {
    let by_name =
        json!({"items": "orders", "tool": LOOK, "as": "order", "argumentsExpression": "{'n': order.id + index}"});
    let mut definition = definition(by_name, json!({}));
    definition["variables"] =
        json!([{"name": "orders", "type": "array", "defaultValue": [{"id": 10}, {"id": 20}, {"id": 30}]}]);
    definition["nodes"][0]["config"]["maxConcurrency"] = 1.into();
    let mut world = run(definition);
    assert_eq!(places(&world.tools()), [10]);
    let changed = json!({"orders": [1, 2, 3, 4, 5]}).as_object().cloned().unwrap();
    world.command(&baton_engine::Command::SetVariables { variables: changed }).unwrap();
    let call = world.tool();
    world.returns(&call, ok(json!(1)));
    assert_eq!(places(&world.tools()), [21], "the list is the one it began with");
    let mut definition = workflow(&[("each", "vendor.baton.map", json!({"tool": LOOK}))], &[]);
    definition["nodes"][0]["inputs"] = json!({"items": {"type": "static", "value": [{"n": 3}]}});
    assert_eq!(places(&run(definition).tools()), [3]);
    let world = going(json!({"items": "[{'n': 5}]", "tool": LOOK}));
    assert_eq!(places(&world.tools()), [5], "an expression, as in a loop");
    let world = going(json!({"itemsExpression": "[{'n': 1}, {'n': 2}].filter(x, x.n > 1)", "tool": LOOK}));
    assert_eq!(places(&world.tools()), [2]);
    assert_eq!(outputs(&going(json!({"items": [], "tool": LOOK})))["results"], json!([]));
}

#[test]
fn a_list_that_is_none_or_too_long_begins_nothing() {
    for (items, code) in [
        (json!({"itemsExpression": "5"}), "validation_error"),
        (json!({"items": "unset"}), "input_missing"),
        (json!({}), "input_missing"),
        (json!({"itemsExpression": "variables.missing"}), "expression_error"),
        (json!({"items": "long"}), "validation_error"),
        (json!({"items": "heavy"}), "expression_too_costly"),
    ] {
        let mut config = json!({"tool": LOOK});
        config.as_object_mut().unwrap().extend(items.as_object().unwrap().clone());
        let mut start = start_command(json!({}));
        let long: Vec<u32> = (0..10_001).collect();
        start.variables.insert("long".to_owned(), json!(long));
        start.variables.insert("heavy".to_owned(), json!(["x".repeat(2 << 20)]));
        start.settings.values = Some(Box::new(baton_model::ValueBounds::default()));
        let mut definition = definition(config, json!({"maxRetries": 3}));
        definition["variables"] = json!([{"name": "long", "type": "array"}, {"name": "heavy", "type": "array"}]);
        let mut world = World::new(plan(definition));
        if world.command(&baton_engine::Command::Start(Box::new(start))).is_err() {
            continue;
        }
        assert_eq!(world.error_code(), Some(code), "{items}");
        assert!(world.payloads("node.retried").is_empty() && world.payloads("baton.map.started").is_empty());
    }
}

#[test]
fn mistakes_are_found_when_the_definition_is_read() {
    let problems = |config: Value| -> Vec<String> {
        let features = Features { conformance: true, ..Features::default() };
        let found = Plan::compile(definition(config, json!({})), features).err().unwrap_or_default();
        found.into_iter().map(|problem| problem.pointer).collect()
    };
    for (config, place) in [
        (json!({"items": []}), ""),
        (json!({"items": [], "tool": LOOK, "agent": "a.b.c"}), ""),
        (json!({"items": [], "tool": LOOK, "task": 1}), "/task"),
        (json!({"items": [], "workflow": "w", "argumentsExpression": "1"}), "/argumentsExpression"),
        (json!({"items": 5, "tool": LOOK}), "/items"),
        (json!({"items": "variables.", "tool": LOOK}), "/items"),
        (json!({"items": "", "tool": LOOK}), "/items"),
        (json!({"items": vec![0; 10_001], "tool": LOOK}), "/items"),
        (json!({"items": [], "itemsExpression": "[]", "tool": LOOK}), "/items"),
        (json!({"items": [], "tool": LOOK, "as": "1x"}), "/as"),
        (json!({"items": [], "tool": LOOK, "as": "variables"}), "/as"),
        (json!({"items": [], "tool": LOOK, "maxConcurrency": 65}), "/maxConcurrency"),
        (json!({"items": [], "tool": LOOK, "maxConcurrency": 0}), "/maxConcurrency"),
        (json!({"items": [], "tool": LOOK, "onItemError": "ignore"}), "/onItemError"),
        (json!({"items": [], "tool": LOOK, "itemTimeoutMs": 0}), "/itemTimeoutMs"),
        (json!({"items": [], "workflow": "w", "inputs": [1]}), "/inputs"),
    ] {
        assert_eq!(problems(config.clone()), [format!("/nodes/0/config{place}")], "{config}");
    }
}

#[test]
fn the_host_may_allow_fewer_at_once() {
    let mut start = start_command(json!({}));
    start.settings.max_fan_out = 3;
    let world = World::started(plan(definition(over(9, LOOK, json!({"maxConcurrency": 50})), json!({}))), start);
    assert_eq!(world.tools().len(), 3);
}

#[test]
fn one_failure_stops_the_rest_and_what_is_under_way_is_heard_out() {
    let mut world = going(over(6, MAIL, json!({"maxConcurrency": 3})));
    let calls = world.tools();
    world.returns(&calls[1], broken());
    assert_eq!(world.status(), RunStatus::Running, "what the others did is known first");
    assert_eq!(world.tools().len(), 2);
    world.returns(&calls[0], ok(json!(1)));
    world.returns(&calls[2], broken());
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("map_item_failed")));
    let details = world.state.error().unwrap().details.clone().unwrap();
    assert_eq!((&details["index"], &details["itemError"]["code"]), (&json!(1), &json!("external_call_failed")));
    assert_eq!(world.payloads("agent.toolCalled").len(), 3, "nobody else was called");
    Audit::check(&world.log);
}

#[test]
fn failures_are_collected() {
    let mut world = going(over(4, LOOK, json!({"onItemError": "collect", "maxConcurrency": 4})));
    serve(&mut world, |call| if call.arguments["n"] == 2 { broken() } else { ok(json!(call.arguments["n"])) });
    let out = outputs(&world);
    assert_eq!(out["results"], json!([0, 1, null, 3]));
    assert_eq!(out["errors"], json!([{"index": 2, "code": "external_call_failed", "message": "It broke."}]));
    assert_eq!((&out["completed"], &out["failed"], world.status()), (&json!(3), &json!(1), RunStatus::Completed));
}

#[test]
fn items_have_attempts_of_their_own() {
    let config = over(2, MAIL, json!({"onItemError": "collect", "maxConcurrency": 1}));
    let mut world = run(definition(config, json!({"maxRetries": 2, "retryDelayMs": 10})));
    let first = world.tool();
    world.returns(&first, broken());
    assert!(world.tools().is_empty(), "it waits, and holds its place");
    assert_eq!(world.payloads("baton.map.itemRetried")[0]["delayMs"], 10);
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(10)));
    world.wait(10);
    let again = world.tool();
    assert_ne!(first.key, again.key, "the first is known not to have worked");
    world.returns(&again, ok(json!("a")));
    let poisoned = world.tool();
    world.returns(&poisoned, broken());
    world.wait(10);
    let call = world.tool();
    world.returns(&call, broken());
    world.wait(20);
    let call = world.tool();
    world.returns(&call, broken());
    assert_eq!(outputs(&world)["results"], json!(["a", null]));
    assert_eq!(world.payloads("baton.map.itemFailed")[0]["attempts"], 3);
    assert!(world.payloads("node.retried").is_empty(), "the map itself is not begun again");
}

#[test]
fn an_item_that_cannot_be_asked_for_fails_alone() {
    let config = json!({"items": [{"n": 1}, {"n": "x"}, {}, 5], "tool": LOOK, "onItemError": "collect",
        "argumentsExpression": "{'n': item.n}"});
    let mut world = going(config);
    serve(&mut world, |_| ok(json!(true)));
    let codes: Vec<&str> = outputs(&world)["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["code"].as_str().unwrap())
        .map(|code| match code {
            "validation_error" => "v",
            "expression_error" => "e",
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(codes, ["v", "e", "e"]);
    assert_eq!(world.payloads("agent.toolCalled").len(), 2);
    let mut world = going(json!({"items": [5], "tool": LOOK, "onItemError": "collect"}));
    serve(&mut world, |_| ok(json!(true)));
    assert_eq!(outputs(&world)["errors"][0]["code"], "validation_error", "a number is no list of arguments");
}

#[test]
fn results_that_are_wrong_or_too_large_are_said_as_soon_as_they_are() {
    let mut world = going(over(3, TYPED, json!({"onItemError": "collect"})));
    serve(&mut world, |call| ok(if call.arguments["n"] == 1 { json!([]) } else { json!({"n": 1}) }));
    assert_eq!(outputs(&world)["errors"][0]["code"], "tool_result_invalid");
    let mut world = going(over(2000, LOOK, json!({"onItemError": "collect", "maxConcurrency": 1})));
    let made = serve(&mut world, |_| ok(json!("x".repeat(100_000))));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("map_item_failed")));
    assert!((10..20).contains(&made), "it stops where the results have no more room, not at its end: {made}");
    assert_eq!(world.state.error().unwrap().details.as_ref().unwrap()["itemError"]["code"], "expression_too_costly");
}

#[test]
fn a_tool_that_is_not_here_begins_no_item() {
    for (tool, code) in [(AWAY, "mcp_server_disconnected"), ("mcp:t.nothing", "not_found")] {
        let world = going(over(3, tool, json!({"onItemError": "collect"})));
        assert_eq!((world.error_code(), world.payloads("baton.map.started").len()), (Some(code), 0));
    }
}

#[test]
fn a_call_in_doubt_is_asked_about_and_nothing_else_begins_meanwhile() {
    let mut world = going(over(4, MAIL, json!({"maxConcurrency": 2})));
    let calls = world.tools();
    world.returns(&calls[0], unknown());
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    world.returns(&calls[1], ok(json!("b")));
    assert!(world.tools().is_empty(), "the other was heard, and no further one begins");
    world.answer("each", json!({"action": "done", "result": "a"})).unwrap();
    assert_eq!(places(&world.tools()), [2, 3]);
    for call in world.tools() {
        world.returns(&call, unknown());
    }
    assert_eq!(world.state.interrupts().count(), 1, "one question after the other");
    world.answer("each", json!("fail")).unwrap();
    world.answer("each", json!({"action": "done", "result": "d"})).unwrap();
    assert_eq!(world.error_code(), Some("map_item_failed"));
    Audit::check(&world.log);
}

#[test]
fn time_limits_of_items_and_of_the_whole() {
    let mut world = going(over(2, LOOK, json!({"itemTimeoutMs": 50, "onItemError": "collect"})));
    assert_eq!(world.tools()[0].timeout_ms, Some(50));
    world.wait(50);
    assert_eq!(outputs(&world)["errors"][1]["code"], "node_timeout");
    let mut world = going(over(1, MAIL, json!({"itemTimeoutMs": 50})));
    world.wait(50);
    assert_eq!(world.status(), RunStatus::WaitingApproval, "it may have been sent");
    let mut world = run(definition(over(9, LOOK, json!({"maxConcurrency": 2})), json!({"timeout": 100})));
    world.wait(100);
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("node_timeout")));
    let mut world =
        run(definition(over(9, MAIL, json!({"maxConcurrency": 1, "outcomePolicy": "fail"})), json!({"timeout": 100})));
    world.wait(100);
    assert_eq!((world.error_code(), world.payloads("baton.effect.unknown").len()), (Some("node_timeout"), 1));
    Audit::check(&world.log);
}

#[test]
fn pause_and_cancel_stop_it_at_once() {
    let mut world = going(over(50, LOOK, json!({"maxConcurrency": 2})));
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    let calls = world.tools();
    world.returns(&calls[0], ok(json!(0)));
    world.returns(&calls[1], ok(json!(1)));
    assert_eq!((world.status(), world.tools().len()), (RunStatus::Paused, 0), "between two items nobody is at work");
    world.resume().unwrap();
    assert_eq!(places(&world.tools()), [2, 3]);
    world.pause(DrainPolicy::Immediate).unwrap();
    let calls = world.tools();
    world.returns(&calls[0], ok(json!(2)));
    assert_eq!((world.status(), places(&world.tools())), (RunStatus::Paused, vec![3]));
    world.resume().unwrap();
    assert_eq!(places(&world.tools()), [3, 4]);
    world.cancel();
    assert_eq!(world.status(), RunStatus::Cancelled);
    Audit::check(&world.log);
    let config = over(2, LOOK, json!({"maxConcurrency": 1}));
    let mut world = run(definition(config, json!({"maxRetries": 1, "retryDelayMs": 100})));
    let call = world.tool();
    world.returns(&call, broken());
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    assert_eq!(world.status(), RunStatus::Paused, "an item that waits holds up nobody");
    world.now = world.now.plus_millis(1000);
    world.resume().unwrap();
    assert!(world.tools().is_empty(), "the time it had left it still has");
    world.wait(100);
    assert_eq!(places(&world.tools()), [0]);
}

/// Plays a map of this many items to its end, and returns the log.
fn played(count: usize) -> World {
    let config = over(count, LOOK, json!({"maxConcurrency": 4, "onItemError": "collect", "into": "all"}));
    let mut world = run(definition(config, json!({"maxRetries": 1, "retryDelayMs": 5})));
    loop {
        serve(&mut world, |call| match call.arguments["n"].as_u64().unwrap() % 5 {
            3 => broken(),
            n => ok(json!(n)),
        });
        if world.status().is_terminal() || !world.sleep_until_next() {
            return world;
        }
    }
}

#[test]
fn a_crash_at_any_record_repeats_no_item_that_is_done() {
    let world = played(7);
    assert_eq!(world.status(), RunStatus::Completed);
    let fresh = || RunState::new(world.state.run.clone(), Arc::clone(world.state.plan()));
    for end in 0..=world.log.len() {
        let log: Vec<Record> = world.log[..end].iter().map(stored).collect();
        let state = log.iter().try_fold(fresh(), evolve).unwrap();
        let returned = |id: &str| {
            log.iter().any(|record| matches!(&record.event, Event::AgentToolReturned(event) if event.call_id == id))
        };
        let wanted = tool_calls(&state);
        assert!(wanted.iter().all(|call| !returned(&call.call_id)), "at {end}");
        let mut resumed = World::new(Arc::clone(world.state.plan()));
        (resumed.state, resumed.log) = (state, log);
        resumed.now = world.now;
        if end == 0 {
            continue;
        }
        resumed.advance();
        while !resumed.status().is_terminal() {
            serve(&mut resumed, |call| match call.arguments["n"].as_u64().unwrap() % 5 {
                3 => broken(),
                n => ok(json!(n)),
            });
            if !resumed.status().is_terminal() && !resumed.sleep_until_next() {
                panic!("it hangs");
            }
        }
        assert_eq!(resumed.variable("all"), world.variable("all"), "at {end}");
        let mut done: Vec<u64> =
            resumed.payloads("baton.map.itemCompleted").iter().map(|e| e["index"].as_u64().unwrap()).collect();
        done.sort_unstable();
        done.dedup();
        assert_eq!(done.len(), resumed.payloads("baton.map.itemCompleted").len(), "an item is done once");
    }
}

#[test]
fn a_replay_from_anywhere_is_the_same() {
    let world = played(6);
    let log: Vec<Record> = world.log.iter().map(stored).collect();
    for from in 0..=log.len() {
        let replayed = second(&world.state.run, world.state.plan(), &log, from, 3);
        assert_eq!(replayed.difference, None, "from {from}");
        assert_eq!(replayed.state.variables(), world.state.variables());
    }
}

#[test]
fn ten_thousand_items_cost_the_same_each() {
    let (count, config) =
        (10_000, json!({"items": "many", "tool": LOOK, "maxConcurrency": 16, "argumentsExpression": "{'n': item}"}));
    let mut start = start_command(json!({}));
    start.variables.insert("many".to_owned(), json!((0..count).collect::<Vec<u32>>()));
    let mut definition = definition(config, json!({}));
    definition["variables"] = json!([{"name": "many", "type": "array"}]);
    let mut world = World::started(plan(definition), start);
    let mut sizes: Vec<usize> = Vec::new();
    for _ in 0..count {
        let before = world.log.len();
        let call = tool_calls(&world.state).swap_remove(0);
        assert!(world.returns(&call, ok(json!(call.arguments["n"]))));
        let bytes = |record: &Record| {
            serde_json::to_string(&record.event.payload()).unwrap().len()
                + record.event.private_json().map_or(0, |text| text.len())
        };
        sizes.push(world.log[before..].iter().map(bytes).sum());
    }
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(outputs(&world)["results"], json!((0..count).collect::<Vec<u32>>()));
    // Three records an item, and those at both ends.
    assert_eq!(
        world.log.len(),
        3 * count as usize + 5,
        "run.started, node.started, map.started, node.completed, run.completed"
    );
    let (early, late) = (sizes[100..1100].iter().sum::<usize>(), sizes[8000..9000].iter().sum::<usize>());
    assert!(late < early + early / 10, "what is written for an item does not grow: {early} and {late}");
}
