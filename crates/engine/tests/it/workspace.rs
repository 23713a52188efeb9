//! The workspace nodes. A run sees the files as they were when it started, its own writes included in nothing before
//! the next turn or the next run.

use crate::support;

use baton_engine::{Command, Features, Plan, Request};
use baton_model::{Event, RunStatus};
use serde_json::{Value, json};
use support::{World, plan, run, start_command, workflow};

const PUT: &str = "vendor.baton.workspace.put";
const GET: &str = "vendor.baton.workspace.get";
const LIST: &str = "vendor.baton.workspace.list";

fn chain(nodes: &[(&str, &str, Value)]) -> Value {
    let edges: Vec<_> = nodes.windows(2).map(|pair| (pair[0].0, pair[1].0, Value::Null)).collect();
    workflow(nodes, &edges)
}

fn outputs(world: &World, node: &str) -> Value {
    let completed = world.payloads("node.completed");
    completed.into_iter().rfind(|payload| payload["nodeId"] == node).expect("the node completed")["outputs"].clone()
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let table = [
        (PUT, json!({"content": "a"}), "path"),
        (PUT, json!({"path": "", "content": "a"}), "path"),
        (PUT, json!({"path": 1, "content": "a"}), "path"),
        (PUT, json!({"path": "../a", "content": "a"}), "path"),
        (PUT, json!({"path": "a/../b", "content": "a"}), "path"),
        (PUT, json!({"path": "a b", "content": "a"}), "path"),
        (PUT, json!({"path": "x".repeat(257), "content": "a"}), "path"),
        (PUT, json!({"path": "a"}), "content"),
        (PUT, json!({"path": "a", "content": "a", "contentExpression": "'a'"}), "content"),
        (PUT, json!({"path": "a", "content": []}), "content"),
        (PUT, json!({"path": "a", "contentExpression": ")"}), "contentExpression"),
        (PUT, json!({"path": "a", "content": "a", "contentType": 1}), "contentType"),
        (PUT, json!({"path": "a", "content": "a", "version": 1}), "version"),
        (GET, json!({"into": "x"}), "path"),
        (GET, json!({"path": "/etc/passwd", "into": "x"}), "path"),
        (GET, json!({"path": "a"}), "into"),
        (GET, json!({"path": "a", "into": "x", "content": "a"}), "content"),
        (LIST, json!({}), "into"),
        (LIST, json!({"into": "x", "prefix": 1}), "prefix"),
        (LIST, json!({"into": "x", "path": "a"}), "path"),
    ];
    for (type_id, config, key) in table {
        let features = Features { conformance: true, ..Features::default() };
        let found = Plan::compile(workflow(&[("a", type_id, config.clone())], &[]), features).unwrap_err();
        let places: Vec<&str> = found.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(places, [format!("/nodes/0/config/{key}")], "{type_id} {config}");
        assert!(!found[0].message.is_empty());
    }
}

#[test]
fn a_write_is_announced_by_path_and_version_only() {
    let world = run(chain(&[
        ("one", PUT, json!({"path": "notes/a.md", "content": "first words"})),
        (
            "two",
            PUT,
            json!({"path": "notes/a.md", "contentExpression": "'second ' + 'words'", "contentType": "text/plain"}),
        ),
    ]));
    assert_eq!(world.status(), RunStatus::Completed);
    let types = ["node.started", "workspace.updated", "node.completed", "node.started", "workspace.updated"];
    assert_eq!(world.types()[1..6], types);
    let updates = [json!({"path": "notes/a.md", "version": 1}), json!({"path": "notes/a.md", "version": 2})];
    assert_eq!(world.payloads("workspace.updated"), updates);
    assert_eq!(world.nodes_of("workspace.updated"), ["one", "two"], "who wrote is known privately");
    let Event::WorkspaceUpdated(event) = &world.log[5].event else { panic!("{:?}", world.log[5]) };
    assert_eq!(event.private.version, 2);
    let files = world.ledgers.files(2);
    assert_eq!(files["notes/a.md"].content, "second words");
    assert_eq!(outputs(&world, "two"), json!({"file": files["notes/a.md"].meta}));
    assert_eq!(
        (files["notes/a.md"].meta.content_type.as_str(), outputs(&world, "one")["file"]["contentType"].as_str()),
        ("text/plain", Some("text/markdown"))
    );
    for record in &world.log {
        assert!(!record.public_json(&world.state.run).contains("words"), "content stays where it is");
    }
}

