//! One budget for a whole tree of runs: what is spent is never more than the calls in flight beyond it, whoever spends,
//! however often the process dies, and however a call ends.

use crate::budget;
use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::RunStatus;
use baton_store::Disk;
use baton_testkit::SimClock;
use budget::{Meter, Used, asks, failures, fans_out, options, start, used, verified};
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
async fn sixty_four_children_never_overspend_by_more_than_the_calls_in_flight() {
    let meter = Meter::gated(seed());
    let world = World::open(Disk::default(), Arc::default(), options(&meter, 512)).await;
    tree(&world).await;
    let root = start(&world, "team", json!({"maxTokens": LIMIT})).await;
    world.settle().await;
    let (mut dice, mut spent, mut crossing) = (Dice(seed()), 0, None);
    assert!(meter.in_flight().len() > 8, "they work side by side");
    loop {
        let in_flight = meter.in_flight();
        if in_flight.is_empty() {
            break;
        }
        let started = meter.keys().len();
        let key = &in_flight[dice.below(in_flight.len())];
        spent += meter.usage(key).total();
        meter.answer(key, true);
        world.settle().await;
        if meter.in_flight().len().is_multiple_of(8) {
            assert_eq!(total(&used(&world).await), spent, "charged once, and at once");
        }
        if spent >= LIMIT {
            assert_eq!(meter.keys().len(), started, "nobody is asked once it is used up");
            let in_flight = || in_flight.iter().map(|key| meter.usage(key).total()).sum::<u64>();
            crossing.get_or_insert_with(in_flight);
        }
    }
    assert_eq!(total(&used(&world).await), spent);
    let most = LIMIT + crossing.expect("it was used up");
    assert!(spent >= LIMIT && spent <= most, "{spent} of {LIMIT}, at most {most}");
    let end = world.ended(&root).await;
    assert_eq!(end.status, RunStatus::Completed, "the parent takes whatever became of its children");
    let failed = failures(&world).await;
    assert_eq!(failed.keys().collect::<Vec<_>>(), ["budget_exhausted"], "{failed:?}");
    world.audit("used up").await;
    verified(&world).await;
}

/// The same with real concurrency: after the crossing, no child has more than the one call it had in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn children_on_many_threads_never_overspend_either() {
    for round in 0..2 {
        let meter = Meter::prompt(seed() + round);
        let world = World::open(Disk::default(), Arc::default(), options(&meter, 64)).await;
        tree(&world).await;
        let root = start(&world, "team", json!({"maxTokens": LIMIT})).await;
        assert_eq!(world.ended(&root).await.status, RunStatus::Completed);
        let used = used(&world).await;
        let mut late: BTreeMap<_, usize> = BTreeMap::new();
        for used in used.iter().filter(|used| used.consumed >= LIMIT) {
            *late.entry(&used.run).or_default() += 1;
        }
        assert!(!late.is_empty() && late.values().all(|calls| *calls == 1), "{late:?}");
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
            assert!((LIMIT..LIMIT + 64 * 1000).contains(&spent), "{spent}");
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
    assert!(total(&used) >= LIMIT && total(&used) < LIMIT + 64 * 1000);
    verified(&world).await;
}
