//! Nodes that ask before they start: when they ask, which answers count, and what failing means.

use crate::support;

use baton_engine::{Answer, Command, Found, NodeRequest, Start};
use baton_model::event::DrainPolicy;
use baton_model::{Fault, RunStatus};
use serde_json::{Value, json};
use support::{World, plan, start_command, workflow};

const PUT: &str = "vendor.baton.memory.put";
const LIST: &str = "vendor.baton.memory.list";

/// A run whose questions wait to be answered by hand.
fn asking(definition: Value, start: Start) -> World {
    let mut world = World::new(plan(definition));
    world.answering = false;
    world.command(&Command::Start(Box::new(start))).unwrap();
    world
}

/// A run that wants to remember what stands in the variable `n`.
fn wants_to_remember() -> (World, NodeRequest) {
    let mut definition = workflow(&[("put", PUT, json!({"contentExpression": "string(variables.n)"}))], &[]);
    definition["variables"] =
        json!([{"name": "n", "type": "number", "defaultValue": 1}, {"name": "m", "type": "number"}]);
    let world = asking(definition, start_command(json!({})));
    let node_request = world.question().expect("it asks");
    (world, node_request)
}

fn set(world: &mut World, name: &str, value: Value) {
    let variables = [(name.to_owned(), value)].into_iter().collect();
    world.command(&Command::SetVariables { variables }).unwrap();
}

/// The log is as long as before and nothing was written.
fn ignores(world: &mut World, node_request: &NodeRequest) {
    let before = world.log.len();
    assert!(!world.answer_from_versioned_stores(node_request), "{node_request:?} is taken");
    assert_eq!((world.log.len(), world.ledgers.versions().memory), (before, 0));
}

#[test]
fn nothing_is_recorded_before_the_answer() {
    let (mut world, node_request) = wants_to_remember();
    assert_eq!(world.types(), ["run.started"]);
    assert_eq!(world.status(), RunStatus::Running);
    world.advance();
    assert_eq!((world.types(), world.question()), (vec!["run.started"], Some(node_request)), "it is asked again");
}

#[test]
fn an_answer_counts_once() {
    let (mut world, node_request) = wants_to_remember();
    assert!(world.answer_from_versioned_stores(&node_request));
    let before = world.log.len();
    assert!(!world.answer_from_versioned_stores(&node_request));
    assert_eq!((world.log.len(), world.ledgers.versions().memory), (before, 1));
}

#[test]
fn an_answer_to_what_is_no_longer_asked_changes_nothing() {
    let (mut world, node_request) = wants_to_remember();
    set(&mut world, "n", json!(2));
    ignores(&mut world, &node_request);
    let again = world.question().unwrap();
    assert_ne!(again, node_request);
    assert!(world.answer_from_versioned_stores(&again));
    assert_eq!(world.ledgers.entries(1, world.now)[0].content, "2");
}

#[test]
fn a_change_that_makes_no_difference_to_the_question_does_no_harm() {
    let (mut world, node_request) = wants_to_remember();
    set(&mut world, "m", json!(5));
    assert!(world.answer_from_versioned_stores(&node_request));
}

#[test]
fn an_answer_to_another_visit_attempt_or_node_changes_nothing() {
    let (mut world, node_request) = wants_to_remember();
    ignores(&mut world, &NodeRequest { visit: 2, ..node_request.clone() });
    ignores(&mut world, &NodeRequest { attempt: 1, ..node_request.clone() });
    ignores(&mut world, &NodeRequest { node: "other".into(), ..node_request });
}

#[test]
fn an_ended_run_hears_no_answer() {
    let (mut world, node_request) = wants_to_remember();
    world.cancel();
    assert_eq!((world.status(), world.question()), (RunStatus::Cancelled, None));
    ignores(&mut world, &node_request);
}

#[test]
fn a_paused_run_asks_nothing_and_asks_the_same_again_when_it_goes_on() {
    for drain in [DrainPolicy::Immediate, DrainPolicy::DrainCurrentNode] {
        let (mut world, node_request) = wants_to_remember();
        world.pause(drain).unwrap();
        assert_eq!((world.status(), world.question()), (RunStatus::Paused, None));
        ignores(&mut world, &node_request);
        world.resume().unwrap();
        assert_eq!(world.question(), Some(node_request.clone()));
        assert!(world.answer_from_versioned_stores(&node_request));
        world.advance();
        assert_eq!(world.status(), RunStatus::Completed);
    }
}

#[test]
fn a_draining_run_asks_nothing_either() {
    let nodes = [("nap", "core.delay", json!({"ms": 10})), ("put", PUT, json!({"content": "a"}))];
    let mut world = asking(workflow(&nodes, &[]), start_command(json!({})));
    let node_request = world.question().unwrap();
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    assert_eq!(world.status(), RunStatus::Running, "the delay is still under way");
    assert_eq!(world.question(), None);
    ignores(&mut world, &node_request);
    world.wait(10);
    assert_eq!(world.status(), RunStatus::Paused);
}

