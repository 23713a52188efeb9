//! How much of its memory scope a run sees: what was there when it started, its own writes, and what a child that
//! shares the scope has left behind once it is done.

use crate::support;

use baton_engine::{ChildOutcome, Command, ReadVersion, RunState, Start};
use baton_model::event::ParentLink;
use baton_model::{RunId, RunStatus, Versions};
use serde_json::{Map, Value, json};
use support::script::News;
use support::{World, plan, start_command, workflow};

const PUT: &str = "vendor.baton.memory.put";
const LIST: &str = "vendor.baton.memory.list";

/// Starts after `mem_1` (content "before") was written.
fn started(definition: Value) -> World {
    let mut world = World::new(plan(definition));
    world.ledgers.remember("run_before", "before", &[], None, world.now);
    let mut start = start_command(json!({}));
    start.settings.versions = world.ledgers.versions();
    world.command(&Command::Start(Box::new(start))).unwrap();
    world
}

fn contents(world: &World, variable: &str) -> Vec<String> {
    let entries = world.variable(variable).expect("the list has run").as_array().unwrap();
    entries.iter().map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
}

fn ended(world: &mut World, child: &RunId, status: RunStatus, memory: u64) {
    let outcome = ChildOutcome { status, variables: Map::new(), error: None, memory, usage: None };
    world.command(&Command::ChildEnded { child: child.clone(), outcome }).unwrap();
}

#[test]
fn a_run_sees_its_start_and_its_own_writes() {
    let mut world = started(workflow(
        &[
            ("put", PUT, json!({"content": "mine"})),
            ("nap", "core.delay", json!({"ms": 10})),
            ("list", LIST, json!({"into": "seen"})),
            ("forget", "vendor.baton.memory.delete", json!({"id": "mem_3"})),
        ],
        &[("put", "nap", Value::Null), ("nap", "list", Value::Null), ("list", "forget", Value::Null)],
    ));
    world.ledgers.remember("run_other", "later", &[], None, world.now);
    world.ledgers.forget("run_other", "mem_1");
    world.wait(10);
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(contents(&world, "seen"), ["mine", "before"], "neither what came later nor what went");
    assert_eq!(world.state.read_version(), ReadVersion { version: 1, own: 2 });
    assert_eq!(world.payloads("baton.memory.deleted"), [] as [Value; 0], "what is not in sight cannot be forgotten");
}

/// A parent that looks into memory while its child works, and again when it is done.
fn family(config: Value) -> (World, RunId) {
    let mut config = config;
    config["workflowId"] = "child".into();
    let mut world = started(workflow(
        &[
            ("sub", "core.subWorkflow", config),
            ("after", LIST, json!({"into": "after"})),
            ("nap", "core.delay", json!({"ms": 10})),
            ("during", LIST, json!({"into": "during"})),
        ],
        &[("sub", "after", json!({"triggerRule": "all_complete"})), ("nap", "during", Value::Null)],
    ));
    let child = world.child();
    world.tell(&child, News::Started);
    world.ledgers.remember(child.as_str(), "by the child", &[], None, world.now);
    world.wait(10);
    assert_eq!(contents(&world, "during"), ["before"], "a child that is still at work shows nothing");
    (world, child)
}

#[test]
fn what_a_completed_child_wrote_is_in_sight() {
    let (mut world, child) = family(json!({}));
    world.ledgers.remember("run_other", "by somebody else", &[], None, world.now);
    ended(&mut world, &child, RunStatus::Completed, 2);
    assert_eq!(contents(&world, "after"), ["by the child", "before"], "up to the child's last word and no further");
}

#[test]
fn a_child_with_a_memory_of_its_own_adds_nothing() {
    let (mut world, child) = family(json!({}));
    ended(&mut world, &child, RunStatus::Completed, 0);
    assert_eq!(contents(&world, "after"), ["before"]);
}

#[test]
fn a_child_that_did_not_complete_adds_nothing() {
    for status in [RunStatus::Failed, RunStatus::Cancelled] {
        let (mut world, child) = family(json!({"onChildFailure": "absorb"}));
        ended(&mut world, &child, status, 2);
        assert_eq!(contents(&world, "after"), ["before"], "{status}");
    }
}

/// The child has completed; whether its variables are merged is another question.
#[test]
fn a_merge_gate_does_not_hide_what_the_child_wrote() {
    for action in ["accept", "reject"] {
        let attest = json!({"checksum": true, "requireApproval": true});
        let (mut world, child) = family(json!({"outputAttestation": attest, "onChildFailure": "absorb"}));
        ended(&mut world, &child, RunStatus::Completed, 2);
        assert_eq!(world.status(), RunStatus::WaitingApproval);
        assert_eq!(world.state.read_version().version, 2);
        assert_eq!(format!("{:?}", world.refolded()), format!("{:?}", world.state), "also after a crash");
        world.answer("sub", json!({"action": action})).unwrap();
        assert_eq!(world.status(), RunStatus::Completed);
        assert_eq!(contents(&world, "after"), ["by the child", "before"], "{action}");
    }
}

#[test]
fn sight_never_goes_back() {
    let (mut world, child) = family(json!({}));
    world.ledgers.remember("run_other", "more", &[], None, world.now);
    ended(&mut world, &child, RunStatus::Completed, 3);
    assert_eq!(world.state.read_version().version, 3);
    let (mut late, child) = family(json!({}));
    ended(&mut late, &child, RunStatus::Completed, 1);
    assert_eq!(late.state.read_version().version, 1);
}

#[test]
fn a_scope_is_named_by_the_creator_or_belongs_to_the_tree() {
    let scope = |change: &dyn Fn(&mut Start)| {
        let mut start = start_command(json!({}));
        change(&mut start);
        let world = World::started(plan(workflow(&[("put", PUT, json!({"content": "a"}))], &[])), start);
        assert_eq!(world.payloads("memory.written")[0]["memoryRef"], format!("memory:{}", world.state.memory_scope()));
        world.state.memory_scope().to_owned()
    };
    let link = |root: &str| {
        Some(ParentLink {
            run: RunId::new("run_up"),
            node: "n".into(),
            root: RunId::new(root),
            cause: "x".to_owned(),
            workflow: None,
            event: None,
        })
    };
    assert_eq!(scope(&|_| {}), "run_test");
    assert_eq!(scope(&|start| start.settings.parent = link("run_root")), "run_root");
    assert_eq!(scope(&|start| start.settings.scope_id = Some("team".to_owned())), "team");
    let below_isolated = |start: &mut Start| {
        start.settings.parent = link("run_root");
        start.settings.scope_id = Some("team".to_owned());
        start.settings.memory_scope = Some("run_isolated".to_owned());
    };
    assert_eq!(scope(&below_isolated), "run_isolated");
}

#[test]
fn what_a_run_looks_at_is_on_its_first_record() {
    let mut start = start_command(json!({}));
    start.settings.versions = Versions { memory: 7, workspace: 9 };
    let world = World::started(plan(workflow(&[("a", "core.delay", json!({"ms": 5}))], &[])), start);
    let refolded: RunState = world.refolded();
    assert_eq!(refolded.seen(), Versions { memory: 7, workspace: 9 });
    assert_eq!(refolded.read_version(), ReadVersion { version: 7, own: 0 });
    assert_eq!(world.payloads("run.started")[0].get("versions"), None, "and no client sees it");
}
