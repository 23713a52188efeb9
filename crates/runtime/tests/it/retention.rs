//! Pruning many at once, and by the operator's rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::{RunId, RunStatus, WorkflowId, code};
use baton_runtime::{ErrorKind, Options, RetentionPolicy, RetentionReason, RetentionReport, RetentionRule};
use baton_testkit::SimClock;

use crate::common::scenario::{call, gate, parent, pipeline};
use crate::common::{World, accept, in_time, options, other, tenant};
use crate::forking::replay_from;

const DAY: u64 = 24 * 3600 * 1000;

fn keeping(general: RetentionRule) -> Options {
    Options { retention: RetentionPolicy { general, ..RetentionPolicy::default() }, ..options(512) }
}

async fn world(options: Options) -> World {
    let world = World::open(baton_store::Disk::default(), Arc::<SimClock>::default(), options).await;
    for flow in [pipeline("pipeline"), pipeline("noisy"), gate("gated"), parent("caller", call("pipeline"))] {
        world.register(flow).await;
    }
    world
}

/// So many runs, a day apart.
async fn ended(world: &World, workflow: &str, count: u64) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        let run = world.start(workflow).await;
        world.ended(&run).await;
        runs.push(run);
        world.clock.advance(DAY);
    }
    runs
}

async fn has_log(world: &World, run: &RunId) -> bool {
    let row = world.reader.run(run).await.unwrap().unwrap();
    let gone = row.pruned.is_some_and(|pruned| pruned.log);
    assert_eq!(gone, world.reader.records(run, 0, 1).await.unwrap().is_empty(), "{run}: the mark says what is gone");
    !gone
}

async fn with_log(world: &World, runs: &[RunId]) -> usize {
    let mut count = 0;
    for run in runs {
        count += usize::from(has_log(world, run).await);
    }
    count
}

#[tokio::test]
async fn many_are_pruned_at_once_and_each_is_answered_for() {
    let world = world(options(512)).await;
    let mut runs = ended(&world, "pipeline", 150).await;
    let open = world.start("gated").await;
    world.waiting(&open).await;
    let tree = world.start("caller").await;
    world.ended(&tree).await;
    let below = world.rows().await.into_iter().find(|row| row.root.as_ref() == Some(&tree)).unwrap().id;
    let forked = runs[3].clone();
    let fork = world.fork(&forked, replay_from(2)).await;
    world.ended(&fork).await;
    let asked = [runs.clone(), vec![open.clone(), tree.clone(), below.clone(), RunId::new("run_none")]].concat();
    let before = world.store.commits();
    let told = world.host.prune_many(&tenant(), asked.clone(), true).await.unwrap();
    assert!(world.store.commits() - before < 20, "not one by one: {}", world.store.commits() - before);
    let told: BTreeMap<RunId, _> = told.into_iter().collect();
    assert_eq!(told.len(), asked.len(), "each is answered for");
    let refused = |run: &RunId| told[run].as_ref().unwrap_err().code;
    assert_eq!(refused(&open), code::RUN_CONFLICT, "it has not ended");
    assert_eq!(refused(&below), code::RUN_CONFLICT, "it is not the top");
    assert_eq!(refused(&forked), code::RUN_CONFLICT, "a fork begins with it");
    assert_eq!(refused(&RunId::new("run_none")), code::RUN_NOT_FOUND);
    assert_eq!(told[&tree].as_ref().unwrap().runs, 2, "with what is below it");
    runs.retain(|run| *run != forked);
    assert_eq!(with_log(&world, &runs).await, 0);
    for kept in [&open, &forked, &fork] {
        assert!(has_log(&world, kept).await, "{kept}");
    }
    let again = world.host.prune_many(&tenant(), runs.clone(), true).await.unwrap();
    assert!(again.iter().all(|(_, pruned)| pruned.as_ref().unwrap().runs == 0), "twice is once");
    let foreign = world.host.prune_many(&other().tenant, vec![open], true).await.unwrap();
    assert_eq!(foreign[0].1.as_ref().unwrap_err().code, code::RUN_NOT_FOUND);
    world.stop().await;
}

#[tokio::test]
async fn nothing_goes_by_itself_unless_somebody_says_so() {
    let world = world(options(512)).await;
    ended(&world, "pipeline", 30).await;
    assert_eq!(world.host.retention_due(&tenant(), 99).await.unwrap(), (vec![], false));
    assert_eq!(world.host.apply_retention(&tenant()).await.unwrap(), RetentionReport::default());
    world.stop().await;
}

