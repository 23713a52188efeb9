//! Asking models from the shell: not before what the call follows from is on disk, not twice for one answer, and not
//! for a run that does not want it any more.

use crate::common;
use crate::scripted;
use baton_conformance::Conformance;

use std::sync::Arc;

use baton_model::{Event, NodeId, RunId, RunStatus};
use baton_provider::ProviderFault;
use baton_runtime::{Models, Options};
use baton_store::reads::*;
use baton_store::{Disk, MemoryStore};
use baton_testkit::{Flow, SimClock};
use common::{World, in_time, options, tenant, who};
use scripted::Scripted;
use serde_json::{Value, json};

const FLOW: &str = "conformance-asks";

fn with(provider: &Arc<Scripted>, records_ahead: usize) -> Options {
    let models = Models::default().with("mock", Arc::clone(provider) as _);
    Options { test_hooks: Conformance::hooks(), models, ..options(records_ahead) }
}

/// A step, a call and another step.
fn flow(settings: Value) -> Flow {
    let schema = json!({"type": "object", "required": ["valid"]});
    let config = json!({"provider": "mock", "model": "m", "outputSchema": schema});
    let inputs = json!({"prompt": {"type": "static", "value": "Is it?"}});
    Flow::new(FLOW)
        .node("before", "core.noop", json!({}))
        .node_with("ask", "core.ai.structuredOutput", config, json!({"inputs": inputs, "settings": settings}))
        .node("after", "core.noop", json!({}))
        .edge("before", "ask")
        .edge("ask", "after")
}

async fn world(provider: &Arc<Scripted>, settings: Value) -> World {
    let world = World::open(Disk::default(), Arc::default(), with(provider, 512)).await;
    world.register(flow(settings)).await;
    world
}

/// How many records of a type are on disk.
async fn recorded(store: &MemoryStore, run: &RunId, kind: &str) -> usize {
    let records = store.records(run, 0, 1000).await.unwrap();
    records.iter().filter(|stored| stored.decode(run).unwrap().event.type_name() == kind).count()
}

async fn usages(world: &World, run: &RunId) -> usize {
    recorded(&world.store, run, "provider.usage").await
}

/// The call is on the log and was not answered there.
async fn asked_on(disk: &Disk, run: &RunId) -> (bool, bool) {
    let store = MemoryStore::from_disk(disk.clone());
    let records = store.records(run, 0, 1000).await.unwrap();
    let has = |wanted: &dyn Fn(&Event) -> bool| records.iter().any(|stored| wanted(&stored.decode(run).unwrap().event));
    let asked = has(&|event| matches!(event, Event::NodeStarted(started) if started.node_id == NodeId::new("ask")));
    (asked, has(&|event| matches!(event, Event::ProviderUsage(_))))
}

#[tokio::test]
async fn an_answer_comes_back_as_a_record() {
    let provider = Scripted::prompt();
    let world = world(&provider, json!({})).await;
    let run = world.start(FLOW).await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(provider.keys(), [format!("{run}/ask/1/0/0")]);
    assert_eq!(usages(&world, &run).await, 1);
}

#[tokio::test]
async fn nobody_is_asked_before_the_question_is_on_disk() {
    let provider = Scripted::prompt();
    let world = world(&provider, json!({})).await;
    world.store.hold();
    let start = tokio::spawn({
        let host = world.host.clone();
        async move { host.start_run(&who(), common::request(FLOW), None).await.unwrap().run_id }
    });
    world.settle().await;
    assert!(provider.keys().is_empty(), "asked on behalf of what may still be lost");
    world.store.release();
    let run = in_time("the start", start).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(provider.keys().len(), 1);
}

