//! One budget for a whole tree of runs: no more than that is spent, whoever spends, however often the process dies, and
//! however a call ends.

use crate::budget;
use crate::common;

use std::sync::Arc;

use baton_model::RunStatus;
use baton_store::Disk;
use baton_testkit::{Flow, SimClock};
use budget::{Meter, Used, asks, count, failures, fans_out, options, start, used, verified};
use common::{World, seed};
use serde_json::json;

const CHILDREN: usize = 64;
const LIMIT: u64 = 60_000;

/// A different place of a list every time, the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

async fn tree(world: &World) {
    world.register(asks("worker", 5)).await;
    world.register(fans_out("team", "worker", CHILDREN)).await;
}

fn total(used: &[Used]) -> u64 {
    used.last().map_or(0, |last| last.consumed)
}

/// One call after the other is answered, in no particular order, and the account is looked at after each.
#[tokio::test]
async fn sixty_four_children_never_overspend() {
    let meter = Meter::gated(seed());
    let world = World::open(Disk::default(), Arc::default(), options(&meter, 512)).await;
    tree(&world).await;
    let root = start(&world, "team", json!({"maxTokens": LIMIT})).await;
    world.settle().await;
    let (mut dice, mut spent) = (Dice(seed()), 0);
    assert!(meter.in_flight().len() > 8, "they work side by side");
    loop {
        let in_flight = meter.in_flight();
        if in_flight.is_empty() {
            break;
        }
        let key = &in_flight[dice.below(in_flight.len())];
        spent += meter.usage(key).total();
        meter.answer(key, true);
        world.settle().await;
        if meter.in_flight().len().is_multiple_of(8) {
            assert_eq!(total(&used(&world).await), spent, "charged once, and at once");
        }
        assert!(spent <= LIMIT, "{spent}");
    }
    assert_eq!(total(&used(&world).await), spent);
    assert!(spent > LIMIT - 100, "{spent}: nothing worth asking for is left");
    let end = world.ended(&root).await;
    assert_eq!(end.status, RunStatus::Completed, "the parent takes whatever became of its children");
    let failed = failures(&world).await;
    assert_eq!(failed.keys().collect::<Vec<_>>(), ["budget_exhausted"], "{failed:?}");
    world.audit("used up").await;
    verified(&world).await;
}

/// The same with real concurrency.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn children_on_many_threads_never_overspend_either() {
    for round in 0..2 {
        let meter = Meter::prompt(seed() + round);
        let world = World::open(Disk::default(), Arc::default(), options(&meter, 64)).await;
        tree(&world).await;
        let root = start(&world, "team", json!({"maxTokens": LIMIT})).await;
        assert_eq!(world.ended(&root).await.status, RunStatus::Completed);
        let used = used(&world).await;
        assert!(total(&used) <= LIMIT, "{}", total(&used));
        assert_eq!(used.len(), meter.keys().len(), "what was called was counted");
        verified(&world).await;
    }
}

/// The process dies in the middle, again and again, be it between two commits of one step. What is on the log is what
/// counts.
#[tokio::test]
async fn an_account_survives_the_process() {
    let (mut disk, clock) = (Disk::default(), Arc::new(SimClock::default()));
    let mut dice = Dice(seed());
    let meter = Meter::gated(seed());
    let mut root = None;
    for life in 0.. {
        let world = World::open(disk, Arc::clone(&clock), options(&meter, 2)).await;
        if life == 0 {
            tree(&world).await;
            root = Some(start(&world, "team", json!({"maxTokens": LIMIT})).await);
        }
        let root = root.as_ref().unwrap();
        world.settle().await;
        let before = total(&used(&world).await);
        assert!(before < LIMIT || meter.in_flight().is_empty(), "nobody is asked once it is used up");
        if life > 0 {
            world.store.crash_after(5 + dice.below(40) as u64);
        }
        for _ in 0..15 {
            let in_flight = meter.in_flight();
            if in_flight.is_empty() {
                break;
            }
            meter.answer(&in_flight[dice.below(in_flight.len())], true);
            world.settle().await;
        }
        if world.reader.run(root).await.unwrap().unwrap().status.is_terminal() {
            let spent = total(&used(&world).await);
            assert!(life > 4, "it did not die often enough");
            assert!(spent <= LIMIT && spent > LIMIT - 100, "{spent}");
            world.audit("many lives").await;
            verified(&world).await;
            return;
        }
        disk = world.stop().await;
        assert!(meter.in_flight().is_empty(), "calls end with the process that made them");
    }
}

