//! The process dies after every single commit in turn; the next one must come to the same end.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::{Decision, RunId, RunStatus};
use baton_runtime::Options;
use baton_store::Disk;
use baton_testkit::SimClock;
use common::scenario::{self, Scenario, call, deep, delegate, gate, led, parent, pipeline, race};
use common::{World, accept, in_time, options, who};
use serde_json::{Value, json};

/// More crashes than any scenario has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 600;

/// A disk on which the scenario's workflows are registered and nothing has run yet.
async fn prepared(scenario: &Scenario) -> Disk {
    World::with(scenario.flows.clone()).await.stop().await
}

fn root(scenario: &Scenario) -> String {
    scenario.flows[0].clone().build()["id"].as_str().unwrap().to_owned()
}

/// Starts the run unless an earlier life has, and sees it through.
async fn run_to_end(world: &World, workflow: &str) {
    if world.rows().await.is_empty() {
        world.try_start(workflow).await.unwrap();
    }
    world.drive(0).await;
}

async fn uncrashed(scenario: &Scenario, disk: &Disk, records_ahead: usize) -> BTreeMap<RunId, Value> {
    let world = World::open(disk.clone(), Arc::default(), options(records_ahead)).await;
    run_to_end(&world, &root(scenario)).await;
    let (views, rows) = (world.views().await, world.rows().await);
    assert_eq!((rows[0].status, rows.len()), scenario.ends, "{}", scenario.name);
    world.audit_ended(scenario.name, &views).await;
    // What was held in memory is exactly what the log says.
    let again = World::open(world.stop().await, Arc::default(), options(records_ahead)).await;
    again.audit_ended(&format!("{}, read again", scenario.name), &views).await;
    views
}

/// Dies after `commits` commits. `None` when the run ended without dying.
async fn crashed(
    disk: Disk,
    clock: &Arc<SimClock>,
    workflow: &str,
    records_ahead: usize,
    commits: u64,
) -> Option<Disk> {
    crashed_with(disk, clock, workflow, options(records_ahead), commits).await
}

async fn crashed_with(
    disk: Disk,
    clock: &Arc<SimClock>,
    workflow: &str,
    options: Options,
    commits: u64,
) -> Option<Disk> {
    let world = World::open(disk, Arc::clone(clock), options).await;
    world.store.crash_after(commits);
    let died = tokio::select! {
        () = run_to_end(&world, workflow) => false,
        () = world.store.crashed() => true,
    };
    let disk = world.stop().await;
    died.then_some(disk)
}

async fn crash_everywhere(records_ahead: usize) {
    crash_everywhere_with(records_ahead, options).await;
}

async fn crash_everywhere_with(records_ahead: usize, options: fn(usize) -> Options) {
    for scenario in scenario::all() {
        let disk = prepared(&scenario).await;
        let workflow = root(&scenario);
        let expected = uncrashed(&scenario, &disk, records_ahead).await;
        for commits in 0.. {
            assert!(commits < MOST_CRASHES, "{}: never ends", scenario.name);
            let context =
                format!("{}, {records_ahead} ahead, crashed after {commits}, seed {}", scenario.name, common::seed());
            let clock = Arc::new(SimClock::default());
            let Some(left) = crashed_with(disk.clone(), &clock, &workflow, options(records_ahead), commits).await
            else {
                // One step, one commit; or all of them in one.
                assert!(commits >= if records_ahead == 1 { 5 } else { 1 }, "{context}: too few places to crash at");
                break;
            };
            let world = World::open(left, clock, options(records_ahead)).await;
            in_time(&context, run_to_end(&world, &workflow)).await;
            world.audit_ended(&context, &expected).await;
            world.stop().await;
        }
    }
}

#[tokio::test]
async fn every_step_its_own_commit() {
    crash_everywhere(1).await;
}

/// Checkpoints are commits of their own, so there are more places to die at; what comes out is what comes out without.
#[tokio::test]
async fn with_a_checkpoint_after_every_record() {
    for records_ahead in [1, 512] {
        crash_everywhere_with(records_ahead, |ahead| Options { checkpoint_every: 1, ..options(ahead) }).await;
    }
}

#[tokio::test]
async fn a_few_steps_in_one_commit() {
    crash_everywhere(3).await;
}

#[tokio::test]
async fn many_steps_in_one_commit() {
    crash_everywhere(512).await;
}

