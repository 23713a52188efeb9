//! Parents and children: what a child is given, what comes back, and news that is late, doubled or untrue.

use crate::support;

use baton_engine::{Command, Effect, outstanding, snapshot};
use baton_model::event::{ChildPlan, ParentLink};
use baton_model::{Fault, RunId, RunStatus};
use serde_json::{Value, json};
use support::script::{self, News};
use support::{World, plan, run, start_command, workflow};

fn parent(config: Value) -> World {
    let mut config = config;
    config["workflowId"] = "child".into();
    let mut definition = workflow(&[("sub", "core.subWorkflow", config)], &[]);
    definition["variables"] = json!([
        {"name": "topic", "type": "string", "defaultValue": "tea"},
        {"name": "empty", "type": "string"},
        {"name": "kept", "type": "string", "defaultValue": "old"}
    ]);
    definition["nodes"][0]["inputs"] = json!({"greeting": {"type": "static", "value": "hello"}});
    run(definition)
}

fn planned(world: &World) -> (ChildPlan, ParentLink, u32, Option<u64>) {
    match outstanding(&world.state).into_iter().next() {
        Some(Effect::StartChild { plan, link, depth, max_duration_ms }) => (plan, *link, depth, max_duration_ms),
        other => panic!("expected a child to start, got {other:?}"),
    }
}

fn ended(child: &RunId, status: RunStatus, variables: Value) -> Command {
    let mut outcome = script::outcome(status);
    outcome.variables = variables.as_object().cloned().unwrap();
    Command::ChildEnded { child: child.clone(), outcome }
}

#[test]
fn a_child_gets_mapped_variables_and_inputs_and_nothing_that_is_unset() {
    let world = parent(json!({"inputMapping": {"subject": "topic", "blank": "empty", "nope": "unheard"}}));
    let (child, link, depth, bound) = planned(&world);
    assert_eq!(child.workflow.as_str(), "child");
    assert_eq!(Value::Object(child.variables), json!({"subject": "tea"}));
    assert_eq!(Value::Object(child.inputs), json!({"greeting": "hello"}));
    assert_eq!((link.run.as_str(), link.node.as_str(), link.root.as_str()), ("run_test", "sub", "run_test"));
    assert_eq!((link.cause.as_str(), depth, bound), ("core.subWorkflow", 1, None));
    assert_eq!(link.workflow, Some(Box::new(world.state.started().unwrap().workflow_id.clone())));
    let asked = world.types().iter().position(|kind| *kind == "node.started").unwrap();
    assert_eq!(
        link.event,
        Some(Box::new(baton_model::EventId::at(&world.state.run, asked as u64))),
        "the visit that asks"
    );
}

#[test]
fn a_grandchild_belongs_to_the_root() {
    let mut start = start_command(json!({}));
    let root = RunId::new("run_root");
    let link = ParentLink {
        run: RunId::new("run_middle"),
        node: "n".into(),
        root: root.clone(),
        cause: "core.subWorkflow".to_owned(),
        workflow: Some(Box::new("middle".into())),
        event: None,
    };
    start.settings.parent = Some(link);
    start.settings.depth = 2;
    let world =
        World::started(plan(workflow(&[("sub", "core.subWorkflow", json!({"workflowId": "child"}))], &[])), start);
    let (_, link, depth, _) = planned(&world);
    assert_eq!((link.root, depth), (root, 3));
    assert_eq!(snapshot(&world.state).unwrap().parent_run_id, Some(RunId::new("run_middle")));
}

#[test]
fn what_a_completed_child_maps_back_is_set_and_what_it_lacks_is_left() {
    let mut world = parent(json!({"outputMapping": {"topic": "answer", "kept": "missing"}}));
    let child = world.child();
    world.tell(&child, News::Started);
    world.command(&ended(&child, RunStatus::Completed, json!({"answer": "coffee"}))).unwrap();
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!((world.variable("topic"), world.variable("kept")), (Some(&json!("coffee")), Some(&json!("old"))));
    let outputs = json!({"childRunId": child, "childStatus": "completed"});
    assert_eq!(world.payloads("node.completed")[0]["outputs"], outputs);
    let children = snapshot(&world.state).unwrap().child_runs;
    assert_eq!((children.len(), children[0].status), (1, RunStatus::Completed));
}

#[test]
fn a_failed_child_fails_its_parent_or_is_absorbed_and_maps_nothing_back() {
    for status in [RunStatus::Failed, RunStatus::Cancelled] {
        let mapping = json!({"topic": "answer"});
        let mut strict = parent(json!({"outputMapping": mapping}));
        let child = strict.child();
        strict.tell(&child, News::Started);
        strict.command(&ended(&child, status, json!({"answer": "coffee"}))).unwrap();
        let expected = if status == RunStatus::Failed { "child_failed" } else { "child_cancelled" };
        assert_eq!((strict.status(), strict.error_code()), (RunStatus::Failed, Some(expected)));
        let details = strict.state.error().unwrap().details.clone().unwrap();
        assert_eq!((&details["childRunId"], &details["childStatus"]), (&json!(child), &json!(status)));
        assert_eq!(strict.variable("topic"), Some(&json!("tea")));

        let mut calm = parent(json!({"outputMapping": mapping, "onChildFailure": "absorb"}));
        let child = calm.child();
        calm.tell(&child, News::Started);
        calm.command(&ended(&child, status, json!({"answer": "coffee"}))).unwrap();
        assert_eq!(calm.status(), RunStatus::Completed);
        assert_eq!(calm.payloads("node.completed")[0]["outputs"]["childStatus"], json!(status));
        assert_eq!(calm.variable("topic"), Some(&json!("tea")));
        assert_eq!(snapshot(&calm.state).unwrap().child_runs[0].status, status);
    }
}