/// The disk takes nothing for a while. What was lost is not charged, and what was answered is charged once.
#[tokio::test]
async fn an_account_survives_a_failing_disk() {
    let meter = Meter::gated(seed());
    let world = World::open(Disk::default(), Arc::default(), options(&meter, 512)).await;
    tree(&world).await;
    let root = start(&world, "team", json!({"maxTokens": LIMIT})).await;
    world.settle().await;
    let mut dice = Dice(seed());
    let mut answered = 0;
    while !meter.in_flight().is_empty() {
        if answered % 25 == 10 {
            world.store.fail_after(0);
        }
        let in_flight = meter.in_flight();
        meter.answer(&in_flight[dice.below(in_flight.len())], true);
        answered += 1;
        world.settle().await;
        if !world.host.readiness().ready {
            world.store.heal();
            while !world.host.readiness().ready {
                world.clock.advance(100);
                world.settle().await;
            }
            // Whoever holds an answer tells it again after a moment.
            world.clock.advance(1000);
            world.settle().await;
        }
    }
    world.clock.advance(1000);
    assert_eq!(world.ended(&root).await.status, RunStatus::Completed);
    let used = used(&world).await;
    assert_eq!(used.len(), answered, "every answer counts once");
    // What is set aside for calls in flight outlives the failed commits.
    assert!(total(&used) <= LIMIT, "{}", total(&used));
    verified(&world).await;
}

/// Twenty at once, a model that takes all the room it is given, and nobody who bounds it but the budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_children_that_take_all_they_can_stay_within_the_budget() {
    const TREE: u64 = 20_000;
    let meter = Meter::greedy();
    let world = World::open(Disk::default(), Arc::default(), options(&meter, 64)).await;
    let config =
        json!({"provider": "meter", "model": "m-1", "outputSchema": {"type": "object", "required": ["valid"]}});
    let inputs = json!({"inputs": {"prompt": {"type": "static", "value": "Is it?"}}});
    world.register(Flow::new("worker").node_with("ask", "core.ai.structuredOutput", config, inputs)).await;
    world.register(fans_out("team", "worker", 20)).await;
    let root = start(&world, "team", json!({"maxTokens": TREE})).await;
    assert_eq!(common::in_time("the team", world.ended(&root)).await.status, RunStatus::Completed, "nobody hangs");
    let spent = total(&used(&world).await);
    assert!(spent <= TREE && spent > TREE - 200, "{spent}");
    let rooms = meter.rooms();
    assert!(rooms.len() >= 3 && rooms.iter().all(|room| *room <= 8192), "{rooms:?}");
    assert!(rooms.last() < rooms.first(), "the last one got what was left: {rooms:?}");
    let refused = failures(&world).await;
    assert_eq!(refused.get("budget_exhausted"), Some(&(20 - rooms.len())), "{refused:?}");
    for row in world.rows().await.into_iter().filter(|row| row.status == RunStatus::Failed) {
        assert_eq!(count(&world, &row.id, "budget.exhausted").await, 1, "every refusal is recorded");
        assert_eq!(count(&world, &row.id, "cap.breached").await, 1);
    }
    verified(&world).await;
}

#[tokio::test]
async fn a_budget_of_one_token_asks_nobody() {
    let meter = Meter::greedy();
    let world = World::open(Disk::default(), Arc::default(), options(&meter, 512)).await;
    world.register(asks("asks", 1)).await;
    let run = start(&world, "asks", json!({"maxTokens": 1})).await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, "budget_exhausted");
    assert!(meter.keys().is_empty());
}
