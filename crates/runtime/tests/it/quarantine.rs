//! A run that breaks is left alone, with everything of its tree, and nobody else notices.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_model::event::DrainPolicy;
use baton_model::{RunId, RunStatus, code};
use baton_runtime::{BeforeStep, Options, PauseRun, StartRun, StepThreads};
use baton_store::reads::*;
use baton_store::{Disk, MemoryStore, RunRow};
use baton_testkit::Flow;
use parking_lot::Mutex;
use serde_json::json;

use crate::common::{World, options, other, request, seed, tenant, who};

/// Waits a second, then does nothing.
fn flow() -> Flow {
    Flow::chain("flow", &[("wait", "core.delay", json!({"ms": 1000})), ("after", "core.noop", json!({}))])
}

/// A parent of two such runs, one after the other.
fn parent() -> Flow {
    let call = json!({"workflowId": "flow", "waitForCompletion": true});
    Flow::chain("parent", &[("first", "core.subWorkflow", call.clone()), ("second", "core.subWorkflow", call)])
}

/// Whose steps panic when they go on by themselves, and how often that happened.
#[derive(Clone, Default)]
struct Poison {
    runs: Arc<Mutex<BTreeSet<RunId>>>,
    steps: Arc<AtomicUsize>,
}

impl Poison {
    fn options(&self) -> Options {
        let poison = self.clone();
        let before = move |row: &RunRow, goes_on: bool| {
            let ids = poison.runs.lock();
            let mine = ids.contains(&row.id) || row.root.as_ref().is_some_and(|root| ids.contains(root));
            drop(ids);
            if goes_on && mine {
                poison.steps.fetch_add(1, Ordering::SeqCst);
                panic!("poison");
            }
        };
        Options { before_step: Some(BeforeStep(Arc::new(before))), ..options(512) }
    }

    fn in_run(&self, run: &RunId) {
        self.runs.lock().insert(run.clone());
    }

    fn cure(&self) {
        self.runs.lock().clear();
    }

    fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }
}

async fn world(poison: &Poison, disk: Disk) -> World {
    let world = World::open(disk, Arc::default(), poison.options()).await;
    world.register(flow()).await;
    world.register(parent()).await;
    world
}

/// Lets time pass until whoever fails has failed for good.
async fn pass(world: &World) {
    for _ in 0..10 {
        world.clock.advance(1000);
        world.settle().await;
    }
}

async fn poisoned(poison: &Poison, workflow: &str) -> (World, RunId) {
    let world = world(poison, Disk::default()).await;
    let run = world.start(workflow).await;
    poison.in_run(&run);
    pass(&world).await;
    (world, run)
}

#[tokio::test]
async fn a_run_whose_steps_panic_is_tried_once_more_and_then_left_alone() {
    let poison = Poison::default();
    let world = world(&poison, Disk::default()).await;
    let bystander = world.start("flow").await;
    let run = world.start("flow").await;
    poison.in_run(&run);
    let request = StartRun { workflow_id: "flow".to_owned(), ..StartRun::default() };
    world.host.register_workflow(&other().tenant, flow().build()).await.unwrap();
    let foreign = world.host.start_run(&other(), request, None).await.unwrap().run_id;
    pass(&world).await;

    assert_eq!(poison.steps(), 2, "tried once more from what is durable, and then no more");
    assert_eq!(world.status(&bystander).await, RunStatus::Completed);
    assert_eq!(world.host.snapshot(&other().tenant, &foreign).await.unwrap().status, RunStatus::Completed);
    let held = world.snapshot(&run).await.quarantine.expect("in quarantine");
    assert_eq!((held.cause.as_str(), &held.run_id, &held.root_run_id), ("step_panicked", &run, &run));
    assert!(held.detail.contains("poison"));
    let listed = world.host.quarantined(&tenant(), None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|held| &held.root).collect::<Vec<_>>(), [&run]);
    assert!(world.host.quarantined(&other().tenant, None, 10).await.unwrap().is_empty(), "of one tenant only");
    assert!(world.host.readiness().ready, "one tree is not the host");

    let refused =
        world.host.pause(&who(), &run, PauseRun { reason: None, drain: DrainPolicy::Immediate }).await.unwrap_err();
    assert_eq!(refused.code, code::RUN_QUARANTINED);
    assert_eq!(refused.details["cause"], "step_panicked");
}

