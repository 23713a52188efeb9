//! Cancel, pause and resume, whatever the run is doing at the time.

use crate::support;

use baton_engine::{Command, Effect, RefusalKind, outstanding};
use baton_model::event::DrainPolicy::{DrainCurrentNode, Immediate};
use baton_model::{RunId, RunStatus};
use serde_json::{Value, json};
use support::script::News;
use support::{World, plan, run, start_command, workflow};

const NONE: Value = Value::Null;

/// A nap of 100 ms, then something to do.
fn napping() -> World {
    run(workflow(
        &[("nap", "core.delay", json!({"ms": 100})), ("next", "core.noop", json!({}))],
        &[("nap", "next", NONE)],
    ))
}

/// A parent whose only child runs.
fn with_child(config: Value) -> (World, RunId) {
    let mut config = config;
    config["workflowId"] = "child".into();
    let mut world = run(workflow(&[("sub", "core.subWorkflow", config)], &[]));
    let child = world.child();
    world.tell(&child, News::Started);
    (world, child)
}

fn last(world: &World) -> &str {
    world.types().last().copied().unwrap()
}

#[test]
fn a_sleeping_run_is_cancelled_at_once() {
    let mut world = napping();
    let cancel = Command::Cancel { reason: Some("enough".to_owned()), by: Some("ann".to_owned()), parent: None };
    world.command(&cancel).unwrap();
    assert_eq!(world.status(), RunStatus::Cancelled);
    assert_eq!(world.payloads("run.cancelled"), [json!({"reason": "enough", "cancelledBy": "ann"})]);
    assert_eq!(world.nodes_of("node.cancelled"), ["nap"]);
    assert_eq!(outstanding(&world.state), []);
}

#[test]
fn waiting_paused_and_retrying_runs_are_cancelled_at_once() {
    let mut waiting = run(workflow(&[("gate", "core.approvalGate", json!({}))], &[]));
    waiting.cancel();
    assert_eq!(waiting.status(), RunStatus::Cancelled);
    assert_eq!(waiting.state.interrupts().count(), 0);

    let mut paused = napping();
    paused.pause(Immediate).unwrap();
    paused.cancel();
    assert_eq!((paused.status(), last(&paused)), (RunStatus::Cancelled, "run.cancelled"));

    let mut draining = napping();
    draining.pause(DrainCurrentNode).unwrap();
    draining.cancel();
    assert_eq!(draining.status(), RunStatus::Cancelled);

    let mut definition = workflow(&[("bad", "core.fail", json!({}))], &[]);
    definition["settings"] = json!({"maxRetries": 2});
    let mut retrying = run(definition);
    retrying.cancel();
    assert_eq!(retrying.nodes_of("node.cancelled"), ["bad"]);
    assert_eq!(retrying.status(), RunStatus::Cancelled);
}

#[test]
fn cancelling_twice_or_after_the_end_changes_nothing() {
    let mut world = napping();
    world.cancel();
    let records = world.log.len();
    world.cancel();
    assert_eq!(world.log.len(), records);

    let mut done = run(workflow(&[("a", "core.noop", json!({}))], &[]));
    done.cancel();
    assert_eq!((done.status(), last(&done)), (RunStatus::Completed, "run.completed"));
}

#[test]
fn a_parent_ends_after_its_children() {
    let (mut world, child) = with_child(json!({}));
    world.cancel();
    assert_eq!((world.status(), last(&world)), (RunStatus::Cancelling, "baton.run.ending"));
    assert_eq!(outstanding(&world.state), [Effect::CancelChild { child: child.clone() }]);
    world.wait(10_000);
    assert_eq!(world.status(), RunStatus::Cancelling);
    world.cancel();
    world.tell(&child, News::Ended(RunStatus::Cancelled));
    assert_eq!(world.status(), RunStatus::Cancelled);
    let types = world.types();
    assert_eq!(&types[types.len() - 2..], ["node.cancelled", "run.cancelled"]);
}

#[test]
fn a_failing_parent_also_waits_for_its_children() {
    let nodes =
        [("sub", "core.subWorkflow", json!({"workflowId": "child"})), ("bad", "core.fail", json!({"code": "boom"}))];
    let mut world = run(workflow(&nodes, &[]));
    let child = world.child();
    assert_eq!(last(&world), "baton.run.ending");
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("boom")));
    assert_eq!(world.payloads("run.failed")[0]["failedNodeId"], "bad");
}

#[test]
fn a_child_that_is_not_to_be_cancelled_does_not_hold_up_its_parent() {
    let (mut world, child) = with_child(json!({"propagateCancellation": false}));
    world.cancel();
    assert_eq!(world.status(), RunStatus::Cancelled);
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!(last(&world), "run.cancelled");
}

#[test]
fn an_immediate_pause_stops_the_clock_of_its_nodes() {
    let mut world = napping();
    world.wait(60);
    world.pause(Immediate).unwrap();
    assert_eq!((world.status(), last(&world)), (RunStatus::Paused, "run.paused"));
    world.wait(1000);
    assert_eq!(world.nodes_of("node.completed").len(), 0);
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::Running);
    let starts: Vec<_> = world.payloads("node.started").iter().map(|p| p["attempt"].clone()).collect();
    assert_eq!(starts, [0, 1], "what was interrupted begins anew");
    world.wait(99);
    assert_eq!(world.status(), RunStatus::Running);
    world.wait(1);
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_draining_pause_lets_the_current_node_finish() {
    let mut world = napping();
    world.pause(DrainCurrentNode).unwrap();
    assert_eq!((world.status(), last(&world)), (RunStatus::Running, "baton.run.ending"));
    world.wait(100);
    assert_eq!(world.status(), RunStatus::Paused);
    assert_eq!(world.nodes_of("node.completed"), ["nap"]);
    assert_eq!(world.payloads("run.paused"), [json!({"drainPolicy": "drain-current-node"})]);
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(world.nodes_of("node.started"), ["nap", "next"], "what completed does not run again");
}