/// A run that starts with two files.
fn reading(nodes: &[(&str, &str, Value)]) -> World {
    let mut world = World::new(plan(chain(nodes)));
    world.ledgers.write_file("plan.md", "old plan", None, world.now);
    world.ledgers.write_file("notes/a.md", "a note", None, world.now);
    let mut start = start_command(json!({}));
    start.settings.versions = world.ledgers.versions();
    world.command(&Command::Start(Box::new(start))).unwrap();
    world
}

#[test]
fn files_are_read_whole_or_listed_without_their_content() {
    let world = reading(&[
        ("get", GET, json!({"path": "plan.md", "into": "plan"})),
        ("missing", GET, json!({"path": "none.md", "into": "none"})),
        ("all", LIST, json!({"into": "all"})),
        ("notes", LIST, json!({"into": "notes", "prefix": "notes/"})),
    ]);
    let files = world.ledgers.files(2);
    assert_eq!(world.variable("plan"), Some(&json!(files["plan.md"])));
    let plan = world.variable("plan").unwrap();
    assert_eq!((&plan["path"], &plan["content"], &plan["version"]), (&json!("plan.md"), &json!("old plan"), &json!(1)));
    assert_eq!(outputs(&world, "get"), json!({"file": plan}));
    assert_eq!(world.variable("none"), Some(&Value::Null));
    assert_eq!(outputs(&world, "missing"), json!({"file": null}));
    assert_eq!(world.variable("all"), Some(&json!([files["notes/a.md"].meta, files["plan.md"].meta])));
    assert_eq!(outputs(&world, "notes"), json!({"files": [files["notes/a.md"].meta]}));
}

#[test]
fn a_run_does_not_read_its_own_writes_nor_anybody_elses() {
    let mut world = reading(&[
        ("put", PUT, json!({"path": "plan.md", "content": "new plan"})),
        ("nap", "core.delay", json!({"ms": 10})),
        ("get", GET, json!({"path": "plan.md", "into": "plan"})),
        ("list", LIST, json!({"into": "all"})),
    ]);
    world.ledgers.write_file("late.md", "by somebody else", None, world.now);
    world.ledgers.delete_file("notes/a.md");
    world.wait(10);
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(world.variable("plan").unwrap()["content"], "old plan");
    assert_eq!(world.variable("all").unwrap().as_array().unwrap().len(), 2);
    assert_eq!(world.payloads("workspace.updated")[0]["version"], 2, "the file has moved on all the same");
}

#[test]
fn a_question_names_the_version_it_is_about() {
    let mut world = World::new(plan(workflow(&[("get", GET, json!({"path": "plan.md", "into": "plan"}))], &[])));
    world.answering = false;
    let mut start = start_command(json!({}));
    start.settings.versions.workspace = 5;
    world.command(&Command::Start(Box::new(start))).unwrap();
    assert_eq!(world.question().unwrap().request, Request::ReadFile { path: "plan.md".to_owned(), version: 5 });
}

#[test]
fn a_refused_write_fails_its_node_and_announces_nothing() {
    let mut world = World::new(plan(workflow(&[("put", PUT, json!({"path": "a", "content": "x"}))], &[])));
    world.answering = false;
    world.command(&Command::Start(Box::new(start_command(json!({}))))).unwrap();
    let node_request = world.question().unwrap();
    let fault = baton_model::Fault::new("workspace_too_large", "A file holds at most 1 byte.");
    assert!(world.consulted(&node_request, baton_engine::Answer::failed(fault)));
    assert_eq!(world.error_code(), Some("workspace_too_large"));
    assert_eq!(world.payloads("workspace.updated"), [] as [Value; 0]);
}
