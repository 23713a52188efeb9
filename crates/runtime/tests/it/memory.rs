//! A run in memory is only a cache of its log: it leaves when nothing is to be done soon and comes back when needed,
//! and a read that fails on the way only delays.

use crate::common;

use std::sync::Arc;

use baton_model::{RunStatus, code};
use baton_runtime::ErrorKind;
use baton_store::{Disk, MemoryStore};
use baton_testkit::Flow;
use common::scenario::{call, gate, noop, parent, pipeline};
use common::watched::Watched;
use common::{World, accept, options};
use serde_json::json;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

async fn watched(disk: Disk, flows: impl IntoIterator<Item = Flow>) -> (World, Arc<Watched>) {
    let memory = Arc::new(MemoryStore::from_disk(disk));
    let store = Arc::new(Watched::new(Arc::clone(&memory)));
    let world = World::over(Arc::clone(&store) as _, memory, Arc::default(), options(512)).await;
    for flow in flows {
        world.register(flow).await;
    }
    (world, store)
}

#[tokio::test]
async fn a_waiting_run_is_not_in_memory_and_an_ended_one_is_kept_for_a_look() {
    let (world, store) = watched(Disk::default(), [gate("gated"), pipeline("pipeline")]).await;
    let (waiting, ended) = (world.start("gated").await, world.start("pipeline").await);
    world.settle().await;
    store.loads();
    world.snapshot(&waiting).await;
    assert_eq!(store.loads(), 1, "a waiting run is read from disk");
    world.snapshot(&ended).await;
    assert_eq!(store.loads(), 0, "an ended run is still at hand");
    world.resolve(&waiting, "gate", accept()).await.unwrap();
    assert_eq!(store.loads(), 1);
}

#[tokio::test]
async fn a_run_brought_in_for_nothing_leaves_again() {
    let (world, store) = watched(Disk::default(), [gate("gated")]).await;
    let run = world.start("gated").await;
    world.settle().await;
    store.loads();
    for _ in 0..3 {
        let refused = world.resolve(&run, "before", accept()).await.unwrap_err();
        assert_eq!(refused.code, code::INTERRUPT_NOT_FOUND);
        world.settle().await;
        assert_eq!(store.loads(), 1, "loaded for the refusal, and gone again before the next");
    }
}

/// A restart brings a parent in, which asks about its children. While it does it stays: would it leave in between, it
/// would ask about all of them again, and never be done.
#[tokio::test]
async fn a_parent_of_many_asks_about_each_child_once() {
    const CHILDREN: usize = 300;
    let config = call("gated");
    let many = |flow: Flow, n: usize| flow.node(&format!("w{n}"), "core.subWorkflow", config.clone());
    let disk = {
        let world = World::with([gate("gated"), (0..CHILDREN).fold(Flow::new("many"), many)]).await;
        world.start("many").await;
        world.settle().await;
        world.stop().await
    };
    let (world, store) = watched(disk, []).await;
    world.settle().await;
    assert!(store.loads() < 4 * CHILDREN, "each child is looked at, and no more than that");
    let open = world.open_interrupts().await;
    assert_eq!(open.len(), CHILDREN);
    world.resolve(&open[0].run, "gate", accept()).await.unwrap();
    store.loads();
    world.settle().await;
    assert!(store.loads() < 4 * CHILDREN);
}

#[tokio::test]
async fn what_sleeps_for_days_sleeps_on_disk() {
    let slow = Flow::chain("slow", &[("wait", "core.delay", json!({"ms": DAY_MS})), ("after", "core.noop", noop())]);
    let (world, store) = watched(Disk::default(), [parent("parent", call("slow")), slow]).await;
    let run = world.start("parent").await;
    world.settle().await;
    store.loads();
    world.clock.advance(DAY_MS);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert!(store.loads() >= 2, "both the child and its parent had left memory");
}

/// The child is answered, but its parent cannot be read just then.
#[tokio::test]
async fn news_for_a_run_that_cannot_be_read_arrive_later() {
    let (world, store) = watched(Disk::default(), [parent("parent", call("gated")), gate("gated")]).await;
    let run = world.start("parent").await;
    let child = world.waiting(&run).await.child_runs[0].run_id.clone();
    world.settle().await;
    store.blind(true);
    assert_eq!(world.resolve(&child, "gate", accept()).await.unwrap_err().kind, ErrorKind::Unavailable);
    store.blind(false);
    // The child is read; then the store goes blind before its parent is.
    world.store.hold();
    let mut answer = std::pin::pin!(world.resolve(&child, "gate", accept()));
    tokio::select! {
        biased;
        _ = answer.as_mut() => panic!("acknowledged before the commit"),
        () = std::future::ready(()) => store.blind(true),
    }
    world.settle().await;
    world.store.release();
    answer.await.unwrap();
    world.settle().await;
    store.blind(false);
    world.settle().await;
    assert_eq!(world.status(&child).await, RunStatus::Completed);
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval, "the parent could not be told");
    world.drive(5).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    world.audit("late news").await;
}

#[tokio::test]
async fn recovery_from_a_store_that_cannot_be_read_yet_comes_later() {
    let (world, _) = watched(Disk::default(), [parent("parent", call("gated")), gate("gated")]).await;
    let run = world.start("parent").await;
    let child = world.waiting(&run).await.child_runs[0].run_id.clone();
    // Dies when the child's end is durable and its parent does not know of it yet.
    let first = World::open(world.stop().await, Arc::default(), options(1)).await;
    first.settle().await;
    first.store.crash_after(1);
    first.resolve(&child, "gate", accept()).await.unwrap_or_else(|_| panic!("the answer was durable"));
    let memory = Arc::new(MemoryStore::from_disk(first.stop().await));
    let store = Arc::new(Watched::new(Arc::clone(&memory)));
    store.blind(true);
    let world = World::over(Arc::clone(&store) as _, memory, Arc::default(), options(512)).await;
    world.settle().await;
    world.clock.advance(10_000);
    world.settle().await;
    store.blind(false);
    world.settle().await;
    assert!(!world.status(&run).await.is_terminal(), "nothing could be recovered yet");
    world.drive(5).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    world.audit("late recovery").await;
}
