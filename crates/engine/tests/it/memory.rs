//! The memory nodes: what they ask, what they leave behind, and what registration refuses.

use crate::support;

use baton_engine::{Features, Plan, Probe, Problem, Request};
use baton_model::{Event, RunStatus};
use serde_json::{Value, json};
use support::{World, plan, run, start_command, workflow};

const PUT: &str = "vendor.baton.memory.put";
const GET: &str = "vendor.baton.memory.get";
const LIST: &str = "vendor.baton.memory.list";
const DELETE: &str = "vendor.baton.memory.delete";

/// Nodes one after the other.
fn chain(nodes: &[(&str, &str, Value)]) -> Value {
    let edges: Vec<_> = nodes.windows(2).map(|pair| (pair[0].0, pair[1].0, Value::Null)).collect();
    workflow(nodes, &edges)
}

fn problems(definition: Value) -> Vec<Problem> {
    Plan::compile(definition, Features { conformance: true, ..Features::default() }).map(|_| ()).expect_err("refused")
}

fn outputs(world: &World, node: &str) -> Value {
    let completed = world.payloads("node.completed");
    completed.into_iter().rfind(|payload| payload["nodeId"] == node).expect("the node completed")["outputs"].clone()
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let long = "x".repeat(257);
    let table = [
        (PUT, json!({}), "content"),
        (PUT, json!({"content": "a", "contentExpression": "'a'"}), "content"),
        (PUT, json!({"content": 1}), "content"),
        (PUT, json!({"contentExpression": "1 +"}), "contentExpression"),
        (PUT, json!({"contentExpression": 1}), "contentExpression"),
        (PUT, json!({"content": "a", "tags": "t"}), "tags"),
        (PUT, json!({"content": "a", "tags": ["", "t"]}), "tags"),
        (PUT, json!({"content": "a", "tags": [1]}), "tags"),
        (PUT, json!({"content": "a", "tags": [long]}), "tags"),
        (PUT, json!({"content": "a", "ttlSeconds": 0}), "ttlSeconds"),
        (PUT, json!({"content": "a", "ttlSeconds": -1}), "ttlSeconds"),
        (PUT, json!({"content": "a", "ttlSeconds": "soon"}), "ttlSeconds"),
        (PUT, json!({"content": "a", "ttlSeconds": 1e12}), "ttlSeconds"),
        (PUT, json!({"content": "a", "ttl": 5}), "ttl"),
        (PUT, json!({"content": "a", "into": "x"}), "into"),
        (GET, json!({"into": "x"}), "id"),
        (GET, json!({"id": "m", "idExpression": "'m'", "into": "x"}), "id"),
        (GET, json!({"idExpression": "(", "into": "x"}), "idExpression"),
        (GET, json!({"id": "m"}), "into"),
        (GET, json!({"id": "m", "into": ""}), "into"),
        (GET, json!({"id": "m", "into": 1}), "into"),
        (GET, json!({"id": "m", "into": "x", "limit": 1}), "limit"),
        (LIST, json!({}), "into"),
        (LIST, json!({"into": "x", "tag": 1}), "tag"),
        (LIST, json!({"into": "x", "tag": ""}), "tag"),
        (LIST, json!({"into": "x", "tag": long}), "tag"),
        (LIST, json!({"into": "x", "limit": -1}), "limit"),
        (LIST, json!({"into": "x", "limit": 1.5}), "limit"),
        (LIST, json!({"into": "x", "limit": 100_001}), "limit"),
        (LIST, json!({"into": "x", "tags": ["t"]}), "tags"),
        (DELETE, json!({}), "id"),
        (DELETE, json!({"id": true}), "id"),
        (DELETE, json!({"id": "m", "into": "x"}), "into"),
    ];
    for (type_id, config, key) in table {
        let found = problems(workflow(&[("a", type_id, config.clone())], &[]));
        let places: Vec<&str> = found.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(places, [format!("/nodes/0/config/{key}")], "{type_id} {config}");
        assert!(found[0].message.contains(key) || found[0].message.starts_with("Not valid CEL"), "{:?}", found[0]);
    }
}