#[test]
fn a_draining_pause_starts_no_new_attempt() {
    let nodes = [("nap", "core.delay", json!({"ms": 100})), ("bad", "core.fail", json!({}))];
    let mut definition = workflow(&nodes, &[]);
    definition["nodes"][1]["settings"] = json!({"maxRetries": 1, "retryDelayMs": 10});
    let mut world = run(definition);
    world.pause(DrainCurrentNode).unwrap();
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)), "the retry is no reason to wake");
    world.wait(100);
    assert_eq!(world.status(), RunStatus::Paused);
    assert_eq!(world.nodes_of("node.started"), ["nap", "bad"]);
    world.resume().unwrap();
    assert_eq!(world.nodes_of("node.started"), ["nap", "bad", "bad"]);
}

#[test]
fn only_a_running_run_can_be_paused_and_only_a_paused_one_resumed() {
    let mut waiting = run(workflow(&[("gate", "core.approvalGate", json!({}))], &[]));
    let mut paused = napping();
    paused.pause(Immediate).unwrap();
    let mut ended = run(workflow(&[("a", "core.noop", json!({}))], &[]));
    let mut draining = napping();
    draining.pause(DrainCurrentNode).unwrap();
    for (world, status) in [
        (&mut waiting, "waiting-approval"),
        (&mut paused, "paused"),
        (&mut ended, "completed"),
        (&mut draining, "running"),
    ] {
        let refusal = world.pause(Immediate).unwrap_err();
        assert_eq!((refusal.kind, refusal.fault.code.as_str()), (RefusalKind::Conflict, "run_conflict"));
        assert_eq!(refusal.fault.details.unwrap()["runStatus"], status);
    }
    for world in [&mut waiting, &mut ended] {
        assert_eq!(world.resume().unwrap_err().fault.code, "run_conflict");
    }
    let refusal = draining.pause(Immediate).unwrap_err();
    assert!(refusal.fault.message.contains("stops when the node that is at work has ended"), "{refusal:?}");
    let details = refusal.fault.details.unwrap();
    assert_eq!((&details["pausing"], &details["drainPolicy"]), (&json!(true), &json!("drain-current-node")));
}

#[test]
fn a_pause_that_is_still_draining_can_be_called_off() {
    let mut world = napping();
    world.pause(DrainCurrentNode).unwrap();
    world.resume().unwrap();
    assert_eq!((world.status(), last(&world)), (RunStatus::Running, "run.resumed"));
    assert_eq!(world.resume().unwrap_err().fault.code, "run_conflict", "once is enough");
    assert_eq!(baton_engine::snapshot(&world.refolded()), baton_engine::snapshot(&world.state));
    world.wait(100);
    assert_eq!(world.status(), RunStatus::Completed);
    assert!(world.payloads("run.paused").is_empty());
    assert_eq!(world.nodes_of("node.started"), ["nap", "next"], "nothing had stopped, so nothing begins anew");

    // What was not begun for the pause's sake is begun after all.
    let nodes = [("nap", "core.delay", json!({"ms": 100})), ("bad", "core.fail", json!({}))];
    let mut definition = workflow(&nodes, &[]);
    definition["nodes"][1]["settings"] = json!({"maxRetries": 1, "retryDelayMs": 10});
    let mut world = run(definition);
    world.pause(DrainCurrentNode).unwrap();
    world.wait(10);
    assert_eq!(world.nodes_of("node.started"), ["nap", "bad"]);
    world.resume().unwrap();
    assert_eq!(world.nodes_of("node.started"), ["nap", "bad", "bad"]);
}

#[test]
fn a_child_that_ends_during_a_pause_is_heard_afterwards() {
    let (mut world, child) = with_child(json!({}));
    world.pause(Immediate).unwrap();
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!(world.status(), RunStatus::Paused);
    assert_eq!(outstanding(&world.state)[0], Effect::AwaitChild { child: child.clone() });
    world.resume().unwrap();
    world.tell(&child, News::Ended(RunStatus::Completed));
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn the_duration_bound_holds_while_paused() {
    let mut start = start_command(json!({}));
    start.settings.max_duration_ms = 500;
    let mut world = World::started(plan(workflow(&[("nap", "core.delay", json!({"ms": 100}))], &[])), start);
    world.pause(Immediate).unwrap();
    assert_eq!(outstanding(&world.state), [Effect::WakeAt { at: world.now.plus_millis(501) }]);
    world.wait(501);
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("run_timeout")));
    assert_eq!(world.payloads("cap.breached"), [json!({"kind": "run-duration", "limit": 500, "observed": 501})]);
}

#[test]
fn resuming_counts_against_the_bound_on_node_starts() {
    let mut start = start_command(json!({}));
    start.settings.max_node_executions = 1;
    let mut world = World::started(plan(workflow(&[("nap", "core.delay", json!({"ms": 100}))], &[])), start);
    world.pause(Immediate).unwrap();
    world.resume().unwrap();
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("recursion_limit_exceeded")));
    assert_eq!(world.nodes_of("node.started").len(), 1);
    assert_eq!(world.nodes_of("cap.breached"), ["nap"]);
}