#[tokio::test]
async fn it_stays_so_after_a_restart_until_it_is_released_and_then_goes_on_where_it_was() {
    let poison = Poison::default();
    let (world_before, run) = poisoned(&poison, "flow").await;
    let log = world_before.store.records(&run, 0, 100).await.unwrap().len();
    let clock = Arc::clone(&world_before.clock);
    let disk = world_before.stop().await;

    let steps = poison.steps();
    let world = World::open(disk, clock, poison.options()).await;
    pass(&world).await;
    assert_eq!(poison.steps(), steps, "nobody steps it");
    assert!(world.snapshot(&run).await.quarantine.is_some());
    assert_eq!(world.store.records(&run, 0, 100).await.unwrap().len(), log, "being in quarantine is no event");

    // Released while it is still bad: back it goes.
    world.host.release(&who(), &run).await.unwrap();
    pass(&world).await;
    assert_eq!(poison.steps(), steps + 2);
    assert!(world.snapshot(&run).await.quarantine.is_some());

    poison.cure();
    assert_eq!(world.host.release(&other(), &run).await.unwrap_err().code, code::RUN_NOT_FOUND);
    world.host.release(&who(), &run).await.unwrap();
    pass(&world).await;
    let snapshot = world.snapshot(&run).await;
    assert_eq!((snapshot.status, snapshot.quarantine), (RunStatus::Completed, None));
    assert_eq!(world.host.release(&who(), &run).await.unwrap_err().code, code::RUN_CONFLICT, "a second click");
    assert_eq!(world.host.count_quarantined().await.unwrap(), 0);
}

#[tokio::test]
async fn a_tree_is_cancelled_whole_with_a_terminal_event_each() {
    let poison = Poison::default();
    let (world, run) = poisoned(&poison, "parent").await;
    let child = world.rows().await.into_iter().find(|row| row.root.as_ref() == Some(&run)).expect("a child").id;
    let held = world.snapshot(&child).await.quarantine.expect("the child is in quarantine with its tree");
    assert_eq!((held.root_run_id, held.run_id), (run.clone(), child.clone()));

    // Named by any of its runs, and more than once.
    let steps = poison.steps();
    world.host.cancel(&who(), &child, Some("enough".to_owned())).await.unwrap();
    world.settle().await;
    assert_eq!(world.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Cancelled);
    for id in [&run, &child] {
        let log = world.store.records(id, 0, 100).await.unwrap();
        let ends = log.iter().filter(|record| record.kind == "run.cancelled").count();
        assert_eq!((ends, log.last().unwrap().kind.as_str()), (1, "run.cancelled"), "{id}");
        assert_eq!(world.status(id).await, RunStatus::Cancelled);
    }
    assert_eq!(poison.steps(), steps, "nothing of it went on by itself");
    assert!(world.snapshot(&run).await.quarantine.is_none());
    assert_eq!(world.host.count_quarantined().await.unwrap(), 0);
}

/// Half the runs are bad, and all are picked up at the same moment.
#[tokio::test]
async fn a_restart_with_many_bad_runs_picks_up_all_the_good_ones() {
    let poison = Poison::default();
    let before = world(&poison, Disk::default()).await;
    let mut runs = Vec::new();
    for number in 0..60 {
        let run = before.start("flow").await;
        if number % 2 == 0 {
            poison.in_run(&run);
        }
        runs.push(run);
    }
    let clock = Arc::clone(&before.clock);
    let disk = before.stop().await;
    clock.advance(5000);
    let world = World::open(disk, clock, poison.options()).await;
    pass(&world).await;
    for (number, run) in runs.iter().enumerate() {
        let snapshot = world.snapshot(run).await;
        let expected = if number % 2 == 0 { (RunStatus::Running, true) } else { (RunStatus::Completed, false) };
        assert_eq!((snapshot.status, snapshot.quarantine.is_some()), expected, "run {number}");
    }
    assert_eq!(world.host.count_quarantined().await.unwrap(), 30);
}

/// What a log holds is its tenant's; one that was damaged, or written by a newer build, does not fold.
#[tokio::test]
async fn a_log_that_does_not_fold_is_left_alone_and_can_be_ended_by_hand() {
    let poison = Poison::default();
    let before = world(&poison, Disk::default()).await;
    let run = before.start("flow").await;
    before.settle().await;
    let clock = Arc::clone(&before.clock);
    let mut disk = before.stop().await;
    disk.spoil(&run, 1);
    let store = Arc::new(MemoryStore::from_disk(disk));
    // With names of its own for the runs it starts.
    let world = World::seeded(Arc::clone(&store) as _, store, clock, poison.options(), seed() + 1).await;
    let good = world.start("flow").await;
    pass(&world).await;
    assert_eq!(world.status(&good).await, RunStatus::Completed);
    let held = world.host.quarantine(&tenant(), &run).await.unwrap().expect("in quarantine");
    assert_eq!(held.cause, "does_not_fold");

    assert_eq!(world.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Cancelled);
    let row = world.rows().await.into_iter().find(|row| row.id == run).unwrap();
    assert_eq!(row.status, RunStatus::Cancelled);
    let log = world.store.records(&run, 0, 100).await.unwrap();
    assert_eq!(log.last().unwrap().kind.as_str(), "run.cancelled");
    assert_eq!(world.host.quarantine(&tenant(), &run).await.unwrap(), None);
}