#[test]
fn a_channel_is_not_filled_by_reading() {
    for (type_id, config) in [
        (GET, json!({"id": "m", "into": "log"})),
        (LIST, json!({"into": "log"})),
        ("vendor.baton.workspace.get", json!({"path": "a", "into": "log"})),
        ("vendor.baton.workspace.list", json!({"into": "log"})),
    ] {
        let mut definition = workflow(&[("a", type_id, config)], &[]);
        definition["channels"] = json!({"log": {"reducer": "append"}});
        let found = problems(definition);
        assert_eq!(found[0].pointer, "/nodes/0/config/into");
        assert!(found[0].message.contains("`log` is a channel"), "{:?}", found[0]);
    }
}

#[test]
fn a_write_is_announced_without_its_content() {
    let config = json!({"contentExpression": "'tea for ' + string(variables.n)", "tags": ["drink"], "ttlSeconds": 1.5});
    let mut definition = chain(&[("put", PUT, config), ("next", "core.noop", json!({}))]);
    definition["variables"] = json!([{"name": "n", "type": "number", "defaultValue": 2}]);
    let world = run(definition);
    assert_eq!(world.status(), RunStatus::Completed);
    let head = ["run.started", "node.started", "memory.written", "node.completed", "node.started"];
    assert_eq!(world.types()[..5], head);
    let entry = world.ledgers.entries(1, world.now).remove(0);
    assert_eq!((entry.content.as_str(), entry.tags.as_slice()), ("tea for 2", ["drink".to_owned()].as_slice()));
    assert_eq!((entry.created_at, entry.expires_at), (world.now, Some(world.now.plus_millis(1500))));
    let written = json!({"memoryRef": "memory:run_test", "memoryId": entry.id, "nodeId": "put", "tags": ["drink"]});
    assert_eq!(world.payloads("memory.written"), [written]);
    assert_eq!(outputs(&world, "put"), json!({"entry": entry}));
    let Event::MemoryWritten(event) = &world.log[2].event else { panic!("{:?}", world.log[2]) };
    assert_eq!(event.private.version, 1);
    assert!(!world.log[2].public_json(&world.state.run).contains("tea"));
}

