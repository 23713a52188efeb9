//! A store that is well and will not take what one run wrote. Its tree is tried again a few times and then left alone;
//! nobody else notices. And a host that panics while it starts over tries again.

use std::sync::Arc;

use baton_model::{RunId, RunStatus, WorkflowId};
use baton_runtime::{ErrorKind, StartRun};
use baton_store::reads::*;
use baton_store::{Disk, Journal as _, MemoryStore};
use baton_testkit::Flow;
use serde_json::json;

use crate::common::watched::Watched;
use crate::common::{World, accept, in_time, options, other, seed, tenant, who};

/// Waits a second, then does nothing.
fn flow(id: &str) -> Flow {
    Flow::chain(id, &[("wait", "core.delay", json!({"ms": 1000})), ("after", "core.noop", json!({}))])
}

/// Waits a second, then has a child.
fn parent() -> Flow {
    let call = json!({"workflowId": "bad", "waitForCompletion": true});
    Flow::chain("parent", &[("wait", "core.delay", json!({"ms": 1000})), ("call", "core.subWorkflow", call)])
}

async fn world() -> World {
    let world = World::with([flow("flow"), flow("bad"), parent()]).await;
    world.host.register_workflow(&other().tenant, flow("flow").build()).await.unwrap();
    world.store.refuse_workflow(&WorkflowId::new("bad"));
    world
}

/// Lets time pass until whoever fails has failed for good.
async fn pass(world: &World) {
    for _ in 0..30 {
        world.clock.advance(1000);
        world.settle().await;
    }
}

async fn start_other(world: &World) -> RunId {
    let request = StartRun { workflow_id: "flow".to_owned(), ..StartRun::default() };
    world.host.start_run(&other(), request, None).await.unwrap().run_id
}

async fn other_ended(world: &World, run: &RunId) {
    assert_eq!(world.host.snapshot(&other().tenant, run).await.unwrap().status, RunStatus::Completed);
}

