//! Run ahead, reveal behind: on a slow disk nothing is shown before it is durable, and a caller that goes away takes
//! nothing with it. And what waits for long waits on disk, not in memory.

use crate::common;

use std::future::ready;
use std::sync::Arc;

use baton_model::{RunStatus, code};
use baton_runtime::{Error, ErrorKind, StartRun};
use baton_testkit::Flow;
use common::scenario::{call, gate, noop, parent};
use common::{World, accept, in_time, options, tenant, who};
use serde_json::json;

/// Polls once: what is not ready then waits for the disk.
async fn now_or_never<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = ready(()) => None,
    }
}

#[tokio::test]
async fn nothing_is_shown_before_it_is_durable() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    let length = world.waiting(&run).await.at_seq + 1;
    let mut log = world.host.subscribe(&run);
    world.store.hold();
    let mut answer = std::pin::pin!(world.resolve(&run, "gate", accept()));
    assert!(now_or_never(answer.as_mut()).await.is_none(), "acknowledged before the commit");
    world.settle().await;
    let page = world.host.events(&tenant(), &run, None, 100).await.unwrap();
    assert_eq!((page.next_seq, page.status), (length, RunStatus::WaitingApproval));
    assert_eq!(world.open_interrupts().await.len(), 1);
    assert!(now_or_never(log.changed()).await.is_none(), "told before the commit");
    assert!(now_or_never(world.snapshot(&run)).await.is_none(), "a view of what may still be lost");
    // A second answer is judged by the first, so the refusal waits for it, too.
    let mut second = std::pin::pin!(world.resolve(&run, "gate", accept()));
    assert!(now_or_never(second.as_mut()).await.is_none(), "refused because of what may still be lost");

    world.store.release();
    in_time("the answer", answer).await.unwrap();
    in_time("the news", log.changed()).await;
    assert_eq!(in_time("the refusal", second).await.unwrap_err().code, code::INTERRUPT_ALREADY_RESOLVED);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn what_the_disk_did_not_take_never_happened() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    world.waiting(&run).await;
    world.store.hold();
    let mut first = std::pin::pin!(world.resolve(&run, "gate", accept()));
    let mut second = std::pin::pin!(world.resolve(&run, "gate", accept()));
    let mut view = std::pin::pin!(world.snapshot(&run));
    assert!(now_or_never(first.as_mut()).await.is_none());
    assert!(now_or_never(second.as_mut()).await.is_none());
    assert!(now_or_never(view.as_mut()).await.is_none());
    world.store.fail_after(0);
    world.store.release();
    for outcome in [in_time("first", first).await, in_time("second", second).await] {
        assert_eq!(outcome.map_err(|error: Error| error.kind).unwrap_err(), ErrorKind::Unavailable);
    }
    assert_eq!(in_time("the view", view).await.status, RunStatus::WaitingApproval);
}

#[tokio::test]
async fn a_start_is_acknowledged_when_it_is_durable() {
    let world = World::with([gate("gated")]).await;
    world.store.hold();
    let mut start = std::pin::pin!(world.try_start("gated"));
    assert!(now_or_never(start.as_mut()).await.is_none());
    world.settle().await;
    assert!(world.rows().await.is_empty());
    world.store.release();
    let started = in_time("the start", start).await.unwrap();
    assert_eq!(world.status(&started.run_id).await, RunStatus::WaitingApproval);
}

/// A gate, then more steps than one run takes in one go.
fn long(id: &str) -> Flow {
    Flow::new(id)
        .node("gate", "core.approvalGate", json!({}))
        .node("loop", "core.loop", json!({"count": 900}))
        .node("body", "core.noop", noop())
        .edge("gate", "loop")
        .edge_with("loop", "body", json!({"sourceOutput": "body"}))
        .edge("body", "loop")
}

#[tokio::test]
async fn a_caller_that_hangs_up_takes_nothing_along() {
    let world = World::with([parent("parent", call("long")), long("long")]).await;
    let run = world.start("parent").await;
    let child = world.waiting(&run).await.child_runs[0].run_id.clone();
    world.store.hold();
    let dropped = now_or_never(world.resolve(&child, "gate", accept())).await;
    assert!(dropped.is_none());
    world.store.release();
    assert_eq!(world.ended(&child).await.status, RunStatus::Completed);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);

    world.store.hold();
    assert!(now_or_never(world.try_start("parent")).await.is_none());
    world.store.release();
    world.drive(0).await;
    assert_eq!(world.rows().await.len(), 4);
    world.audit("callers that hung up").await;
}

/// The caller is gone before the new version is durable; the next start must use it all the same.
#[tokio::test]
async fn a_registration_is_finished_without_its_caller() {
    let says = |x: u32| Flow::chain("flow", &[("set", "core.setVariable", json!({"name": "x", "value": x}))]);
    let world = World::with([says(1)]).await;
    world.start("flow").await;
    world.store.hold();
    let tenant = tenant();
    let mut registration = Box::pin(world.host.register_workflow(&tenant, says(2).build()));
    assert!(now_or_never(registration.as_mut()).await.is_none());
    world.settle().await;
    drop(registration);
    world.store.release();
    world.settle().await;
    let run = world.start("flow").await;
    assert_eq!(world.snapshot(&run).await.variables["x"], 2);
}

/// The first caller is gone before its run is durable; the second must still see that the scope is taken.
#[tokio::test]
async fn an_exclusive_start_holds_its_scope_without_its_caller() {
    let world = World::with([gate("gated")]).await;
    let request = || StartRun { scope_id: Some("s".to_owned()), exclusive: true, ..common::request("gated") };
    let who = who();
    world.store.hold();
    let mut first = Box::pin(world.host.start_run(&who, request(), None));
    let mut second = std::pin::pin!(world.host.start_run(&who, request(), None));
    assert!(now_or_never(first.as_mut()).await.is_none());
    world.settle().await;
    drop(first);
    assert!(now_or_never(second.as_mut()).await.is_none());
    world.settle().await;
    world.store.release();
    assert_eq!(in_time("the second start", second).await.unwrap_err().code, code::RUN_ALREADY_ACTIVE);
    assert_eq!(world.rows().await.len(), 1);
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn a_delay_of_days_fires_on_time() {
    let slow =
        Flow::chain("slow", &[("wait", "core.delay", json!({"ms": 3 * DAY_MS})), ("after", "core.noop", noop())]);
    let world = World::with([parent("parent", call("slow")), slow]).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(world.start("parent").await);
    }
    for _ in 0..3 {
        world.settle().await;
        world.clock.advance(DAY_MS - 1);
    }
    world.settle().await;
    for run in &runs {
        assert_eq!(world.status(run).await, RunStatus::Running);
    }
    world.clock.advance(3);
    for run in &runs {
        assert_eq!(world.ended(run).await.status, RunStatus::Completed);
    }
    world.audit("after three days").await;
}

#[tokio::test]
async fn a_delay_outlives_the_process_and_fires_even_if_it_came_due_meanwhile() {
    let slow = Flow::chain("slow", &[("wait", "core.delay", json!({"ms": DAY_MS}))]);
    for away in [1, DAY_MS - 1, DAY_MS, 10 * DAY_MS] {
        let world = World::with([slow.clone()]).await;
        let run = world.start("slow").await;
        let clock = Arc::clone(&world.clock);
        let disk = world.stop().await;
        clock.advance(away);
        let world = World::open(disk, clock, options(512)).await;
        world.settle().await;
        if away < DAY_MS {
            assert_eq!(world.status(&run).await, RunStatus::Running, "{away}");
            world.clock.advance(DAY_MS - away);
        }
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "{away}");
    }
}
