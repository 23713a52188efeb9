//! However much a run has to write, it shares no commit that is too large for the store, and nobody else notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_model::{RunId, RunStatus, code};
use baton_runtime::{BeforeStep, ErrorKind, Options, StartRun};
use baton_store::reads::*;
use baton_store::{Disk, Journal as _, RunRow};
use baton_testkit::Flow;
use serde_json::{Value, json};

use crate::common::{World, in_time, options, other, request, who};
use crate::forking::replay_from;

const KIB: usize = 1024;
/// What the store takes at once here. Real ones take 256 MiB.
const COMMIT: usize = 2048 * KIB;
const VALUE: usize = 100 * KIB;

fn bounded() -> Options {
    Options { bytes_ahead: 256 * KIB, max_step_bytes: 1024 * KIB, ..options(512) }
}

/// Each node hands on this many values.
fn wide(id: &str, first: (&str, Value), nodes: usize, values: usize) -> Flow {
    let inputs: serde_json::Map<String, Value> =
        (0..values).map(|n| (format!("x{n}"), json!({"type": "variable", "variableName": "v"}))).collect();
    let mut flow = Flow::new(id).variable("v", "string", json!("v".repeat(VALUE))).node("first", first.0, first.1);
    let mut before = "first".to_owned();
    for node in 0..nodes {
        let name = format!("n{node}");
        flow = flow.node_with(&name, "core.identity", json!({}), json!({"inputs": inputs})).edge(&before, &name);
        before = name;
    }
    flow
}

fn noop() -> (&'static str, Value) {
    ("core.noop", json!({}))
}

fn delay() -> (&'static str, Value) {
    ("core.delay", json!({"ms": 1000}))
}

async fn world(flows: impl IntoIterator<Item = Flow>) -> World {
    let world = World::open(Disk::default(), Arc::default(), bounded()).await;
    world.store.limit_commits(COMMIT);
    for flow in flows {
        world.register(flow).await;
    }
    world.host.register_workflow(&other().tenant, small().build()).await.unwrap();
    world
}

fn small() -> Flow {
    Flow::chain("small", &[("a", "core.noop", json!({}))])
}

/// No commit failed, and others are served.
async fn is_well(world: &World) {
    assert_eq!(world.store.generation(), 1, "no commit failed");
    assert!(world.host.readiness().ready);
    let request = StartRun { workflow_id: "small".to_owned(), ..StartRun::default() };
    let run = world.host.start_run(&other(), request, None).await.unwrap().run_id;
    world.settle().await;
    assert_eq!(world.host.snapshot(&other().tenant, &run).await.unwrap().status, RunStatus::Completed);
}

#[tokio::test]
async fn a_run_with_much_to_write_shares_it_out() {
    let world = world([wide("wide", noop(), 60, 1)]).await;
    let run = world.start("wide").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    let log = world.store.records(&run, 0, 1000).await.unwrap();
    let bytes: usize = log.iter().map(|record| record.body.len()).sum();
    assert!(bytes > 2 * COMMIT, "{bytes} bytes");
    is_well(&world).await;

    // Going through it again writes as much.
    let replay = world.host.fork(&who(), &run, replay_from(0), None).await.unwrap().run_id;
    assert_eq!(world.ended(&replay).await.status, RunStatus::Completed);
    assert_eq!(world.store.records(&replay, 0, 1000).await.unwrap().len(), log.len());
    is_well(&world).await;
}

#[tokio::test]
async fn a_run_waits_for_a_slow_disk_before_memory_fills_up() {
    let world = Arc::new(world([wide("wide", noop(), 60, 1)]).await);
    world.store.hold();
    let starting = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.start("wide").await }
    });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let waiting = world.store.waiting();
    assert!((1..=3).contains(&waiting), "{waiting} commits in memory");
    world.store.release();
    let run = in_time("the start", starting).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_start_whose_first_step_is_too_large_is_refused_as_often_as_it_comes() {
    let world = world([wide("vast", noop(), 1, 18)]).await;
    for _ in 0..3 {
        let refused = world.try_start("vast").await.unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE), "{refused}");
        is_well(&world).await;
    }
    assert!(world.rows().await.iter().all(|row| row.workflow.as_str() == "small"), "it left no trace");
    assert_eq!(world.host.count_quarantined().await.unwrap(), 0);
}