#[tokio::test]
async fn a_run_whose_commit_is_refused_again_and_again_is_left_alone() {
    let world = world().await;
    let (run, bystander) = (world.start("flow").await, world.start("flow").await);
    let foreign = start_other(&world).await;
    world.store.refuse_run(&run);
    pass(&world).await;

    assert_eq!((world.store.generation(), world.store.lost()), (1, 3), "again from what is durable, and then no more");
    let held = world.snapshot(&run).await.quarantine.expect("in quarantine");
    assert_eq!((held.cause.as_str(), &held.run_id), ("commit_refused", &run));
    assert!(held.detail.contains("a simulated rule forbids it"), "{}", held.detail);
    assert_eq!(world.host.quarantined(&tenant(), None, 9).await.unwrap().len(), 1, "and nobody else");
    assert!(world.host.readiness().ready);
    assert_eq!(world.status(&bystander).await, RunStatus::Completed);
    other_ended(&world, &foreign).await;

    let clock = Arc::clone(&world.clock);
    let store = Arc::new(MemoryStore::from_disk(world.stop().await));
    let world = World::seeded(Arc::clone(&store) as _, store, clock, options(512), seed() + 1).await;
    pass(&world).await;
    assert_eq!(world.store.lost(), 0, "nor after a restart");
    world.store.accept_run(&run);
    world.host.release(&who(), &run).await.unwrap();
    pass(&world).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn a_child_that_can_never_be_written_takes_its_tree_along_and_nobody_else() {
    let world = world().await;
    let (run, bystander) = (world.start("parent").await, world.start("flow").await);
    let foreign = start_other(&world).await;
    pass(&world).await;
    assert_eq!(world.store.generation(), 1);
    let held = world.snapshot(&run).await.quarantine.expect("the tree is in quarantine");
    assert_eq!((held.cause.as_str(), &held.root_run_id), ("commit_refused", &run));
    assert_eq!(world.rows().await.len(), 3, "the child never came to be");
    assert_eq!(world.status(&bystander).await, RunStatus::Completed);
    other_ended(&world, &foreign).await;
    world.host.cancel(&who(), &run, None).await.unwrap();
    pass(&world).await;
    assert_eq!(world.status(&run).await, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_start_that_is_refused_answers_its_caller_and_does_not_come_again() {
    let world = world().await;
    let refused = in_time("the start", world.try_start("bad")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Internal, "trying again would not help: {refused}");
    pass(&world).await;
    assert_eq!((world.store.lost(), world.host.readiness().ready), (1, true), "nobody tried it again");
    assert_eq!((world.rows().await.len(), world.host.count_quarantined().await.unwrap()), (0, 0));
    let foreign = start_other(&world).await;
    pass(&world).await;
    other_ended(&world, &foreign).await;
    assert_eq!(world.store.generation(), 1);
}

/// Whoever sends such starts one after the other keeps nobody from working.
#[tokio::test]
async fn any_number_of_refused_starts_trouble_nobody() {
    let world = world().await;
    let foreign = start_other(&world).await;
    for _ in 0..50 {
        assert!(in_time("the start", world.try_start("bad")).await.is_err());
        assert!(world.host.readiness().ready);
    }
    pass(&world).await;
    other_ended(&world, &foreign).await;
    assert_eq!((world.store.generation(), world.store.lost()), (1, 50));
}

/// A run that is refused now and then and goes on in between is not stuck.
#[tokio::test]
async fn refusals_that_a_run_gets_over_are_not_added_up() {
    let world = world().await;
    let wait = || json!({"ms": 1000});
    let nodes: Vec<String> = (0..4).map(|node| format!("wait{node}")).collect();
    let nodes: Vec<_> = nodes.iter().map(|node| (node.as_str(), "core.delay", wait())).collect();
    world.register(Flow::chain("long", &nodes)).await;
    let run = world.start("long").await;
    let step = async |millis: u64| {
        world.clock.advance(millis);
        world.settle().await;
    };
    for lost in [2, 4, 6] {
        world.store.refuse_run(&run);
        while world.store.lost() < lost {
            step(500).await;
        }
        world.store.accept_run(&run);
        let records = world.store.records(&run, 0, 100).await.unwrap().len();
        while world.store.records(&run, 0, 100).await.unwrap().len() == records {
            step(500).await;
        }
        assert_eq!(world.host.count_quarantined().await.unwrap(), 0, "after {lost} refusals");
    }
    pass(&world).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

/// What a caller says and the database refuses is the caller's trouble: without it the run is what it was.
#[tokio::test]
async fn an_answer_that_is_refused_does_not_count_against_the_run() {
    let world = world().await;
    world.register(Flow::chain("gate", &[("gate", "core.approvalGate", json!({"title": "Go on?"}))])).await;
    let run = world.start("gate").await;
    world.store.refuse_run(&run);
    for times in 1..=5 {
        let refused = in_time("the answer", world.resolve(&run, "gate", accept())).await.unwrap_err();
        assert_ne!(refused.kind, ErrorKind::Unavailable, "it would be refused again: {refused}");
        assert_eq!(world.store.lost(), times);
        pass(&world).await;
        assert_eq!(world.host.count_quarantined().await.unwrap(), 0, "after {times} answers");
    }
    world.store.accept_run(&run);
    world.resolve(&run, "gate", accept()).await.unwrap();
    pass(&world).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

/// A disk that fails again right away is left in peace for longer and longer.
#[tokio::test]
async fn generations_that_hardly_live_are_further_and_further_apart() {
    let world = world().await;
    let fail = async || {
        world.store.fail_after(0);
        assert!(in_time("the start", world.try_start("flow")).await.is_err());
        world.store.heal();
        world.settle().await;
    };
    for (round, pause) in [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000].into_iter().enumerate() {
        let generation = world.store.generation();
        fail().await;
        if pause > 0 {
            assert_eq!((world.store.generation(), world.host.readiness().ready), (generation, false), "round {round}");
            world.clock.advance(pause - 1);
            world.settle().await;
            assert_eq!(world.store.generation(), generation, "not yet, round {round}");
            world.clock.advance(1);
            world.settle().await;
        }
        assert_eq!((world.store.generation(), world.host.readiness().ready), (generation + 1, true), "round {round}");
    }
    // One that has lived is replaced at once.
    world.clock.advance(2000);
    let generation = world.store.generation();
    fail().await;
    assert_eq!((world.store.generation(), world.host.readiness().ready), (generation + 1, true));
}

async fn watched(disk: Disk, prepare: impl FnOnce(&Watched)) -> (World, Arc<Watched>) {
    let memory = Arc::new(MemoryStore::from_disk(disk));
    let store = Arc::new(Watched::new(Arc::clone(&memory)));
    prepare(&store);
    let world = World::over(Arc::clone(&store) as _, memory, Arc::default(), options(512)).await;
    (world, store)
}

#[tokio::test]
async fn a_panic_while_starting_over_is_named_and_tried_again() {
    let (world, store) = watched(Disk::default(), |_| {}).await;
    world.register(flow("flow")).await;
    let run = world.start("flow").await;
    store.panic_in_recover(2);
    store.panic_in_unfinished(2);
    world.store.fail_after(0);
    assert!(world.try_start("flow").await.is_err());
    world.store.heal();
    world.settle().await;
    let named = |what: &str| world.host.readiness().detail.is_some_and(|detail| detail.contains(what));
    assert!(!world.host.readiness().ready);
    let mut seen = [false; 2];
    in_time("recovery", async {
        while !world.host.readiness().ready || !seen[1] {
            seen[0] |= named("starting over") || named("no space");
            seen[1] |= named("picking up runs");
            world.clock.advance(50);
            world.settle().await;
        }
    })
    .await;
    assert_eq!(seen, [true; 2]);
    pass(&world).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    let again = world.start("flow").await;
    pass(&world).await;
    assert_eq!(world.status(&again).await, RunStatus::Completed);
}

#[tokio::test]
async fn a_panic_while_runs_are_picked_up_at_a_start_is_named_and_tried_again() {
    let (before, _) = watched(Disk::default(), |_| {}).await;
    // Left in the middle of something that only a restart brings back.
    before.register(Flow::chain("pair", &[("a", "core.noop", json!({})), ("b", "core.noop", json!({}))])).await;
    before.register(flow("flow")).await;
    before.start("flow").await;
    let disk = before.stop().await;
    let (world, _) = watched(disk, |store| store.panic_in_unfinished(3)).await;
    world.settle().await;
    let readiness = world.host.readiness();
    assert!(readiness.reason.is_some_and(|reason| reason.contains("picking up runs")), "{:?}", readiness.detail);
    in_time("picking up", async {
        while !world.host.readiness().ready {
            world.clock.advance(50);
            world.settle().await;
        }
    })
    .await;
    pass(&world).await;
    assert!(world.rows().await.iter().all(|row| row.status == RunStatus::Completed));
}
