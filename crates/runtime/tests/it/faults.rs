//! The disk fails and comes back. What was acknowledged survives, what was not is said to have failed, and the host
//! picks up where the disk left it.

use crate::common;

use std::sync::Arc;

use baton_model::{Digest, Limits, RunStatus, code};
use baton_runtime::{ErrorKind, Idempotent, KeyLookup, Options, StartedRun};
use baton_testkit::SimClock;
use common::scenario::{self, Scenario, call, gate, parent, pipeline};
use common::{World, accept, go_on, in_time, options, request, tenant, who};

#[tokio::test]
async fn a_failed_commit_is_said_to_have_failed_and_reads_go_on() {
    let world = World::with([pipeline("pipeline"), gate("gated")]).await;
    let done = world.start("pipeline").await;
    let waiting = world.start("gated").await;
    world.settle().await;
    world.store.fail_after(0);

    assert_eq!(world.try_start("pipeline").await.unwrap_err().kind, ErrorKind::Unavailable);
    assert!(!world.host.readiness().ready && world.host.readiness().reason.is_some());
    // Whatever needs the disk is refused from now on, by the word and without waiting.
    assert_eq!(world.try_start("pipeline").await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(world.resolve(&waiting, "gate", accept()).await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(world.host.cancel(&who(), &waiting, None).await.unwrap_err().kind, ErrorKind::Unavailable);
    let registered = world.host.register_workflow(&tenant(), pipeline("another").build()).await;
    assert_eq!(registered.unwrap_err().kind, ErrorKind::Unavailable);
    // What is on disk can be read.
    assert_eq!(world.status(&done).await, RunStatus::Completed);
    assert_eq!(world.status(&waiting).await, RunStatus::WaitingApproval);
    assert_eq!(world.open_interrupts().await.len(), 1);
    assert!(world.host.events(&tenant(), &done, None, 100).await.unwrap().is_final(None));

    // Time alone does not mend it.
    world.clock.advance(10_000);
    world.settle().await;
    assert!(!world.host.readiness().ready);

    world.store.heal();
    world.recovered().await;
    assert_eq!(world.rows().await.len(), 2, "what was refused left no trace");
    world.resolve(&waiting, "gate", accept()).await.unwrap();
    assert_eq!(world.ended(&waiting).await.status, RunStatus::Completed);
    let again = world.start("pipeline").await;
    assert_eq!(world.ended(&again).await.status, RunStatus::Completed);
    world.audit("after the trouble").await;
}

#[tokio::test]
async fn a_failed_answer_leaves_the_question_open() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    world.store.fail_after(0);
    assert_eq!(world.resolve(&run, "gate", accept()).await.unwrap_err().kind, ErrorKind::Unavailable);
    world.store.heal();
    world.recovered().await;
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    world.resolve(&run, "gate", accept()).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    world.audit("answered twice, counted once").await;
}

fn idempotent(key: &str) -> (Digest, Digest, Idempotent<StartedRun>) {
    let (key, asked) = (Digest::of_bytes(key), Digest::of_bytes("the request"));
    let render = Box::new(|started: &StartedRun| (201, started.run_id.to_string()));
    (key.clone(), asked.clone(), Idempotent { key, request: asked, render })
}

#[tokio::test]
async fn a_retry_of_a_failed_start_makes_one_run() {
    let world = World::with([parent("parent", call("pipeline")), pipeline("pipeline")]).await;
    world.store.fail_after(0);
    let (key, asked, first) = idempotent("k");
    let failed = world.host.start_run(&who(), request("parent"), Some(first)).await;
    assert_eq!(failed.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(world.host.recall(&who().tenant, &key, &asked).await.unwrap(), KeyLookup::New);

    world.store.heal();
    world.recovered().await;
    let (_, _, second) = idempotent("k");
    let started = world.host.start_run(&who(), request("parent"), Some(second)).await.unwrap();
    let stored = KeyLookup::Replay { status: 201, body: started.run_id.to_string() };
    assert_eq!(world.host.recall(&who().tenant, &key, &asked).await.unwrap(), stored);
    world.drive(5).await;
    let roots: Vec<_> = world.rows().await.into_iter().filter(|row| row.parent.is_none()).collect();
    assert_eq!(roots.len(), 1);
    assert_eq!(roots[0].id, started.run_id);
}

/// A host that had acknowledged many runs when the disk failed under it.
#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    for failing_after in [0, 1, 3, 10, 40] {
        let world = World::with([parent("parent", call("pipeline")), pipeline("pipeline"), gate("gated")]).await;
        world.store.fail_after(failing_after);
        let mut acknowledged = Vec::new();
        for i in 0..60 {
            let workflow = if i % 2 == 0 { "parent" } else { "gated" };
            match world.try_start(workflow).await {
                Ok(started) => acknowledged.push(started.run_id),
                Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable),
            }
        }
        assert!(acknowledged.len() < 60, "the disk failed");
        world.store.heal();
        world.recovered().await;
        for run in &acknowledged {
            assert!(world.rows().await.iter().any(|row| row.id == *run), "{run} was acknowledged and lost");
        }
        if !world.rows().await.is_empty() {
            world.drive(5).await;
        }
        for run in &acknowledged {
            assert_eq!(world.status(run).await, RunStatus::Completed);
        }
        world.audit(&format!("failed after {failing_after}")).await;
    }
}

