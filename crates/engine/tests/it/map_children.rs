//! `vendor.baton.map` over workflows and agents: each item is a child run, made once.

use crate::support;

use std::collections::BTreeSet;

use baton_engine::{Effect, outstanding, snapshot};
use baton_model::event::DrainPolicy;
use baton_model::{RunId, RunStatus};
use serde_json::{Value, json};
use support::script::{self, News, wanted_children};
use support::second::second;
use support::{World, run, stored, workflow};

fn going(extra: Value, settings: Value) -> World {
    let mut config = json!({"items": [10, 20, 30, 40], "workflow": "line", "output": "result", "maxConcurrency": 2});
    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let mut definition = workflow(&[("each", "vendor.baton.map", config)], &[]);
    definition["nodes"][0]["settings"] = settings;
    run(definition)
}

fn starts(world: &World) -> Vec<(RunId, String, Value)> {
    let plans = outstanding(&world.state).into_iter().filter_map(|effect| match effect {
        Effect::StartChild { plan, .. } => Some((plan.run, plan.workflow.to_string(), Value::Object(plan.inputs))),
        _ => None,
    });
    plans.collect()
}

fn outputs(world: &World) -> Value {
    world.payloads("node.completed")[0]["outputs"].clone()
}

#[test]
fn each_item_is_a_run_of_its_own() {
    let mut world = going(json!({}), json!({}));
    let begun = starts(&world);
    let given: Vec<&Value> = begun.iter().map(|(_, _, inputs)| inputs).collect();
    assert_eq!(given, [&json!({"item": 10, "index": 0}), &json!({"item": 20, "index": 1})]);
    assert!(begun.iter().all(|(_, workflow, _)| workflow == "line"));
    let mut seen = BTreeSet::new();
    while let Some(child) = wanted_children(&world.state).pop() {
        assert!(seen.insert(child.clone()), "a child has a place of its own");
        world.tell(&child, News::Started);
        world.tell(&child, News::Started);
        world.tell(&child, News::Ended(RunStatus::Completed));
        world.tell(&child, News::Ended(RunStatus::Failed));
    }
    assert_eq!((seen.len(), world.status()), (4, RunStatus::Completed));
    assert_eq!(outputs(&world)["results"], json!([0.1, 0.1, 0.1, 0.1]));
    assert_eq!(snapshot(&world.state).unwrap().child_runs.len(), 4);
}

#[test]
fn what_a_run_is_given_and_what_is_taken_from_it() {
    let world = going(json!({"inputsExpression": "{'sum': item + index}", "as": "amount"}), json!({}));
    assert_eq!(starts(&world)[1].2, json!({"sum": 21}));
    let mut world = going(json!({"inputsExpression": "item", "onItemError": "collect"}), json!({}));
    assert!(starts(&world).is_empty() && world.status() == RunStatus::Completed);
    assert_eq!(outputs(&world)["errors"][0]["code"], "validation_error");
    world = going(json!({"output": "nowhere"}), json!({}));
    let child = wanted_children(&world.state)[0].clone();
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!(world.payloads("baton.map.itemFailed")[0]["error"]["code"], "input_missing");
    let mut config = json!({"items": ["a", {"city": "b"}], "agent": "acme.team.writer"});
    let world = run(workflow(&[("each", "vendor.baton.map", config.clone())], &[]));
    let begun = starts(&world);
    assert_eq!((begun[0].1.as_str(), &begun[0].2), ("agent:acme.team.writer", &json!({"task": "a"})));
    assert_eq!(begun[1].2, json!({"city": "b"}));
    config["taskExpression"] = "'Write about ' + string(item)".into();
    config["items"] = json!(["tea"]);
    assert_eq!(
        starts(&run(workflow(&[("each", "vendor.baton.map", config)], &[])))[0].2,
        json!({"task": "Write about tea"})
    );
}

#[test]
fn the_first_failure_ends_the_others() {
    let mut world = going(json!({}), json!({}));
    let children = wanted_children(&world.state);
    children.iter().for_each(|child| world.tell(child, News::Started));
    world.tell(&children[1], News::Ended(RunStatus::Failed));
    let effects = outstanding(&world.state);
    assert_eq!(effects[0], Effect::CancelChild { child: children[0].clone() }, "the other has no more use");
    assert!(starts(&world).is_empty() && wanted_children(&world.state).len() == 1, "and no further one begins");
    world.tell(&children[0], News::Ended(RunStatus::Cancelled));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("map_item_failed")));
    assert_eq!(world.state.error().unwrap().details.as_ref().unwrap()["index"], 1);
}

