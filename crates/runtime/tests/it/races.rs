//! Many things at once, on several threads. Whoever wins, the log stays sound, the losers are told, nothing hangs.

use crate::common;

use std::sync::Arc;

use baton_model::event::DrainPolicy;
use baton_model::{RunId, RunStatus, code};
use baton_runtime::{Error, PauseRun};
use baton_testkit::Flow;
use common::racing::{on_every_store, spawn};
use common::scenario::{call, gate, noop, parent};
use common::{World, accept, in_time, tenant, who};
use serde_json::json;

fn refused_answer(error: &Error) -> bool {
    [code::INTERRUPT_CANCELLED, code::INTERRUPT_ALREADY_RESOLVED, code::INTERRUPT_NOT_FOUND].contains(&error.code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_and_a_cancellation_have_one_winner() {
    on_every_store([gate("gated")], async |world: Arc<World>| {
        for round in 0..200 {
            let run = world.start("gated").await;
            world.waiting(&run).await;
            let target = run.clone();
            let answer = spawn(&world, async move |world| world.resolve(&target, "gate", accept()).await);
            let target = run.clone();
            let cancel = spawn(&world, async move |world| world.host.cancel(&who(), &target, None).await.unwrap());
            let (answer, cancelled) =
                in_time("answer and cancel", async { (answer.await.unwrap(), cancel.await.unwrap()) }).await;
            let end = world.ended(&run).await.status;
            assert_eq!(cancelled, end, "round {round}: the canceller was told how it ended");
            match &answer {
                Ok(_) => assert_eq!(end, RunStatus::Completed, "round {round}"),
                Err(error) => {
                    assert!(refused_answer(error), "round {round}: {error}");
                    assert_eq!(end, RunStatus::Cancelled, "round {round}");
                }
            }
        }
        world.audit("answer against cancel").await;
        assert!(world.open_interrupts().await.is_empty());
        assert!(world.host.readiness().ready);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_answers_one_counts() {
    on_every_store([gate("gated")], async |world: Arc<World>| {
        for _ in 0..30 {
            let run = world.start("gated").await;
            let answers: Vec<_> = (0..10)
                .map(|_| {
                    let run = run.clone();
                    spawn(&world, async move |world| world.resolve(&run, "gate", accept()).await)
                })
                .collect();
            let mut won = 0;
            for answer in answers {
                match in_time("an answer", answer).await.unwrap() {
                    Ok(_) => won += 1,
                    Err(error) => assert_eq!(error.code, code::INTERRUPT_ALREADY_RESOLVED),
                }
            }
            assert_eq!(won, 1);
            assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
        }
        world.audit("ten answers").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_storm_of_pauses_and_resumes_ends_with_the_cancellation() {
    let slow = Flow::chain("slow", &[("wait", "core.delay", json!({"ms": 3_600_000})), ("after", "core.noop", noop())]);
    on_every_store([parent("parent", call("slow")), slow], async |world: Arc<World>| {
        for round in 0..30 {
            let run = world.start(if round % 2 == 0 { "parent" } else { "slow" }).await;
            let mut storm = Vec::new();
            for i in 0..6 {
                let run = run.clone();
                storm.push(spawn(&world, async move |world| {
                    for _ in 0..20 {
                        let drain = if i % 2 == 0 { DrainPolicy::Immediate } else { DrainPolicy::DrainCurrentNode };
                        let result = match i {
                            0..=2 => world.host.pause(&who(), &run, PauseRun { reason: None, drain }).await.map(drop),
                            _ => world.host.resume(&who(), &run, None).await.map(drop),
                        };
                        if let Err(error) = result {
                            assert_eq!(error.code, code::RUN_CONFLICT);
                        }
                    }
                }));
            }
            let target = run.clone();
            storm.push(spawn(&world, async move |world| {
                tokio::task::yield_now().await;
                world.host.cancel(&who(), &target, None).await.unwrap();
            }));
            for one in storm {
                in_time("the storm", one).await.unwrap();
            }
            assert_eq!(world.ended(&run).await.status, RunStatus::Cancelled);
        }
        in_time("children", async {
            while world.rows().await.iter().any(|row| !row.status.is_terminal()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(world.host.readiness().ready, "{:?}", world.host.readiness());
        // A resumed delay starts again as a new attempt, so "once per attempt" holds here too.
        world.audit("after the storm").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_parent_cancelled_while_its_child_ends() {
    on_every_store([parent("parent", call("gated")), gate("gated")], async |world: Arc<World>| {
        for round in 0..100 {
            let run = world.start("parent").await;
            let child = world.waiting(&run).await.child_runs[0].run_id.clone();
            let target = child.clone();
            let answer = spawn(&world, async move |world| world.resolve(&target, "gate", accept()).await);
            let target = run.clone();
            let cancel = spawn(&world, async move |world| world.host.cancel(&who(), &target, None).await);
            let answer = in_time("the answer", answer).await.unwrap();
            in_time("the cancellation", cancel).await.unwrap().unwrap();
            let (child, end) = (world.ended(&child).await.status, world.ended(&run).await.status);
            match answer {
                Ok(_) => assert_eq!(child, RunStatus::Completed, "round {round}: the answer counted"),
                Err(error) => {
                    assert!(refused_answer(&error) || error.code == code::INTERRUPT_GONE, "round {round}: {error}");
                    assert_eq!(child, RunStatus::Cancelled, "round {round}");
                }
            }
            assert!([RunStatus::Cancelled, RunStatus::Completed].contains(&end), "round {round}: {end}");
        }
        world.audit("parent cancelled while the child ends").await;
        assert!(world.host.readiness().ready, "{:?}", world.host.readiness());
    })
    .await;
}

/// Cancelled while the child is being made: there must be no child that nobody waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_parent_cancelled_while_its_child_starts() {
    on_every_store([parent("parent", call("gated")), gate("gated")], async |world: Arc<World>| {
        for _ in 0..200 {
            let run = world.start("parent").await;
            let target = run.clone();
            let cancel = spawn(&world, async move |world| world.host.cancel(&who(), &target, None).await.unwrap());
            in_time("the cancellation", cancel).await.unwrap();
            assert_eq!(world.ended(&run).await.status, RunStatus::Cancelled);
        }
        // A parent's end is recorded after its children's.
        for row in world.rows().await {
            assert_eq!(row.status, RunStatus::Cancelled, "{} of {:?}", row.id, row.parent);
        }
        assert!(world.open_interrupts().await.is_empty());
        world.audit("parent cancelled while the child starts").await;
        assert!(world.host.readiness().ready, "{:?}", world.host.readiness());
    })
    .await;
}

/// The child is answered the instant its question is on disk, while its parent may not even know that it asked. Old
/// news must not be what the parent keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_parent_shows_where_its_child_stands() {
    let wait = json!({"ms": 3_600_000});
    let child = Flow::chain("child", &[("gate", "core.approvalGate", json!({})), ("wait", "core.delay", wait)]);
    on_every_store([parent("parent", call("child")), child], async |world: Arc<World>| {
        let eager = spawn(&world, async move |world| {
            let mut answered = 0;
            while answered < 100 {
                for open in world.open_interrupts().await {
                    world.resolve(&open.run, "gate", accept()).await.unwrap();
                    answered += 1;
                }
                tokio::task::yield_now().await;
            }
        });
        let mut runs = Vec::new();
        for _ in 0..100 {
            runs.push(world.start("parent").await);
        }
        in_time("the eager one", eager).await.unwrap();
        for run in &runs {
            world.wait_for(run, |parent| parent.status == RunStatus::Running && !parent.child_runs.is_empty()).await;
        }
        world.settle().await;
        for run in &runs {
            assert_eq!(world.status(run).await, RunStatus::Running);
        }
        world.audit("eager answers").await;
    })
    .await;
}

/// Waiting runs leave memory as soon as they are on disk; answers and looks bring them back, all at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_that_come_and_go_from_memory_lose_nothing() {
    on_every_store([parent("parent", call("gated")), gate("gated")], async |world: Arc<World>| {
        let mut runs = Vec::new();
        for i in 0..100 {
            runs.push(world.start(if i % 2 == 0 { "gated" } else { "parent" }).await);
        }
        for run in &runs {
            world.waiting(run).await;
        }
        let questions: Vec<RunId> = world.open_interrupts().await.into_iter().map(|row| row.run).collect();
        assert_eq!(questions.len(), 100);
        let mut racers = Vec::new();
        for chunk in questions.chunks(10).map(<[RunId]>::to_vec) {
            let looked = chunk.clone();
            racers.push(spawn(&world, async move |world| {
                for run in &looked {
                    // Refused, but it loads the run.
                    assert!(world.resolve(run, "before", accept()).await.is_err());
                    world.snapshot(run).await;
                }
            }));
            racers.push(spawn(&world, async move |world| {
                for run in &chunk {
                    world.resolve(run, "gate", accept()).await.unwrap();
                }
            }));
        }
        for racer in racers {
            in_time("a racer", racer).await.unwrap();
        }
        for run in &runs {
            assert_eq!(world.ended(run).await.status, RunStatus::Completed);
        }
        world.audit("coming and going").await;
        assert!(world.host.readiness().ready, "{:?}", world.host.readiness());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_subscriber_sees_every_event_once_and_in_order() {
    let rounds = Flow::new("rounds")
        .node("loop", "core.loop", json!({"count": 300}))
        .node("body", "core.noop", noop())
        .edge_with("loop", "body", json!({"sourceOutput": "body"}))
        .edge("body", "loop")
        .node("gate", "core.approvalGate", json!({}))
        .edge("loop", "gate");
    on_every_store([rounds], async |world: Arc<World>| {
        let run = world.start("rounds").await;
        let readers: Vec<_> = [1, 7, 1000]
            .into_iter()
            .map(|page| {
                let run = run.clone();
                spawn(&world, async move |world| {
                    let mut log = world.host.subscribe(&run);
                    let mut seen: Vec<u64> = Vec::new();
                    loop {
                        let after = seen.last().copied();
                        let got = world.host.events(&tenant(), &run, after, page).await.unwrap();
                        seen.extend(got.events.iter().map(|event| event.seq));
                        if got.is_final(after) {
                            return seen;
                        }
                        if got.events.is_empty() {
                            log.changed().await;
                        }
                    }
                })
            })
            .collect();
        world.waiting(&run).await;
        world.resolve(&run, "gate", accept()).await.unwrap();
        let length = world.ended(&run).await.at_seq + 1;
        for reader in readers {
            let seen = in_time("a reader", reader).await.unwrap();
            assert_eq!(seen, (0..length).collect::<Vec<_>>());
        }
    })
    .await;
}
