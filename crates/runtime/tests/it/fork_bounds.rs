//! What is laid over a run is judged as for a new one, and what a fork shows is its own.

use crate::common;
use crate::forking;

use baton_model::{RunStatus, code};
use baton_runtime::{Error, ErrorKind, ForkRun, StartRun};
use baton_testkit::Flow;
use common::scenario::{call, gate, parent, pipeline};
use common::{World, tenant, who};
use forking::{branch_at, replay_from};
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn told(error: &Error) -> (ErrorKind, &'static str, Value) {
    (error.kind, error.code, error.details["path"].clone())
}

#[tokio::test]
async fn an_overlay_is_judged_as_a_start_is() {
    let schema = json!({
        "type": "object", "required": ["tone"], "additionalProperties": false,
        "properties": {"tone": {"enum": ["dry", "warm"]}, "size": {"type": "integer"}},
    });
    let flow = gate("asks")
        .variable("n", "number", json!(1))
        .with("configurableSchema", schema)
        .with("channels", json!({"log": {"reducer": "append"}}));
    let world = World::with([flow]).await;
    let begin = |configurable: Value, inputs: Value| StartRun {
        configurable: map(configurable),
        inputs: map(inputs),
        ..common::request("asks")
    };
    let start = async |request: StartRun| world.host.start_run(&who(), request, None).await;
    let run = start(begin(json!({"tone": "dry"}), json!({}))).await.unwrap().run_id;
    world.waiting(&run).await;
    let good = json!({"tone": "dry"});
    let cases = [
        (json!({"tone": "loud"}), json!({})),
        (json!({"tone": "dry", "size": "large"}), json!({})),
        (good.clone(), json!({"n": "text"})),
        (good.clone(), json!({"log": 1})),
    ];
    for (configurable, inputs) in cases {
        let refused = start(begin(configurable.clone(), inputs.clone())).await.unwrap_err();
        for from in 0..=world.length(&run).await {
            let overlay =
                ForkRun { configurable: map(configurable.clone()), inputs: map(inputs.clone()), ..branch_at(from) };
            let error = world.try_fork(&run, overlay).await.unwrap_err();
            assert_eq!(told(&error), told(&refused), "{configurable} {inputs} at {from}: {error}");
        }
        if let Some(name) = inputs.as_object().unwrap().keys().find(|name| *name == "log") {
            let variables = map(json!({name.as_str(): 1}));
            let error = world.try_fork(&run, ForkRun { variables, ..branch_at(2) }).await.unwrap_err();
            assert_eq!(error.code, code::VALIDATION_ERROR, "{error}");
        }
    }
    // What is not said again is still there.
    let overlay = ForkRun { configurable: map(json!({"size": 3})), inputs: map(json!({"n": 2})), ..branch_at(2) };
    let branch = world.waiting(&world.try_fork(&run, overlay).await.unwrap()).await;
    assert_eq!(Value::Object(branch.configurable), json!({"tone": "dry", "size": 3}));
    assert_eq!(branch.variables["n"], 2);
}

#[tokio::test]
async fn a_fork_of_a_child_has_no_parent() {
    let world = World::with([parent("parent", call("pipeline")), pipeline("pipeline")]).await;
    let run = world.start("parent").await;
    let child = world.ended(&run).await.child_runs[0].run_id.clone();
    let shown = world.snapshot(&child).await;
    assert_eq!((shown.parent_run_id, shown.parent_node_id.is_some()), (Some(run), true));
    for request in [replay_from(0), replay_from(3), branch_at(0), branch_at(3)] {
        let fork = world.fork(&child, request).await;
        let shown = world.ended(&fork).await;
        assert_eq!((shown.parent_run_id, shown.parent_node_id), (None, None));
        let at = world.host.state_at(&tenant(), &fork, Some(1)).await.unwrap().view;
        assert_eq!((at.parent_run_id, at.parent_node_id), (None, None));
        assert!(world.host.ancestry(&tenant(), &fork).await.unwrap().parent.is_none());
    }
}

/// Its source waits there; a replay asks nobody and waits for nobody.
#[tokio::test]
async fn a_replay_on_its_way_asks_nothing() {
    let world = World::with([gate("asks")]).await;
    let run = world.start("asks").await;
    let waits = world.waiting(&run).await;
    // The disk takes the fork, and then nothing for a while.
    world.store.hold();
    let (replay, ()) = tokio::join!(world.fork(&run, replay_from(waits.at_seq + 1)), async {
        world.settle().await;
        world.store.release();
        world.store.hold();
    });
    world.settle().await;
    let seen = world.snapshot(&replay).await;
    assert_eq!((seen.status, seen.interrupt.is_none()), (RunStatus::Running, true), "{seen:?}");
    assert_eq!(world.row(&replay).await.status, RunStatus::Pending, "nothing of it is on disk yet");
    world.store.release();
    assert_eq!(world.ended(&replay).await.status, RunStatus::Cancelled);
}

#[tokio::test]
async fn what_had_ended_did_not_end_before_it_began() {
    let world = World::with([Flow::chain("short", &[("only", "core.noop", json!({}))])]).await;
    let run = world.start("short").await;
    let ended = world.ended(&run).await;
    world.clock.advance(60_000);
    let branch = world.fork(&run, branch_at(ended.at_seq + 1)).await;
    let branch = world.ended(&branch).await;
    assert!(branch.started_at <= branch.completed_at, "{branch:?}");
}