#[test]
fn a_child_that_is_refused_or_fails_is_tried_again_under_another_name() {
    let extra = json!({"onItemError": "collect", "maxConcurrency": 1, "items": [1, 2]});
    let mut world = going(extra, json!({"maxRetries": 1, "retryDelayMs": 10}));
    let first = world.child();
    world.tell(&first, News::Ended(RunStatus::Failed));
    world.wait(10);
    let again = world.child();
    assert_ne!(first, again);
    world.tell(&again, News::Ended(RunStatus::Completed));
    let refused = world.child();
    world.tell(&refused, News::Refused);
    assert_eq!(world.status(), RunStatus::Completed, "there is no such workflow the second time either");
    assert_eq!(outputs(&world)["errors"][0]["code"], "unknown_child_workflow");
    assert_eq!(outputs(&world)["results"], json!([0.1, null]));
}

#[test]
fn a_child_that_waits_holds_up_only_its_place() {
    let mut world = going(json!({}), json!({}));
    let children = wanted_children(&world.state);
    children.iter().for_each(|child| world.tell(child, News::Started));
    world.tell(&children[0], News::Status(RunStatus::WaitingApproval));
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    world.tell(&children[1], News::Ended(RunStatus::Completed));
    assert_eq!(starts(&world).len(), 1, "the third begins while the first waits");
    let third = starts(&world)[0].0.clone();
    world.tell(&third, News::Started);
    world.tell(&third, News::Ended(RunStatus::Completed));
    world.tell(&children[0], News::Ended(RunStatus::Completed));
    let fourth = world.child();
    world.tell(&fourth, News::Ended(RunStatus::Completed));
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn cancelled_paused_and_out_of_time() {
    let mut world = going(json!({}), json!({}));
    let children = wanted_children(&world.state);
    children.iter().for_each(|child| world.tell(child, News::Started));
    world.cancel();
    assert_eq!(world.status(), RunStatus::Cancelling);
    children.iter().for_each(|child| world.tell(child, News::Ended(RunStatus::Cancelled)));
    assert_eq!((world.status(), world.nodes_of("node.cancelled")), (RunStatus::Cancelled, vec!["each"]));
    let mut world = going(json!({"itemTimeoutMs": 70}), json!({"timeout": 100}));
    let children = wanted_children(&world.state);
    let bound = outstanding(&world.state).into_iter().find_map(|effect| match effect {
        Effect::StartChild { max_duration_ms, .. } => max_duration_ms,
        _ => None,
    });
    assert_eq!(bound, Some(70));
    children.iter().for_each(|child| world.tell(child, News::Started));
    world.wait(100);
    let cancelled = outstanding(&world.state).into_iter().filter(|effect| matches!(effect, Effect::CancelChild { .. }));
    assert_eq!((cancelled.count(), starts(&world).len()), (2, 0));
    children.iter().for_each(|child| world.tell(child, News::Ended(RunStatus::Cancelled)));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("node_timeout")));
    let mut world = going(json!({}), json!({}));
    let children = wanted_children(&world.state);
    world.pause(DrainPolicy::Immediate).unwrap();
    world.tell(&children[0], News::Ended(RunStatus::Completed));
    assert_eq!(world.payloads("baton.map.itemCompleted").len(), 0, "heard again when it goes on");
    world.resume().unwrap();
    world.tell(&children[0], News::Ended(RunStatus::Completed));
    assert_eq!(world.payloads("baton.map.itemCompleted").len(), 1);
}

#[test]
fn an_empty_budget_stops_the_map_even_where_failures_are_collected() {
    let mut world = going(json!({"onItemError": "collect"}), json!({"maxRetries": 3}));
    let child = wanted_children(&world.state)[0].clone();
    let mut outcome = script::outcome(RunStatus::Failed);
    outcome.error = Some(baton_model::Fault::new("budget_exhausted", "There is nothing left."));
    world.command(&baton_engine::Command::ChildEnded { child, outcome }).unwrap();
    assert_eq!(world.payloads("baton.map.stopping").len(), 1, "no other item would do better");
}

#[test]
fn a_branch_begins_where_no_item_is_under_way() {
    let mut world = going(json!({"maxConcurrency": 1}), json!({}));
    let mut alone = Vec::new();
    while let Some(child) = wanted_children(&world.state).pop() {
        world.tell(&child, News::Started);
        assert!(!world.state.is_alone());
        world.tell(&child, News::Ended(RunStatus::Completed));
    }
    let fresh = baton_engine::RunState::new(world.state.run.clone(), std::sync::Arc::clone(world.state.plan()));
    world.log.iter().fold(fresh, |state, record| {
        let next = baton_engine::evolve(state, record).unwrap();
        if record.event.type_name() == "baton.map.itemCompleted" {
            alone.push(next.is_alone());
        }
        next
    });
    assert_eq!(alone, [true; 4], "after each item that was done alone, nobody is under way");
    let log: Vec<_> = world.log.iter().map(stored).collect();
    for from in 0..=log.len() {
        assert_eq!(second(&world.state.run, world.state.plan(), &log, from, 2).difference, None, "from {from}");
    }
}
