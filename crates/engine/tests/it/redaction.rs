//! What is declared sensitive does not get out through memory or files.

use crate::support;

use serde_json::{Value, json};
use support::{World, plan, start_command, workflow};

const PUT: &str = "vendor.baton.memory.put";

/// Runs these nodes one after the other beside a sensitive variable `key` with this value, and an open one.
fn with_key(value: Value, nodes: &[(&str, &str, Value)]) -> World {
    let edges: Vec<_> = nodes.windows(2).map(|pair| (pair[0].0, pair[1].0, Value::Null)).collect();
    let mut definition = workflow(nodes, &edges);
    definition["variables"] = json!([
        {"name": "key", "type": "object", "sensitive": true},
        {"name": "open", "type": "string", "defaultValue": "plain text"}
    ]);
    World::started(plan(definition), start_command(json!({"key": value})))
}

/// What one node remembers.
fn remembered(value: Value, source: &str) -> String {
    let world = with_key(value, &[("put", PUT, json!({"contentExpression": source}))]);
    world.ledgers.entries(1, world.now)[0].content.clone()
}

fn assert_nowhere(world: &World, secret: &str) {
    for record in &world.log {
        let public = record.public_json(&world.state.run);
        assert!(!public.contains(secret), "{secret} shows in {public}");
    }
    assert!(!format!("{:?}", world.ledgers).contains(secret), "{secret} is kept");
}

#[test]
fn a_sensitive_text_is_replaced_by_its_name() {
    let config = json!({"contentExpression": "variables.open + ' and ' + variables.key"});
    let world = with_key(json!("hunter22"), &[("put", PUT, config)]);
    assert_eq!(world.ledgers.entries(1, world.now)[0].content, "plain text and [REDACTED:key]");
    assert_eq!(world.payloads("node.completed")[0]["outputs"]["entry"]["content"], "plain text and [REDACTED:key]");
    assert_nowhere(&world, "hunter22");
}

#[test]
fn eight_bytes_are_a_secret_and_seven_are_a_word() {
    assert_eq!(remembered(json!("12345678"), "variables.key"), "[REDACTED:key]");
    assert_eq!(remembered(json!("1234567"), "variables.key"), "1234567");
}

#[test]
fn a_secret_inside_a_value_is_one_too() {
    let login = json!({"user": "ann", "password": "correct horse", "codes": ["11112222", 33_334_444]});
    assert_eq!(remembered(login.clone(), "variables.key.password"), "[REDACTED:key]");
    assert_eq!(remembered(login.clone(), "'code ' + variables.key.codes[0]"), "code [REDACTED:key]");
    assert_eq!(remembered(login.clone(), "variables.key.codes[1]"), "[REDACTED:key]");
    let whole = remembered(login, "variables.key");
    for secret in ["correct horse", "11112222", "33334444"] {
        assert!(!whole.contains(secret), "{whole}");
    }
}

#[test]
fn quoting_does_not_hide_a_secret() {
    let kept = remembered(json!("say \"open\" twice"), "[variables.key]");
    assert_eq!(kept, r#"["[REDACTED:key]"]"#);
}

#[test]
fn the_input_a_variable_came_from_is_as_secret_as_the_variable() {
    let forget = json!({"name": "key", "value": "something else"});
    let nodes = [("set", "core.setVariable", forget), ("put", PUT, json!({"contentExpression": "inputs.key"}))];
    let world = with_key(json!("hunter22"), &nodes);
    assert_eq!(world.ledgers.entries(1, world.now)[0].content, "[REDACTED:key]");
    assert_nowhere(&world, "hunter22");
}

#[test]
fn what_is_computed_from_a_secret_is_secret_under_its_own_name() {
    let copy = json!({"assign": {"copy": "variables.key + '-copy'"}});
    let forget = json!({"name": "key", "value": ""});
    let nodes = [
        ("copy", "core.setVariable", copy),
        ("set", "core.setVariable", forget),
        ("put", PUT, json!({"contentExpression": "variables.copy"})),
    ];
    let world = with_key(json!("hunter22"), &nodes);
    assert_eq!(world.ledgers.entries(1, world.now)[0].content, "[REDACTED:copy]");
    assert_nowhere(&world, "hunter22");
}

#[test]
fn tags_are_cleaned_and_stay_short_enough() {
    let tag = format!("hunter22{}", "x".repeat(248));
    let world = with_key(json!("hunter22"), &[("put", PUT, json!({"content": "a", "tags": [tag]}))]);
    let tags = world.ledgers.entries(1, world.now)[0].tags.clone();
    assert!(tags[0].starts_with("[REDACTED:key]xxx") && tags[0].chars().count() == 256, "{tags:?}");
    assert_eq!(world.payloads("memory.written")[0]["tags"], json!(tags));
}

#[test]
fn files_are_cleaned_too() {
    let config = json!({"path": "login.md", "contentExpression": "'key: ' + variables.key"});
    let world = with_key(json!("hunter22"), &[("put", "vendor.baton.workspace.put", config)]);
    assert_eq!(world.ledgers.files(1)["login.md"].content, "key: [REDACTED:key]");
    assert_nowhere(&world, "hunter22");
}

#[test]
fn a_sensitive_channel_is_cleaned_as_well() {
    let nodes = [
        ("write", "core.channelWrite", json!({"channelName": "log", "reducer": "append", "value": "tell nobody"})),
        ("put", PUT, json!({"contentExpression": "variables.log"})),
    ];
    let mut definition = workflow(&nodes, &[("write", "put", Value::Null)]);
    definition["channels"] = json!({"log": {"reducer": "append", "sensitive": true}});
    let world = World::started(plan(definition), start_command(json!({})));
    assert_eq!(world.ledgers.entries(1, world.now)[0].content, r#"["[REDACTED:log]"]"#);
    assert_nowhere(&world, "tell nobody");
}

#[test]
fn what_is_read_into_a_sensitive_variable_is_not_shown() {
    let mut definition = workflow(
        &[
            ("get", "vendor.baton.memory.get", json!({"id": "mem_1", "into": "key"})),
            ("list", "vendor.baton.memory.list", json!({"into": "key"})),
            ("file", "vendor.baton.workspace.get", json!({"path": "a.md", "into": "key"})),
        ],
        &[("get", "list", Value::Null), ("list", "file", Value::Null)],
    );
    definition["variables"] = json!([{"name": "key", "type": "object", "sensitive": true}]);
    let mut world = World::new(plan(definition));
    world.ledgers.remember("run_before", "quiet words", &[], None, world.now);
    world.ledgers.write_file("a.md", "quiet words", None, world.now);
    let mut start = start_command(json!({}));
    start.settings.versions = world.ledgers.versions();
    world.command(&baton_engine::Command::Start(Box::new(start))).unwrap();
    assert_eq!(world.variable("key").unwrap()["content"], "quiet words", "the run itself has it");
    for record in &world.log {
        let public = record.public_json(&world.state.run);
        assert!(!public.contains("quiet words"), "{public}");
    }
}