#[test]
fn what_is_not_text_is_kept_as_json() {
    let world = run(workflow(&[("put", PUT, json!({"contentExpression": "{'a': [1, true]}"}))], &[]));
    assert_eq!(world.ledgers.entries(1, world.now)[0].content, r#"{"a":[1,true]}"#);
}

#[test]
fn every_round_of_a_loop_writes_an_entry_of_its_own_and_sees_the_ones_before() {
    let nodes = [
        ("loop", "core.loop", json!({"count": 3, "into": "i"})),
        ("put", PUT, json!({"contentExpression": "string(variables.i)"})),
        ("list", LIST, json!({"into": "found"})),
    ];
    let body = json!({"sourceOutput": "body"});
    let edges = [("loop", "put", body), ("put", "list", Value::Null), ("list", "loop", Value::Null)];
    let world = run(workflow(&nodes, &edges));
    assert_eq!(world.status(), RunStatus::Completed);
    let ids: std::collections::BTreeSet<String> =
        world.payloads("memory.written").iter().map(|payload| payload["memoryId"].to_string()).collect();
    assert_eq!(ids.len(), 3);
    let contents = |entries: &Value| -> Vec<String> {
        entries.as_array().unwrap().iter().map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(contents(world.variable("found").unwrap()), ["2", "1", "0"], "newest first");
    let rounds = world.payloads("node.completed").into_iter().filter(|payload| payload["nodeId"] == "list");
    let sizes: Vec<usize> = rounds.map(|payload| contents(&payload["outputs"]["entries"]).len()).collect();
    assert_eq!(sizes, [1, 2, 3]);
}

/// A run after this scope has been written to, with these nodes.
fn remembering(nodes: &[(&str, &str, Value)]) -> World {
    let mut world = World::new(plan(chain(nodes)));
    for (content, tag) in [("one", "odd"), ("two", "even"), ("three", "odd")] {
        world.ledgers.remember("run_before", content, &[tag], None, world.now);
    }
    let mut start = start_command(json!({}));
    start.settings.versions = world.ledgers.versions();
    world.command(&baton_engine::Command::Start(Box::new(start))).unwrap();
    world
}

#[test]
fn a_list_is_newest_first_and_takes_a_tag_and_a_limit() {
    let world = remembering(&[
        ("all", LIST, json!({"into": "all"})),
        ("odd", LIST, json!({"into": "odd", "tag": "odd"})),
        ("last", LIST, json!({"into": "last", "limit": 2})),
        ("zero", LIST, json!({"into": "zero", "limit": 0})),
        ("none", LIST, json!({"into": "none", "tag": "prime"})),
    ]);
    let contents = |name: &str| -> Vec<&str> {
        let entries = world.variable(name).unwrap().as_array().unwrap();
        entries.iter().map(|entry| entry["content"].as_str().unwrap()).collect()
    };
    assert_eq!(contents("all"), ["three", "two", "one"]);
    assert_eq!(contents("odd"), ["three", "one"]);
    assert_eq!(contents("last"), ["three", "two"]);
    assert_eq!(contents("zero").len(), 3, "zero is no limit");
    assert_eq!(contents("none"), [""; 0]);
    assert_eq!(outputs(&world, "odd"), json!({"entries": world.variable("odd")}));
}

#[test]
fn an_entry_is_found_by_its_id_or_is_null() {
    let world = remembering(&[
        ("get", GET, json!({"id": "mem_2", "into": "two"})),
        ("computed", GET, json!({"idExpression": "variables.two.id", "into": "again"})),
        ("missing", GET, json!({"id": "mem_9", "into": "nothing"})),
    ]);
    let entry = json!({"id": "mem_2", "content": "two", "tags": ["even"], "createdAt": world.now.to_string()});
    assert_eq!(world.variable("two"), Some(&entry));
    assert_eq!(world.variable("again"), Some(&entry));
    assert_eq!(world.variable("nothing"), Some(&Value::Null));
    assert_eq!(outputs(&world, "get"), json!({"entry": entry}));
    assert_eq!(outputs(&world, "missing"), json!({"entry": null}));
}

#[test]
fn forgetting_is_announced_once_and_only_if_there_was_something() {
    let world = remembering(&[
        ("first", DELETE, json!({"id": "mem_2"})),
        ("second", DELETE, json!({"id": "mem_2"})),
        ("list", LIST, json!({"into": "left"})),
    ]);
    assert_eq!(outputs(&world, "first"), json!({"deleted": true}));
    assert_eq!(outputs(&world, "second"), json!({"deleted": false}));
    assert_eq!(world.types()[1..4], ["node.started", "baton.memory.deleted", "node.completed"]);
    let gone = json!({"memoryRef": "memory:run_test", "memoryId": "mem_2", "nodeId": "first"});
    assert_eq!(world.payloads("baton.memory.deleted"), [gone]);
    assert_eq!(world.variable("left").unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn an_entry_is_gone_at_exactly_its_instant() {
    for (wait, visible) in [(1499, true), (1500, false), (1501, false)] {
        let mut world = run(chain(&[
            ("put", PUT, json!({"content": "short", "ttlSeconds": 1.5})),
            ("nap", "core.delay", json!({"ms": wait})),
            ("get", LIST, json!({"into": "found"})),
        ]));
        world.wait(wait);
        assert_eq!(world.status(), RunStatus::Completed);
        let found = world.variable("found").unwrap().as_array().unwrap().len();
        assert_eq!(found == 1, visible, "after {wait} ms");
    }
}

/// The shell's answer may be older than the step that uses it; what has expired by then is not seen.
#[test]
fn an_answer_that_was_slow_does_not_bring_back_the_expired() {
    for (type_id, config) in [(LIST, json!({"into": "found"})), (GET, json!({"id": "mem_1", "into": "found"}))] {
        let mut world = World::new(plan(workflow(&[("read", type_id, config)], &[])));
        world.answering = false;
        world.ledgers.remember("run_before", "short", &[], Some(20), world.now);
        let mut start = start_command(json!({}));
        start.settings.versions = world.ledgers.versions();
        world.command(&baton_engine::Command::Start(Box::new(start))).unwrap();
        let node_request = world.question().unwrap();
        let (answer, _) = world.ledgers.answer(&world.state.run, "run_test", &node_request, world.now);
        world.wait(20);
        assert!(world.consulted(&node_request, answer));
        let empty = if type_id == LIST { json!([]) } else { Value::Null };
        assert_eq!(world.variable("found"), Some(&empty));
    }
}

#[test]
fn a_disabled_node_is_skipped_and_asks_nothing() {
    let mut definition = chain(&[("put", PUT, json!({"content": "a"})), ("end", "core.noop", json!({}))]);
    definition["nodes"][0]["disabled"] = true.into();
    let mut world = World::new(plan(definition));
    world.answering = false;
    world.command(&baton_engine::Command::Start(Box::new(start_command(json!({}))))).unwrap();
    assert_eq!((world.status(), world.question()), (RunStatus::Completed, None));
    assert_eq!(world.nodes_of("node.skipped")[0], "put");
    assert_eq!(world.ledgers.versions().memory, 0);
}

#[test]
fn only_a_supervisor_sees_memory_by_name() {
    for source in ["memory", "workspace", "iteration", "children"] {
        let world = run(workflow(&[("put", PUT, json!({"contentExpression": source}))], &[]));
        assert_eq!(world.error_code(), Some("expression_error"), "{source}");
        assert_eq!(world.nodes_of("node.started"), ["put"], "it starts and fails");
    }
}

#[test]
fn memory_actions_belong_to_conformance_workflows() {
    let definition = |id: &str, config: Value| {
        let mut definition = workflow(&[("a", "core.identity", config)], &[]);
        definition["id"] = id.into();
        definition
    };
    let compile = |definition: Value, conformance: bool| {
        Plan::compile(definition, Features { conformance, ..Features::default() }).map_err(|all| all[0].pointer.clone())
    };
    let probe = json!({"memoryAction": "write-then-read"});
    assert!(compile(definition("conformance-x", probe.clone()), true).is_ok());
    for (id, conformance) in [("conformance-x", false), ("ordinary", true), ("ordinary", false)] {
        let refused = compile(definition(id, probe.clone()), conformance).map(|_| ());
        assert_eq!(refused, Err("/nodes/0/config/memoryAction".to_owned()), "{id} {conformance}");
    }
    for (config, key) in [
        (json!({"memoryAction": "dream"}), "memoryAction"),
        (json!({"memoryAction": 1}), "memoryAction"),
        (json!({"memoryAction": "cross-tenant-probe"}), "probeMemoryRef"),
        (json!({"memoryAction": "redaction-probe"}), "byokSecretId"),
        (json!({"memoryAction": "ttl-probe", "more": 1}), "more"),
    ] {
        assert_eq!(problems(definition("conformance-x", config))[0].pointer, format!("/nodes/0/config/{key}"));
    }
}

#[test]
fn a_memory_action_leaves_what_it_found_in_variables() {
    let table = [
        (json!({"memoryAction": "write-then-read"}), Probe::WriteThenRead, 1, "readBack"),
        (json!({"memoryAction": "ttl-probe"}), Probe::Ttl, 2, "fresh"),
        (
            json!({"memoryAction": "cross-tenant-probe", "probeMemoryRef": "memory:other"}),
            Probe::CrossTenant { memory_ref: "memory:other".to_owned() },
            0,
            "foreign",
        ),
        (
            json!({"memoryAction": "redaction-probe", "byokSecretId": "key"}),
            Probe::Redaction { secret: "key".to_owned() },
            1,
            "stored",
        ),
    ];
    for (config, probe, writes, variable) in table {
        let mut world = World::new(plan(workflow(&[("a", "core.identity", config)], &[])));
        world.answering = false;
        world.command(&baton_engine::Command::Start(Box::new(start_command(json!({}))))).unwrap();
        assert_eq!(world.question().unwrap().request, Request::Probe(probe));
        assert!(world.answer_question());
        world.advance();
        assert_eq!(world.status(), RunStatus::Completed);
        assert_eq!(world.payloads("memory.written").len(), writes);
        assert_eq!(outputs(&world, "a").get(variable), world.variable(variable));
        assert!(world.variable(variable).is_some());
    }
}