/// Every commit of every scenario fails once; the host heals itself and the run comes to the same end.
#[tokio::test]
async fn a_failure_at_every_commit_changes_nothing_in_the_end() {
    for scenario in scenario::all() {
        let Scenario { name, flows, .. } = &scenario;
        let workflow = flows[0].clone().build()["id"].as_str().unwrap().to_owned();
        let disk = World::with(flows.clone()).await.stop().await;
        let steady = World::open(disk.clone(), Arc::default(), options(1)).await;
        steady.start(&workflow).await;
        steady.drive(0).await;
        let (expected, commits) = (steady.views().await, steady.store.commits());
        steady.stop().await;

        for failing_after in 0..commits {
            let context = format!("{name}, commit {failing_after} failed, seed {}", common::seed());
            let world = World::open(disk.clone(), Arc::new(SimClock::default()), options(1)).await;
            world.store.fail_after(failing_after);
            in_time(&context, through_trouble(&world, &workflow)).await;
            // A start that was not acknowledged made no run, so names differ from the steady life's only then.
            if failing_after > 0 {
                world.audit_ended(&context, &expected).await;
            } else {
                world.audit(&context).await;
                assert_eq!(world.rows().await.len(), expected.len(), "{context}");
            }
            world.stop().await;
        }
    }
}

/// Children that were lost with a failed commit are made again; they must not count twice against the tree's bound.
#[tokio::test]
async fn the_bound_of_a_tree_counts_what_is_there() {
    let Scenario { flows, ends, .. } = scenario::all().into_iter().find(|s| s.name == "a loop over a child").unwrap();
    let workflow = flows[0].clone().build()["id"].as_str().unwrap().to_owned();
    let disk = World::with(flows).await.stop().await;
    let bounded = |most: usize| {
        let limits = Limits { max_children_per_tree: most as u64, ..Limits::default() };
        Options { limits, ..options(1) }
    };
    let just_enough = ends.1 - 1;
    let world = World::open(disk.clone(), Arc::default(), bounded(just_enough - 1)).await;
    let run = world.start(&workflow).await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, code::NESTING_LIMIT_EXCEEDED);
    assert_eq!(world.rows().await.len(), just_enough);
    for failing_after in 1..30 {
        let world = World::open(disk.clone(), Arc::default(), bounded(just_enough)).await;
        world.store.fail_after(failing_after);
        in_time("the loop", through_trouble(&world, &workflow)).await;
        let rows = world.rows().await;
        assert_eq!((rows[0].status, rows.len()), ends, "failed after {failing_after}");
    }
}

/// Drives a run whose disk fails once, answering again what was not acknowledged.
async fn through_trouble(world: &World, workflow: &str) {
    let mut started = world.try_start(workflow).await.is_ok();
    let mut healed = false;
    loop {
        world.settle().await;
        if !healed && !world.host.readiness().ready {
            world.store.heal();
            world.recovered().await;
            healed = true;
        }
        if !started {
            started = world.try_start(workflow).await.is_ok();
            continue;
        }
        if world.rows().await.iter().all(|row| row.status.is_terminal()) {
            return;
        }
        match world.open_interrupts().await.first() {
            Some(open) => drop(world.resolve(&open.run, open.node.as_str(), go_on(open)).await),
            // Small steps: what failed is tried again after a while.
            None => world.clock.advance(500),
        }
    }
}

/// The disk fails and heals again and again under a busy host.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flapping_disk_loses_nothing_acknowledged_and_hangs_nobody() {
    let world = Arc::new(World::with([parent("parent", call("gated")), gate("gated")]).await);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(busy_caller(Arc::clone(&world), stopped.clone()))).collect();
    world.flap(60).await;
    stop.send_replace(true);
    let mut acknowledged = Vec::new();
    for caller in callers {
        acknowledged.extend(in_time("a caller", caller).await.unwrap());
    }
    assert!(!acknowledged.is_empty());
    in_time("the rest", async {
        while world.rows().await.iter().any(|row| !row.status.is_terminal()) {
            for open in world.open_interrupts().await {
                drop(world.resolve(&open.run, open.node.as_str(), go_on(&open)).await);
            }
            world.clock.advance(100);
            tokio::task::yield_now().await;
        }
    })
    .await;
    for run in &acknowledged {
        assert_eq!(world.status(run).await, RunStatus::Completed, "{run} was acknowledged");
    }
    world.audit("a flapping disk").await;
    assert!(world.open_interrupts().await.is_empty());
}

/// Starts and answers until told to stop. Returns the runs whose start was acknowledged.
async fn busy_caller(world: Arc<World>, stopped: tokio::sync::watch::Receiver<bool>) -> Vec<baton_model::RunId> {
    let mut acknowledged = Vec::new();
    while !*stopped.borrow() {
        match world.try_start(if acknowledged.len() % 2 == 0 { "parent" } else { "gated" }).await {
            Ok(started) => acknowledged.push(started.run_id),
            Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable, "{error}"),
        }
        if let Some(open) = world.open_interrupts().await.first() {
            match world.resolve(&open.run, open.node.as_str(), accept()).await {
                Ok(_) => {}
                Err(error) => assert!([ErrorKind::Unavailable, ErrorKind::Conflict].contains(&error.kind), "{error}"),
            }
        }
        tokio::task::yield_now().await;
    }
    acknowledged
}