#[test]
fn a_child_that_cannot_exist_fails_its_node() {
    let mut world = parent(json!({}));
    let child = world.child();
    let fault = Fault::new("unknown_child_workflow", "There is no workflow `child`.");
    world.command(&Command::ChildRefused { child, fault }).unwrap();
    assert_eq!(world.error_code(), Some("unknown_child_workflow"));
    assert_eq!(snapshot(&world.state).unwrap().child_runs, []);
}

#[test]
fn another_attempt_is_another_child() {
    let mut definition = workflow(&[("sub", "core.subWorkflow", json!({"workflowId": "child"}))], &[]);
    definition["settings"] = json!({"maxRetries": 1, "retryDelayMs": 10});
    let mut world = run(definition);
    let first = world.child();
    world.tell(&first, News::Started);
    world.tell(&first, News::Ended(RunStatus::Failed));
    world.wait(10);
    let second = world.child();
    assert_ne!(first, second);
    world.tell(&first, News::Ended(RunStatus::Completed));
    assert_eq!(world.child(), second, "old news is no news");
    world.tell(&second, News::Started);
    world.tell(&second, News::Ended(RunStatus::Completed));
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_parent_waits_the_way_its_child_waits() {
    let mut world = parent(json!({}));
    let child = world.child();
    world.tell(&child, News::Started);
    for status in [RunStatus::WaitingApproval, RunStatus::WaitingInput, RunStatus::WaitingExternal] {
        world.tell(&child, News::Status(status));
        assert_eq!(world.status(), status);
        let view = snapshot(&world.state).unwrap();
        assert_eq!((view.current_node_id.unwrap().as_str(), view.interrupt), ("sub", None));
        assert_eq!(view.child_runs[0].status, status);
    }
    world.tell(&child, News::Status(RunStatus::Running));
    assert_eq!(world.status(), RunStatus::Running);
    assert_eq!(world.types().last(), Some(&"node.resumed"));

    world.tell(&child, News::Status(RunStatus::WaitingInput));
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(world.nodes_of("node.resumed").len(), 2);
}

#[test]
fn saying_it_twice_changes_nothing() {
    let mut world = parent(json!({}));
    let child = world.child();
    for news in [News::Started, News::Status(RunStatus::WaitingInput), News::Status(RunStatus::Running)] {
        world.tell(&child, news.clone());
        let records = world.log.len();
        world.tell(&child, news);
        assert_eq!(world.log.len(), records);
    }
    world.tell(&child, News::Ended(RunStatus::Completed));
    let records = world.log.len();
    for news in [News::Ended(RunStatus::Failed), News::Started, News::Refused, News::Status(RunStatus::WaitingInput)] {
        world.tell(&child, news);
    }
    assert_eq!(world.log.len(), records);
}

#[test]
fn untrue_and_foreign_news_is_ignored() {
    let mut world = parent(json!({}));
    let child = world.child();
    let stranger = RunId::new("run_stranger");
    world.tell(&child, News::Status(RunStatus::WaitingInput));
    for news in [News::Started, News::Refused, News::Status(RunStatus::WaitingInput), News::Ended(RunStatus::Completed)]
    {
        world.tell(&stranger, news);
    }
    assert_eq!(world.types(), ["run.started", "node.started"], "a child that does not exist yet cannot wait");
    world.tell(&child, News::Started);
    let records = world.log.len();
    world.tell(&child, News::Refused);
    world.tell(&child, News::Ended(RunStatus::Running));
    world.tell(&child, News::Status(RunStatus::Completed));
    assert_eq!(world.log.len(), records, "it exists, it has not ended, and an end is told as an end");
}

#[test]
fn an_end_that_outruns_the_beginning_still_shows_the_child() {
    let mut world = parent(json!({}));
    let child = world.child();
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(world.payloads("node.dispatched")[0]["childRunId"], json!(child));
    assert_eq!(snapshot(&world.state).unwrap().child_runs.len(), 1);
}

#[test]
fn the_timeout_of_the_node_is_the_bound_of_the_child() {
    let mut definition = workflow(&[("sub", "core.subWorkflow", json!({"workflowId": "child"}))], &[]);
    definition["nodes"][0]["settings"] = json!({"timeout": 700});
    let mut world = run(definition);
    assert_eq!(planned(&world).3, Some(700));
    let child = world.child();
    world.tell(&child, News::Started);
    world.wait(5000);
    assert_eq!(world.status(), RunStatus::Running, "the child itself reports that its time is up");
}