#[tokio::test]
async fn a_run_whose_next_step_is_too_large_is_left_alone_and_can_be_cancelled() {
    let world = world([wide("vast", delay(), 1, 18)]).await;
    let run = world.start("vast").await;
    world.clock.advance(1000);
    world.settle().await;
    let held = world.snapshot(&run).await.quarantine.expect("in quarantine");
    assert_eq!((held.cause.as_str(), &held.run_id), ("commit_refused", &run));
    assert!(held.detail.contains("bytes at once"), "{}", held.detail);
    is_well(&world).await;
    assert_eq!(world.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Cancelled);
    is_well(&world).await;
}

#[tokio::test]
async fn a_child_that_cannot_begin_fails_its_parents_node() {
    let call = json!({"workflowId": "vast", "waitForCompletion": true});
    let parent = Flow::chain("parent", &[("call", "core.subWorkflow", call)]);
    let world = world([wide("vast", noop(), 1, 18), parent]).await;
    let run: RunId = world.host.start_run(&who(), request("parent"), None).await.unwrap().run_id;
    let ended = world.ended(&run).await;
    assert_eq!(ended.status, RunStatus::Failed);
    assert_eq!(ended.error.unwrap().code, code::PAYLOAD_TOO_LARGE);
    is_well(&world).await;
}

/// What computes for long lets others have their turn, and writes what it would have written.
#[tokio::test]
async fn a_burst_ends_when_it_has_taken_long_enough() {
    let steps: Vec<(String, &str, Value)> = (0..20).map(|n| (format!("n{n}"), "core.noop", json!({}))).collect();
    let steps: Vec<(&str, &str, Value)> =
        steps.iter().map(|(name, kind, config)| (name.as_str(), *kind, config.clone())).collect();
    let mut logs = Vec::new();
    for (longest, least_turns) in [(None, 1), (Some(Duration::ZERO), 10)] {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let before_step = BeforeStep(Arc::new(move |_: &RunRow, _| {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        let options = Options { longest_burst: longest, before_step: Some(before_step), ..options(512) };
        let world = World::open(Disk::default(), Arc::default(), options).await;
        world.register(Flow::chain("long", &steps)).await;
        let run = world.start("long").await;
        world.settle().await;
        assert_eq!(world.status(&run).await, RunStatus::Completed);
        let turns = turns.load(Ordering::SeqCst);
        assert!(turns >= least_turns && (longest.is_some() || turns == 1), "{turns} turns");
        logs.push(world.store.records(&run, 0, 1000).await.unwrap());
        world.stop().await;
    }
    assert_eq!(logs[0], logs[1]);
}

/// A tenant with more on its way to the disk than it may have is told so, and changes nothing until then.
#[tokio::test]
async fn a_tenant_with_too_much_waiting_is_told_to_come_back() {
    let flow = || Flow::chain("long", &[("wait", "core.delay", json!({"ms": 3_600_000}))]);
    let world = Arc::new(World::with([flow()]).await);
    world.host.register_workflow(&other().tenant, flow().build()).await.unwrap();
    let early = world.start("long").await;
    world.store.hold();
    let mut starts = Vec::new();
    let refused = loop {
        let inputs = [("text".to_owned(), json!("x".repeat(900 * KIB)))].into_iter().collect();
        let (host, large) = (world.host.clone(), StartRun { inputs, ..request("long") });
        let start = tokio::spawn(async move { host.start_run(&who(), large, None).await });
        world.settle().await;
        if start.is_finished() {
            break start.await.unwrap().unwrap_err();
        }
        starts.push(start);
        assert!(starts.len() < 200, "nobody is refused");
    };
    assert_eq!((refused.kind, refused.code), (ErrorKind::TooMany, code::RATE_LIMITED), "{refused}");
    assert_eq!(refused.details["retryAfter"], 1);

    let command = |host: baton_runtime::Host, run: RunId| async move { host.cancel(&who(), &run, None).await };
    let cancel = tokio::spawn(command(world.host.clone(), early.clone()));
    let theirs = tokio::spawn({
        let host = world.host.clone();
        async move { host.start_run(&other(), request("long"), None).await }
    });
    world.settle().await;
    assert!(!cancel.is_finished(), "it waits for a while");
    world.clock.advance(5_000);
    world.settle().await;
    let refused = in_time("the command", cancel).await.unwrap().unwrap_err();
    assert_eq!((refused.kind, &refused.details["retryAfter"]), (ErrorKind::TooMany, &json!(1)), "{refused}");

    world.store.release();
    in_time("the other tenant's start", theirs).await.unwrap().unwrap();
    for start in starts {
        in_time("a start", start).await.unwrap().unwrap();
    }
    assert_eq!(world.status(&early).await, RunStatus::Running, "nothing came of the command");
    assert_eq!(world.host.cancel(&who(), &early, None).await.unwrap(), RunStatus::Cancelled);
}