/// Dies again and again, each time after one more commit than the last life found: the run still gets there.
#[tokio::test]
async fn a_process_that_dies_after_every_commit_still_arrives() {
    for scenario in scenario::all() {
        let mut disk = prepared(&scenario).await;
        let workflow = root(&scenario);
        let expected = uncrashed(&scenario, &disk, 1).await;
        let clock = Arc::new(SimClock::default());
        let mut lives = 0;
        while let Some(left) = crashed(disk.clone(), &clock, &workflow, 1, 1).await {
            disk = left;
            lives += 1;
            assert!(lives < MOST_CRASHES, "{}: no progress", scenario.name);
        }
        let world = World::open(disk, clock, options(1)).await;
        run_to_end(&world, &workflow).await;
        world.audit_ended(&format!("{}, after {lives} lives", scenario.name), &expected).await;
        world.stop().await;
    }
}

/// A tree of runs is cancelled and the process dies on the way: the cancellation goes on, or never happened.
#[tokio::test]
async fn a_cancellation_is_finished_by_the_next_process() {
    let plain = [parent("top", call("middle")), parent("middle", call("gated")), gate("gated")];
    let led = [delegate("top", "middle"), delegate("middle", "gated"), gate("gated")];
    for (flows, records_ahead) in [(&plain, 1), (&plain, 512), (&led, 1), (&led, 512)] {
        let world = World::with(flows.clone()).await;
        let run = world.start("top").await;
        world.waiting(&run).await;
        let disk = world.stop().await;
        for commits in 0.. {
            let context = format!("{records_ahead} ahead, cancelled and crashed after {commits}");
            let world = World::open(disk.clone(), Arc::default(), options(records_ahead)).await;
            world.settle().await;
            world.store.crash_after(commits);
            let cancelled = async {
                world.host.cancel(&who(), &run, None).await.unwrap();
                world.ended(&run).await;
            };
            let died = tokio::select! {
                () = cancelled => false,
                () = world.store.crashed() => true,
            };
            let world = World::open(world.stop().await, Arc::default(), options(records_ahead)).await;
            world.settle().await;
            if commits == 0 && died {
                assert_eq!(world.status(&run).await, RunStatus::WaitingApproval, "{context}: it never happened");
                world.host.cancel(&who(), &run, None).await.unwrap();
                world.settle().await;
            }
            let rows = world.rows().await;
            assert_eq!(rows.len(), 3);
            assert!(rows.iter().all(|row| row.status == RunStatus::Cancelled), "{context}: {rows:#?}");
            assert!(world.open_interrupts().await.is_empty(), "{context}");
            world.audit(&context).await;
            world.stop().await;
            if !died {
                assert!(commits >= if records_ahead == 1 { 5 } else { 1 }, "{context}: too few places to crash at");
                break;
            }
        }
    }
}

/// What the five turns of the team are, so that crashing it crashes what it should.
#[tokio::test]
async fn the_team_takes_five_turns_with_everything_in_them() {
    let team = scenario::all().into_iter().find(|scenario| scenario.name == "a team").unwrap();
    let disk = prepared(&team).await;
    let world = World::open(disk, Arc::default(), options(512)).await;
    run_to_end(&world, &root(&team)).await;
    let rows = world.rows().await;
    let decisions = world.decisions(&rows[0].id).await;
    let kinds: Vec<Value> = decisions.iter().map(|decided| json!(decided.decision)["kind"].clone()).collect();
    assert_eq!(kinds, ["next-worker", "next-worker", "next-worker", "ask-user", "terminate"]);
    assert_eq!(decisions[2].decision.confidence(), Some(0.3), "held, and ratified");
    assert_eq!(json!(decisions[4].decision)["reason"], "left", "the answer reached the last turn");
    let mut ends: Vec<RunStatus> = rows[1..].iter().map(|row| row.status).collect();
    ends.sort_by_key(|status| status.as_str());
    assert_eq!(ends, [RunStatus::Completed, RunStatus::Completed, RunStatus::Completed, RunStatus::Failed]);
    world.stop().await;
}

