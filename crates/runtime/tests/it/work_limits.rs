//! What one tenant may use at once of what all share: calls of a model provider, and the evaluation of expressions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_conformance::Conformance;
use baton_model::{Anchor, RunStatus};
use baton_runtime::{ErrorKind, Models, NewAnnotation, Options, StartRun, StepThreads, WorkLimits};
use baton_store::Disk;
use baton_testkit::{Flow, SimClock};
use serde_json::json;

use crate::common::versioned_stores::new_memory;
use crate::common::{World, in_time, options, other, request, who};
use crate::scripted::Scripted;

const ASKS: &str = "conformance-asks";

fn asks() -> Flow {
    let config = json!({"provider": "mock", "model": "m", "outputSchema": {"type": "object"}});
    let inputs = json!({"prompt": {"type": "static", "value": "Is it?"}});
    Flow::new(ASKS).node_with("ask", "core.ai.structuredOutput", config, json!({"inputs": inputs}))
}

async fn world(provider: &Arc<Scripted>, model_calls: usize) -> World {
    let models = Models::default().with("mock", Arc::clone(provider) as _);
    let work_limits = WorkLimits { model_calls, ..WorkLimits::default() };
    let options = Options { test_hooks: Conformance::hooks(), models, work_limits, ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.host.register_workflow(&other().tenant, asks().build()).await.unwrap();
    world.register(asks()).await;
    world
}

/// Whose calls are open, by the runs that made them.
fn open_of(provider: &Scripted, runs: &[baton_model::RunId]) -> usize {
    provider.keys().iter().filter(|key| runs.iter().any(|run| key.starts_with(&format!("{run}/")))).count()
}

#[tokio::test]
async fn a_tenant_with_a_thousand_calls_leaves_room_for_another_ones() {
    let provider = Scripted::slow();
    let world = world(&provider, 8).await;
    let mut theirs = Vec::new();
    for _ in 0..1000 {
        theirs.push(world.start(ASKS).await);
    }
    in_time("the first calls", provider.called(4)).await;
    world.settle().await;
    assert_eq!(open_of(&provider, &theirs), 4, "as many as are left free");

    let mine = world.host.start_run(&other(), request(ASKS), None).await.unwrap().run_id;
    in_time("a call of the other tenant", provider.called(5)).await;
    assert_eq!(open_of(&provider, std::slice::from_ref(&mine)), 1, "it is asked at once");

    // Whoever gives up leaves its place, waiting or not.
    for run in &theirs[..500] {
        world.host.cancel(&who(), run, None).await.unwrap();
    }
    provider.let_answer(true);
    for run in &theirs[500..] {
        assert_eq!(world.ended(run).await.status, RunStatus::Completed);
    }
    assert_eq!(world.host.snapshot(&other().tenant, &mine).await.unwrap().status, RunStatus::Completed);
}

/// A loop of expressions by a tenant far above its share waits between its turns, and comes to the same end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_evaluates_too_much_comes_to_its_end_later_and_nobody_else_waits() {
    let unit_hungry = || {
        let expression = "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, a * b))";
        let nodes: Vec<String> = (0..20).map(|number| format!("set-{number}")).collect();
        let config = || json!({"name": "x", "expression": expression});
        let chain: Vec<_> = nodes.iter().map(|node| (node.as_str(), "core.setVariable", config())).collect();
        Flow::chain("hungry", &chain)
    };
    // A thousandth of a core: what the run evaluates is many times that.
    let work_limits = WorkLimits { evaluation_units: Some(5_000), ..WorkLimits::default() };
    let options = Options { work_limits, step_threads: Some(StepThreads::with(2).unwrap()), ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(unit_hungry()).await;
    let small = Flow::chain("small", &[("a", "core.noop", json!({}))]);
    world.host.register_workflow(&other().tenant, small.build()).await.unwrap();

    let began = Instant::now();
    let hungry = world.start("hungry").await;
    let again = world.start("hungry").await;
    for _ in 0..20 {
        let run = world.host.start_run(&other(), request("small"), None).await.unwrap().run_id;
        in_time("another tenant's run", async {
            while world.host.snapshot(&other().tenant, &run).await.unwrap().status != RunStatus::Completed {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
    assert_eq!(world.ended(&hungry).await.status, RunStatus::Completed);
    assert_eq!(world.ended(&again).await.status, RunStatus::Completed);
    // No machine is so fast that this is less, and one that is slow only takes longer.
    assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
}

/// Everything that a tenant writes counts, also after a restart; nobody else is refused, and pruning helps.
#[tokio::test]
async fn a_tenant_that_has_stored_too_much_begins_nothing_until_it_prunes() {
    let limited = || {
        let work_limits = WorkLimits { stored_bytes: Some(400_000), ..WorkLimits::default() };
        Options { work_limits, ..options(512) }
    };
    let clock = Arc::<SimClock>::default();
    let world = World::open(Disk::default(), Arc::clone(&clock), limited()).await;
    let small = || Flow::chain("small", &[("a", "core.noop", json!({}))]);
    world.host.register_workflow(&other().tenant, small().build()).await.unwrap();
    world.register(small()).await;
    let large = || StartRun {
        inputs: [("text".to_owned(), json!("x".repeat(50_000)))].into_iter().collect(),
        ..request("small")
    };
    let mut runs = Vec::new();
    let refused = loop {
        match world.host.start_run(&who(), large(), None).await {
            Ok(started) => runs.push(started.run_id),
            Err(error) => break error,
        }
        world.settle().await;
        assert!(runs.len() < 50, "never refused");
    };
    assert_eq!((refused.kind, &refused.details["quota"]), (ErrorKind::TooMany, &json!("storedBytes")));
    assert!(runs.len() > 2, "{} runs of 50 kB", runs.len());
    let note = new_memory("a note");
    assert_eq!(world.host.put_memory(&who().tenant, "s", note, None).await.unwrap_err().kind, ErrorKind::TooMany);
    world.host.start_run(&other(), request("small"), None).await.unwrap();

    // A new process does not know what was written, and counts it.
    let world = World::open(world.stop().await, Arc::clone(&clock), limited()).await;
    let counted = async {
        while world.host.start_run(&who(), request("small"), None).await.is_ok() {
            world.settle().await;
        }
    };
    in_time("the count", counted).await;

    for run in &runs {
        world.host.prune(&who().tenant, run, true).await.unwrap();
    }
    clock.advance(60_000);
    let again = async {
        while world.host.start_run(&who(), request("small"), None).await.is_err() {
            world.settle().await;
        }
    };
    in_time("room", again).await;
}

/// What is in no log counts as well, wherever it is stored, and whoever has too much stores nothing anywhere.
#[tokio::test]
async fn definitions_memory_and_remarks_count_and_are_refused_like_starts() {
    let work_limits = WorkLimits { stored_bytes: Some(400_000), ..WorkLimits::default() };
    let clock = Arc::<SimClock>::default();
    let world = World::open(Disk::default(), Arc::clone(&clock), Options { work_limits, ..options(512) }).await;
    let large = |number: usize| {
        let text = json!("x".repeat(50_000));
        Flow::chain(&format!("large{number}"), &[("a", "core.noop", json!({}))]).variable("v", "string", text)
    };
    let register = async |number| world.host.register_workflow(&who().tenant, large(number).build()).await;
    register(0).await.unwrap();
    let run = world.start("large0").await;
    let mut number = 0;
    let refused = loop {
        number += 1;
        match register(number).await {
            Ok(_) => world.settle().await,
            Err(error) => break error,
        }
        assert!(number < 50, "never refused");
    };
    assert_eq!((refused.kind, &refused.details["quota"]), (ErrorKind::TooMany, &json!("storedBytes")));
    assert!(number > 4, "{number} definitions of 50 kB");
    assert!(!register(0).await.unwrap().created, "what is there already takes nothing more");

    let remark = || {
        let signal = serde_json::from_value(json!({"kind": "flag", "label": "odd"})).unwrap();
        NewAnnotation { anchor: Anchor::default(), signal, note: None }
    };
    // A count of the logs does not forget what is beside them.
    for _ in 0..2 {
        assert_eq!(world.host.annotate(&who(), &run, remark(), None).await.unwrap_err().kind, ErrorKind::TooMany);
        assert_eq!(world.host.import(&who()).err().unwrap().kind, ErrorKind::TooMany);
        assert_eq!(world.try_start("large0").await.unwrap_err().kind, ErrorKind::TooMany);
        assert_eq!(register(number).await.unwrap_err().kind, ErrorKind::TooMany);
        clock.advance(60_000);
        world.settle().await;
    }
    world.host.register_workflow(&other().tenant, large(0).build()).await.unwrap();
}