#[test]
fn the_bound_on_node_starts_binds_before_anything_is_asked() {
    let mut start = start_command(json!({}));
    start.settings.max_node_executions = 1;
    let nodes = [("first", PUT, json!({"content": "a"})), ("second", PUT, json!({"content": "b"}))];
    let mut world = asking(workflow(&nodes, &[("first", "second", Value::Null)]), start);
    assert!(world.answer_question());
    // The next start is one too many, so there is nothing to ask, whoever comes first.
    assert_eq!(world.question(), None);
    world.advance();
    assert_eq!(world.error_code(), Some("recursion_limit_exceeded"));
    assert_eq!((world.nodes_of("node.started").len(), world.ledgers.versions().memory), (1, 1));
}

#[test]
fn an_answer_that_comes_when_the_time_is_up_does_not_start_anything() {
    let mut start = start_command(json!({}));
    start.settings.max_duration_ms = 100;
    let mut world = asking(workflow(&[("put", PUT, json!({"content": "a"}))], &[]), start);
    let node_request = world.question().unwrap();
    world.now = world.now.plus_millis(101);
    ignores(&mut world, &node_request);
    world.advance();
    assert_eq!(world.error_code(), Some("run_timeout"));
    assert_eq!(world.nodes_of("node.started"), [""; 0]);
}

#[test]
fn an_answer_in_the_last_millisecond_counts() {
    let mut start = start_command(json!({}));
    start.settings.max_duration_ms = 100;
    let mut world = asking(workflow(&[("put", PUT, json!({"content": "a"}))], &[]), start);
    world.now = world.now.plus_millis(100);
    assert!(world.answer_question());
    world.advance();
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_node_that_cannot_even_ask_starts_and_fails() {
    for (config, inputs, code) in [
        (json!({"contentExpression": "variables.missing"}), json!({}), "expression_error"),
        (json!({"content": "a"}), json!({"x": {"type": "variable", "variableName": "unset"}}), "input_missing"),
    ] {
        let mut definition = workflow(&[("put", PUT, config)], &[]);
        definition["nodes"][0]["inputs"] = inputs;
        definition["nodes"][0]["settings"] = json!({"maxRetries": 3, "retryDelayMs": 1});
        let world = asking(definition, start_command(json!({})));
        assert_eq!((world.question(), world.error_code()), (None, Some(code)));
        assert_eq!(
            world.types(),
            ["run.started", "node.started", "node.failed", "run.failed"],
            "and is not tried again"
        );
    }
}

#[test]
fn an_answer_that_is_a_fault_fails_the_node_for_good() {
    let mut definition = workflow(
        &[("put", PUT, json!({"content": "a"})), ("mend", "core.noop", json!({}))],
        &[("put", "mend", json!({"triggerRule": "any_failed"}))],
    );
    definition["nodes"][0]["settings"] = json!({"maxRetries": 3, "retryDelayMs": 1});
    let mut world = asking(definition, start_command(json!({})));
    let node_request = world.question().unwrap();
    let fault = Fault::new("memory_full", "The scope holds 10000 entries.");
    assert!(world.consulted(&node_request, Answer::failed(fault)));
    world.advance();
    assert_eq!(world.status(), RunStatus::Completed, "the failure is handled");
    assert_eq!(world.payloads("node.failed")[0]["error"]["code"], "memory_full");
    assert_eq!(world.payloads("node.retried"), [] as [Value; 0]);
    assert_eq!(world.nodes_of("node.completed"), ["mend"]);
}

#[test]
fn an_answer_to_another_question_is_a_defect_and_not_a_guess() {
    let sup = json!({"rules": [], "otherwise": {"kind": "terminate"}});
    for (type_id, config) in [
        (LIST, json!({"into": "x"})),
        ("vendor.baton.workspace.get", json!({"path": "a", "into": "x"})),
        ("core.identity", json!({"memoryAction": "ttl-probe"})),
        ("core.orchestrator.supervisor", sup),
    ] {
        let mut nodes = vec![("a", type_id, config)];
        if type_id.ends_with("supervisor") {
            nodes.push(("disp", "core.dispatch", json!({})));
        }
        let mut world = asking(workflow(&nodes, &[]), start_command(json!({})));
        let node_request = world.question().unwrap();
        let answer = if type_id == LIST { Found::Files(vec![]) } else { Found::Forgotten(true) };
        assert!(world.consulted(&node_request, Answer::found(answer)));
        assert_eq!(world.error_code(), Some("internal_error"), "{type_id}");
    }
}

/// One question at a time, in the order in which the nodes became ready.
#[test]
fn parallel_nodes_ask_one_after_the_other() {
    let nodes = [("b", PUT, json!({"content": "b"})), ("a", LIST, json!({"into": "seen"}))];
    let mut world = asking(workflow(&nodes, &[]), start_command(json!({})));
    assert_eq!(world.question().unwrap().node.as_str(), "b");
    assert!(world.answer_question());
    assert_eq!(world.question().unwrap().node.as_str(), "a");
    assert!(world.answer_question());
    world.advance();
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(world.variable("seen").unwrap().as_array().unwrap().len(), 1, "its own write is in sight");
}