/// Dies after every commit in turn.
async fn crash_everywhere(records_ahead: usize) {
    let (mut unanswered, mut answered) = (0, 0);
    for commits in 0..50 {
        let provider = Scripted::prompt();
        let clock = Arc::new(SimClock::default());
        let disk = {
            let prepared = World::open(Disk::default(), Arc::clone(&clock), with(&provider, records_ahead)).await;
            prepared.register(flow(json!({}))).await;
            prepared.stop().await
        };
        let life = World::open(disk, Arc::clone(&clock), with(&provider, records_ahead)).await;
        life.settle().await;
        life.store.crash_after(commits);
        let lived = tokio::select! {
            run = async { life.ended(&life.try_start(FLOW).await.unwrap().run_id).await } => Some(run),
            () = life.store.crashed() => None,
        };
        let disk = life.stop().await;
        if lived.is_some() {
            assert!(unanswered > 0 && answered > 0, "{records_ahead} ahead: no crash around the call");
            return;
        }
        let before = provider.keys();
        let next = World::open(disk.clone(), clock, with(&provider, records_ahead)).await;
        next.settle().await;
        let rows = next.rows().await;
        let Some(row) = rows.first() else {
            assert!(before.is_empty(), "asked for a run that never was");
            continue;
        };
        let context = format!("{records_ahead} ahead, crashed after {commits}");
        assert_eq!(in_time(&context, next.ended(&row.id)).await.status, RunStatus::Completed, "{context}");
        let again = provider.keys().len() - before.len();
        match asked_on(&disk, &row.id).await {
            (false, _) => assert_eq!((before.len(), again), (0, 1), "{context}: not asked before it is on disk"),
            (true, false) => {
                unanswered += 1;
                assert_eq!(again, 1, "{context}: no answer is on the log, so it is asked for again");
            }
            (true, true) => {
                answered += 1;
                assert_eq!(again, 0, "{context}: an answer on the log is not asked for again");
            }
        }
        assert!(
            provider.keys().iter().all(|key| *key == format!("{}/ask/1/0/0", row.id)),
            "{context}: one call, one key"
        );
        assert_eq!(usages(&next, &row.id).await, 1, "{context}: counted once");
        next.stop().await;
    }
    panic!("{records_ahead} ahead: never ends");
}

#[tokio::test]
async fn a_crash_at_any_commit_asks_again_only_if_no_answer_was_recorded() {
    crash_everywhere(1).await;
    crash_everywhere(3).await;
}

#[tokio::test]
async fn a_call_in_flight_when_the_host_stops_is_made_again_under_the_same_name() {
    let provider = Scripted::slow();
    let first = world(&provider, json!({})).await;
    let run = first.start(FLOW).await;
    in_time("the call", provider.called(1)).await;
    let clock = Arc::clone(&first.clock);
    let disk = first.stop().await;
    assert_eq!(provider.abandoned(), 1, "a host that stops waits for no model");
    let next = World::open(disk, clock, with(&provider, 512)).await;
    in_time("the call again", provider.called(2)).await;
    provider.let_answer(true);
    assert_eq!(next.ended(&run).await.status, RunStatus::Completed);
    let keys = provider.keys();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(usages(&next, &run).await, 1);
}