#[tokio::test]
async fn what_a_dry_run_shows_is_what_goes() {
    let rule = |max_runs| RetentionRule { max_runs: Some(max_runs), ..RetentionRule::default() };
    let mut options = keeping(RetentionRule { max_age_ms: Some(20 * DAY), ..RetentionRule::default() });
    options.retention.workflows.insert(WorkflowId::new("noisy"), rule(3));
    let world = world(crate::common::options(512)).await;
    let open = world.start("gated").await;
    let old = ended(&world, "pipeline", 10).await;
    let noisy = ended(&world, "noisy", 10).await;
    let tree = world.start("caller").await;
    world.ended(&tree).await;
    world.clock.advance(12 * DAY);
    let young = ended(&world, "noisy", 5).await;
    let forked = old[2].clone();
    let fork = world.fork(&forked, replay_from(2)).await;
    world.ended(&fork).await;
    // Before its own pass begins.
    let clock = Arc::clone(&world.clock);
    let world = World::open(world.stop().await, clock, options).await;

    let (due, more) = world.host.retention_due(&tenant(), 99).await.unwrap();
    assert!(!more);
    let (first, more) = world.host.retention_due(&tenant(), 4).await.unwrap();
    assert_eq!((first.as_slice(), more), (&due[..4], true), "up to a bound");
    assert_eq!(with_log(&world, &old).await, 10, "looking takes nothing");
    let report = world.host.apply_retention(&tenant()).await.unwrap();
    assert_eq!((report.trees, report.needed), (due.len() as u64, 1), "{report:?}");
    for found in &due {
        assert!(!has_log(&world, &found.tree.id).await, "{found:?}");
    }
    let gone = world.rows().await.iter().filter(|row| row.pruned.is_some()).count();
    assert_eq!(gone as u64, report.runs, "and nothing else went");
    assert!(has_log(&world, &forked).await, "a fork begins with it");
    assert_eq!(with_log(&world, &old).await, 1, "the others were too old");
    assert_eq!(world.status(&open).await, RunStatus::WaitingApproval, "what has not ended stays");
    assert_eq!(with_log(&world, &young).await, 5, "all of the last seven days, though only three are kept");
    assert_eq!(with_log(&world, &noisy).await, 0, "three newer ones are there");
    let reasons: Vec<_> = due.iter().map(|due| due.reason).collect();
    assert!(reasons.contains(&RetentionReason::Age) && reasons.contains(&RetentionReason::Count), "{reasons:?}");
    assert_eq!(world.host.retention_due(&tenant(), 99).await.unwrap(), (vec![], false), "nothing is left to do");
    world.resolve(&open, "gate", accept()).await.unwrap();
    assert_eq!(world.ended(&open).await.status, RunStatus::Completed);
    world.stop().await;
}

/// The process dies at every commit of a pass in turn; the next one finishes what was begun.
#[tokio::test]
async fn a_pass_that_is_cut_short_is_finished_by_the_next() {
    let all = RetentionRule { max_age_ms: Some(0), ..RetentionRule::default() };
    for crash in 0..3 {
        let made = world(options(512)).await;
        let runs = ended(&made, "pipeline", 70).await;
        let tree = made.start("caller").await;
        made.ended(&tree).await;
        made.clock.advance(8 * DAY);
        let clock = Arc::clone(&made.clock);
        let world = World::open(made.stop().await, Arc::clone(&clock), keeping(all)).await;
        world.settle().await;
        world.store.crash_after(crash);
        let cut = world.host.apply_retention(&tenant()).await;
        assert!(cut.is_err() || crash == 2, "{crash}: {cut:?}");
        let world = World::open(world.stop().await, clock, keeping(all)).await;
        let report = world.host.apply_retention(&tenant()).await.unwrap();
        assert_eq!(with_log(&world, &runs).await, 0, "{crash}: {report:?}");
        assert!(!has_log(&world, &tree).await, "{crash}");
        let pruned = world.rows().await.iter().filter(|row| row.pruned.is_some()).count();
        assert_eq!(pruned, 72, "{crash}: with what is below");
        world.stop().await;
    }
}

#[tokio::test]
async fn the_host_prunes_by_itself_now_and_then() {
    let world = world(keeping(RetentionRule { max_runs: Some(5), ..RetentionRule::default() })).await;
    let runs = ended(&world, "pipeline", 20).await;
    let kept = async {
        while with_log(&world, &runs).await > 7 {
            world.clock.advance(60_000);
            world.settle().await;
        }
    };
    in_time("a pass", kept).await;
    assert!(has_log(&world, &runs[19]).await && !has_log(&world, &runs[0]).await);
    let refused = world.host.events(&tenant(), &runs[0], None, 9).await.unwrap_err();
    assert_eq!((refused.kind, refused.code), (ErrorKind::Gone, code::RUN_PRUNED));
    world.stop().await;
}
