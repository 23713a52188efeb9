//! How many trees of runs a tenant may have, at work and waiting.

use std::sync::Arc;

use baton_model::RunStatus;
use baton_runtime::{ErrorKind, Options, StartRun, TreeLimits};
use baton_store::MemoryStore;
use baton_testkit::{Flow, SimClock};
use futures_util::future::join_all;
use serde_json::json;

use crate::common::{World, accept, in_time, options, other, request, seed, who};
use crate::forking::branch_at;

fn limits(running: u64, waiting: u64) -> Options {
    let tree_limits = TreeLimits { running: Some(running), waiting: Some(waiting) };
    Options { tree_limits, ..options(512) }
}

async fn world(options: Options) -> World {
    let world = World::open(baton_store::Disk::default(), Arc::<SimClock>::default(), options).await;
    for flow in [
        Flow::chain("long", &[("wait", "core.delay", json!({"ms": 60_000}))]),
        Flow::chain("short", &[("a", "core.noop", json!({}))]),
        Flow::chain("asks", &[("gate", "core.approvalGate", json!({"title": "Go on?"}))]),
        Flow::chain(
            "parent",
            &[("call", "core.subWorkflow", json!({"workflowId": "long", "waitForCompletion": true}))],
        ),
    ] {
        world.host.register_workflow(&other().tenant, flow.clone().build()).await.unwrap();
        world.register(flow).await;
    }
    world
}

/// Longer than a count is kept for.
fn later(world: &World) {
    world.clock.advance(200);
}

#[tokio::test]
async fn one_more_than_there_may_be_at_work_is_refused_until_one_ends() {
    let world = world(limits(3, 100)).await;
    let runs = [world.start("long").await, world.start("parent").await, world.start("long").await];
    world.settle().await;
    let refused = world.try_start("short").await.unwrap_err();
    assert_eq!((refused.kind, refused.code), (ErrorKind::TooMany, "rate_limited"));
    assert_eq!(
        (&refused.details["quota"], &refused.details["limit"], &refused.details["scope"]),
        (&json!("runningTrees"), &json!(3), &json!("tenant")),
        "children do not count"
    );
    // Nobody else notices.
    let theirs = StartRun { workflow_id: "short".to_owned(), ..StartRun::default() };
    world.host.start_run(&other(), theirs, None).await.unwrap();
    // A branch is a tree, too.
    assert_eq!(world.host.fork(&who(), &runs[0], branch_at(1), None).await.unwrap_err().kind, ErrorKind::TooMany);

    world.host.cancel(&who(), &runs[0], None).await.unwrap();
    world.settle().await;
    later(&world);
    world.start("long").await;
    later(&world);
    assert!(world.try_start("long").await.is_err());
}

#[tokio::test]
async fn whoever_leaves_questions_open_begins_nothing_more() {
    let world = world(limits(100, 2)).await;
    let first = world.start("asks").await;
    world.start("asks").await;
    world.settle().await;
    later(&world);
    let refused = world.try_start("short").await.unwrap_err();
    assert_eq!(refused.details["quota"], "waitingTrees");
    world.resolve(&first, "gate", accept()).await.unwrap();
    world.settle().await;
    later(&world);
    world.start("short").await;
}

/// Runs that end at once use up nothing, however many there are.
#[tokio::test]
async fn runs_that_end_make_room_by_themselves() {
    let world = world(limits(2, 2)).await;
    for _ in 0..50 {
        world.start("short").await;
        world.settle().await;
        later(&world);
    }
}

/// However many come at once, and while the disk is slow.
#[tokio::test]
async fn starts_at_the_same_time_share_what_is_left() {
    let world = world(limits(5, 100)).await;
    world.store.hold();
    let starts = join_all((0..40).map(async |_| world.host.start_run(&who(), request("long"), None).await));
    let release = async {
        world.settle().await;
        world.store.release();
    };
    let (started, ()) = in_time("the starts", async { tokio::join!(starts, release) }).await;
    assert_eq!(started.iter().filter(|start| start.is_ok()).count(), 5, "seed {}", seed());
    let active = world.rows().await.iter().filter(|row| row.status == RunStatus::Running).count();
    assert_eq!(active, 5);
}

/// A start that comes to nothing gives its place back.
#[tokio::test]
async fn starts_that_are_refused_for_other_reasons_use_up_nothing() {
    let world = world(limits(2, 2)).await;
    for _ in 0..10 {
        assert_eq!(world.try_start("missing").await.unwrap_err().kind, ErrorKind::NotFound);
    }
    world.start("long").await;
    world.start("long").await;
    assert!(world.try_start("long").await.is_err());
}

/// What was under way before a restart counts.
#[tokio::test]
async fn a_new_process_knows_what_is_under_way() {
    let world = world(limits(2, 2)).await;
    world.start("long").await;
    world.start("long").await;
    let clock = Arc::clone(&world.clock);
    let store = Arc::new(MemoryStore::from_disk(world.stop().await));
    let world = World::seeded(Arc::clone(&store) as _, store, clock, limits(2, 2), seed() + 1).await;
    assert!(world.try_start("long").await.is_err());
}