/// Who wins a race may differ between two lives; that there is one winner, and that no log speaks of a child that never
/// was, may not.
#[tokio::test]
async fn a_race_has_an_end_wherever_the_process_dies() {
    for records_ahead in [1, 2, 512] {
        let disk = World::with([race("race"), gate("gated"), pipeline("pipeline")]).await.stop().await;
        for commits in 0.. {
            let context = format!("a race, {records_ahead} ahead, crashed after {commits}");
            assert!(commits < MOST_CRASHES, "{context}: never ends");
            let clock = Arc::new(SimClock::default());
            let Some(left) = crashed(disk.clone(), &clock, "race", records_ahead, commits).await else { break };
            let world = World::open(left, clock, options(records_ahead)).await;
            in_time(&context, run_to_end(&world, "race")).await;
            world.audit_ended(&context, &world.views().await).await;
            let rows = world.rows().await;
            assert_eq!(rows[0].status, RunStatus::Completed, "{context}");
            assert!(rows[1..].iter().any(|row| row.status == RunStatus::Completed), "{context}: nobody won");
            assert_eq!(world.decisions(&rows[0].id).await.len(), 2, "{context}");
            world.stop().await;
        }
    }
}

/// The first thing the next process hears is a cancellation: what was planned and never made is not made up.
#[tokio::test]
async fn a_loop_is_cancelled_wherever_the_process_died() {
    let disk = World::with([race("race"), gate("gated"), pipeline("pipeline")]).await.stop().await;
    for commits in 1.. {
        let context = format!("a race, crashed after {commits} and cancelled");
        assert!(commits < MOST_CRASHES, "{context}: never ends");
        let clock = Arc::new(SimClock::default());
        let Some(left) = crashed(disk.clone(), &clock, "race", 1, commits).await else { break };
        let world = World::open(left, clock, options(1)).await;
        let root = world.rows().await[0].id.clone();
        world.host.cancel(&who(), &root, None).await.unwrap();
        world.settle().await;
        world.audit_ended(&context, &world.views().await).await;
        world.stop().await;
    }
}

/// The youngest of four generations asks; every ancestor shows it, before and after a restart, and the answer to the
/// youngest is all that the whole tree needs.
#[tokio::test]
async fn an_answer_four_generations_deep_completes_the_tree_after_a_restart() {
    for records_ahead in [1, 512] {
        let world = World::with(deep()).await;
        let root = world.start("root").await;
        world.waiting(&root).await;
        let clock = Arc::clone(&world.clock);
        let world = World::open(world.stop().await, clock, options(records_ahead)).await;
        world.settle().await;
        let rows = world.rows().await;
        assert_eq!(rows.len(), 4);
        for row in &rows {
            assert_eq!(world.status(&row.id).await, RunStatus::WaitingApproval, "{}", row.workflow);
        }
        let questions = world.open_interrupts().await;
        assert_eq!(questions.len(), 1, "asked once, by the run that asks: {questions:#?}");
        assert_eq!(questions[0].run, rows[3].id);
        world.resolve(&questions[0].run, "gate", accept()).await.unwrap();
        assert_eq!(world.ended(&root).await.status, RunStatus::Completed);
        world.audit_ended("four generations", &world.views().await).await;
        for row in world.rows().await {
            assert_eq!(row.status, RunStatus::Completed, "{}", row.workflow);
        }
        world.stop().await;
    }
}

/// A thousand turns deep, a human stops the loop; the next process goes on in the very turn that was stopped.
#[tokio::test]
async fn a_loop_stopped_in_turn_1000_goes_on_there_after_a_restart() {
    let worker =
        |confidence: f64| json!({"kind": "next-worker", "nextWorkerIds": ["pipeline"], "confidence": confidence});
    let rules = json!({
        "rules": [
            {"when": "iteration < 1000", "decide": worker(0.9)},
            {"when": "iteration == 1000", "decide": worker(0.4)}
        ],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let world = World::with([led("long", rules, "sequential"), pipeline("pipeline")]).await;
    let run = world.start("long").await;
    let held = world.waiting(&run).await;
    assert_eq!(held.current_node_id.unwrap().as_str(), "lead");
    assert_eq!((world.decisions(&run).await.len(), world.rows().await.len()), (999, 1000));

    let clock = Arc::clone(&world.clock);
    let world = World::open(world.stop().await, clock, options(512)).await;
    world.settle().await;
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    assert_eq!(world.decisions(&run).await.len(), 999, "a restart decides nothing");
    world.resolve(&run, "lead", accept()).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    let decisions = world.decisions(&run).await;
    assert!(decisions.iter().map(|decided| decided.iteration).eq(1..=1001));
    assert_eq!(decisions[999].decision.confidence(), Some(0.4), "the held decision, as it was");
    assert!(matches!(decisions[1000].decision, Decision::Terminate { .. }));
    assert_eq!(world.rows().await.len(), 1001, "one child for each turn that asked for one");
    world.audit("a thousand turns").await;
    world.stop().await;
}