#[tokio::test]
async fn cancelling_a_run_hangs_up() {
    let provider = Scripted::slow();
    let world = world(&provider, json!({})).await;
    let run = world.start(FLOW).await;
    in_time("the call", provider.called(1)).await;
    world.host.cancel(&who(), &run, None).await.unwrap();
    world.settle().await;
    assert_eq!(provider.abandoned(), 1);
    provider.let_answer(true);
    world.settle().await;
    assert_eq!((world.status(&run).await, usages(&world, &run).await), (RunStatus::Cancelled, 0));
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_hung_up_on_and_the_next_one_asks_under_the_same_name() {
    let provider = Scripted::slow();
    let world = world(&provider, json!({"timeout": 500, "maxRetries": 1, "retryDelayMs": 10})).await;
    let run = world.start(FLOW).await;
    in_time("the call", provider.called(1)).await;
    world.clock.advance(501);
    world.settle().await;
    assert_eq!(provider.abandoned(), 1);
    provider.let_answer(true);
    world.clock.advance(1001);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(provider.keys(), [format!("{run}/ask/1/0/0"), format!("{run}/ask/1/0/0")]);
    assert_eq!(usages(&world, &run).await, 1);
}

#[tokio::test]
async fn a_provider_in_trouble_is_tried_again_and_told_apart() {
    let provider = Scripted::prompt();
    provider.first(Err(ProviderFault::Unavailable("down".to_owned())));
    let first = world(&provider, json!({"maxRetries": 1, "retryDelayMs": 10})).await;
    let run = first.start(FLOW).await;
    first.drive(0).await;
    assert_eq!(first.status(&run).await, RunStatus::Completed);
    assert_eq!((provider.keys().len(), usages(&first, &run).await), (2, 1), "no answer, no usage");

    let provider = Scripted::prompt();
    provider.first(Err(ProviderFault::Exhausted));
    let other = world(&provider, json!({})).await;
    let run = other.start(FLOW).await;
    let ended = other.ended(&run).await;
    assert_eq!(ended.error.unwrap().code, "provider_quota_exhausted");
}

#[tokio::test]
async fn a_run_that_leaves_memory_and_comes_back_finds_its_call() {
    let provider = Scripted::slow();
    let world = world(&provider, json!({})).await;
    let run = world.start(FLOW).await;
    in_time("the call", provider.called(1)).await;
    for round in 0..3 {
        world.settle().await;
        let variables = json!({"round": round}).as_object().unwrap().clone();
        world.host.set_variables(&tenant(), &run, variables).await.unwrap();
    }
    assert_eq!(provider.keys().len(), 1, "asked again on behalf of a call that is under way");
    provider.let_answer(true);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(provider.keys().len(), 1);
}

#[tokio::test]
async fn an_answer_outlives_a_disk_in_trouble() {
    let provider = Scripted::slow();
    let world = world(&provider, json!({})).await;
    let run = world.start(FLOW).await;
    in_time("the call", provider.called(1)).await;
    world.settle().await;
    world.store.fail_after(0);
    provider.let_answer(true);
    in_time("trouble", async {
        while world.host.readiness().ready {
            world.settle().await;
        }
    })
    .await;
    assert_eq!(usages(&world, &run).await, 0);
    world.store.heal();
    world.recovered().await;
    world.clock.advance(2000);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!((provider.keys().len(), usages(&world, &run).await), (1, 1), "paid for once, counted once");
}

#[tokio::test]
async fn a_question_lost_with_its_commit_is_asked_when_it_is_on_disk() {
    let provider = Scripted::prompt();
    let world = world(&provider, json!({})).await;
    let run = world.start(FLOW).await;
    world.ended(&run).await;
    // A gate before the call: the answer to it, and the question that follows, are lost.
    let gated = flow(json!({})).node("gate", "core.approvalGate", json!({})).edge("gate", "before");
    world.register(gated).await;
    let run = world.start(FLOW).await;
    world.waiting(&run).await;
    let before = provider.keys().len();
    world.store.fail_after(0);
    world.resolve(&run, "gate", common::accept()).await.unwrap_err();
    world.settle().await;
    assert_eq!(provider.keys().len(), before, "asked on behalf of what was lost");
    world.store.heal();
    world.recovered().await;
    world.resolve(&run, "gate", common::accept()).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(provider.keys().len(), before + 1);
}

#[tokio::test]
async fn an_immediately_paused_run_keeps_the_answer_for_later() {
    let provider = Scripted::slow();
    let world = world(&provider, json!({})).await;
    let run = world.start(FLOW).await;
    in_time("the call", provider.called(1)).await;
    let pause = baton_runtime::PauseRun { reason: None, drain: baton_model::event::DrainPolicy::Immediate };
    world.host.pause(&who(), &run, pause).await.unwrap();
    provider.let_answer(true);
    world.settle().await;
    assert_eq!((world.status(&run).await, usages(&world, &run).await), (RunStatus::Paused, 1));
    world.host.resume(&who(), &run, None).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(provider.keys().len(), 1);
}