/// A record that reads back and is not what was written is as bad the next time: no second try, and no answer from it.
#[tokio::test]
async fn a_damaged_log_puts_its_tree_in_quarantine_and_is_not_served() {
    let poison = Poison::default();
    let before = world(&poison, Disk::default()).await;
    let (run, other) = (before.start("flow").await, before.start("flow").await);
    let ended = before.start("flow").await;
    before.settle().await;
    let clock = Arc::clone(&before.clock);
    let mut disk = before.stop().await;
    disk.damage(&run, 1);
    let store = Arc::new(MemoryStore::from_disk(disk));
    let world = World::seeded(Arc::clone(&store) as _, store, clock, poison.options(), seed() + 1).await;
    pass(&world).await;
    for whole in [&other, &ended] {
        assert_eq!(world.status(whole).await, RunStatus::Completed, "others go on");
    }
    let held = world.host.quarantine(&tenant(), &run).await.unwrap().expect("in quarantine");
    assert_eq!((held.cause.as_str(), held.run.as_str()), ("storage_damaged", run.as_str()));
    assert!(held.detail.contains("sequence 1"), "{}", held.detail);
    let refused =
        world.host.pause(&who(), &run, PauseRun { drain: DrainPolicy::Immediate, reason: None }).await.unwrap_err();
    assert_eq!(refused.code, code::RUN_QUARANTINED);
    assert!(world.store.records(&run, 0, 100).await.is_err());
    assert_eq!(world.store.records(&run, 0, 1).await.unwrap().len(), 1, "what comes before it is whole");

    // Ended all the same, and one that had ended before is told of when it is read.
    assert_eq!(world.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Cancelled);
    let clock = Arc::clone(&world.clock);
    let mut disk = world.stop().await;
    disk.damage(&ended, 2);
    // What a checkpoint still knows of it is right, and may be shown.
    disk.forget_checkpoints();
    let store = Arc::new(MemoryStore::from_disk(disk));
    let world = World::seeded(Arc::clone(&store) as _, store, clock, poison.options(), seed() + 2).await;
    assert!(world.store.records(&ended, 0, 100).await.is_err());
    let shown = world.host.snapshot(&tenant(), &ended).await;
    match shown {
        // What its row knows, and why there is no more.
        Ok(shown) => {
            assert_eq!(shown.quarantine.expect("in quarantine").cause, "storage_damaged");
            assert!(shown.variables.is_empty() && shown.outputs.is_none());
        }
        Err(refused) => {
            assert_eq!((refused.code, refused.kind), (code::STORAGE_DAMAGED, baton_runtime::ErrorKind::Conflict));
            assert_eq!(refused.details["sequence"], json!(2));
            assert!(refused.message.contains("baton storage check"), "{refused}");
        }
    }
}

/// What a run is made of is not what was written: it is not driven by something else, and others are.
#[tokio::test]
async fn a_damaged_definition_puts_only_what_is_made_of_it_in_quarantine() {
    let poison = Poison::default();
    let before = world(&poison, Disk::default()).await;
    before.register(Flow::chain("other", &[("a", "core.noop", json!({}))])).await;
    let (run, other) = (before.start("flow").await, before.start("other").await);
    let row = before.rows().await.into_iter().find(|row| row.id == run).unwrap();
    let clock = Arc::clone(&before.clock);
    let mut disk = before.stop().await;
    disk.damage_blob(&row.digest);
    let store = Arc::new(MemoryStore::from_disk(disk));
    let world = World::seeded(Arc::clone(&store) as _, store, clock, poison.options(), seed() + 1).await;
    pass(&world).await;
    assert_eq!(world.status(&other).await, RunStatus::Completed, "others go on");
    let held = world.host.quarantine(&tenant(), &run).await.unwrap().expect("in quarantine");
    assert_eq!(held.cause, "storage_damaged");
    assert!(held.detail.contains(&row.digest.to_string()), "{}", held.detail);
}

/// On real threads: steps run where they should, and those that panic take no thread along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_run_on_threads_of_their_own() {
    let elsewhere = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&elsewhere);
    let before = move |row: &RunRow, _: bool| {
        if std::thread::current().name() != Some("baton-step") {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        assert!(!row.tags.iter().any(|tag| tag == "bad"), "poison");
    };
    let threads = StepThreads::with(2).unwrap();
    let options =
        Options { step_threads: Some(threads), before_step: Some(BeforeStep(Arc::new(before))), ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(Flow::chain("now", &[("a", "core.noop", json!({})), ("b", "core.noop", json!({}))])).await;
    for _ in 0..20 {
        let bad = StartRun { tags: vec!["bad".to_owned()], ..request("now") };
        assert!(world.host.start_run(&who(), bad, None).await.is_err());
        let good = world.start("now").await;
        assert_eq!(world.ended(&good).await.status, RunStatus::Completed);
    }
    assert_eq!(elsewhere.load(Ordering::SeqCst), 0, "no step on an async worker");
    world.host.shutdown().await;
}
