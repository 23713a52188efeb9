//! The process dies, or the disk fails, after every single commit while forks are made and go on: what was acknowledged
//! is there, and the next process finishes it.

use crate::common;
use crate::forking;

use std::sync::Arc;

use baton_model::{RunId, RunStatus};
use baton_runtime::ForkRun;
use baton_store::Disk;
use baton_store_sqlite::SqliteStore;
use baton_testkit::SimClock;
use common::{World, accept, in_time, options, tenant};
use forking::library::{self, Case};
use forking::{branch_at, long, over, reopened, replay_from};
use serde_json::Value;

/// More crashes than any of this has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 200;

/// The first fork of a run, if a life before this one got as far as making it.
async fn made(world: &World, run: &RunId) -> Option<RunId> {
    world.reader.forks(run).await.unwrap().into_iter().next()
}

/// What happens to a fork in one life: it is made, unless it is there, and everything is seen through.
async fn fork_and_see(world: &World, run: &RunId, request: &ForkRun) -> Option<RunId> {
    let fork = match made(world, run).await {
        Some(fork) => fork,
        None => world.try_fork(run, request.clone()).await.ok()?,
    };
    world.see_through().await;
    Some(fork)
}

/// Dies after `commits` commits. `None` when it was all over before.
async fn crashed(
    disk: Disk,
    clock: &Arc<SimClock>,
    run: &RunId,
    request: &ForkRun,
    commits: u64,
    records_ahead: usize,
) -> Option<Disk> {
    let world = reopened(disk, Arc::clone(clock), 1, options(records_ahead)).await;
    world.settle().await;
    world.store.crash_after(commits);
    let died = tokio::select! {
        // Whoever asks a dying process for a fork may still hear that there will be none.
        fork = fork_and_see(&world, run, request) => fork.is_none(),
        () = world.store.crashed() => true,
    };
    let disk = world.stop().await;
    died.then_some(disk)
}

fn cases() -> Vec<Case> {
    let wanted = ["a child", "an approval", "a delay", "a supervisor of parallel workers", "memory and files"];
    library::all().into_iter().filter(|case| wanted.contains(&case.name)).collect()
}

/// What two lives of a fork must agree on: its events without the names of its own children.
fn types(log: &[Value]) -> Vec<(Value, Value)> {
    log.iter().map(|event| (event["type"].clone(), event["nodeId"].clone())).collect()
}

async fn crash_everywhere(request: impl Fn(u64) -> ForkRun, records_ahead: usize) {
    for case in cases() {
        let (world, run) = case.played().await;
        let length = world.length(&run).await;
        let request = request(length / 2);
        let source = world.log_of(&run).await;
        let disk = world.stop().await;
        let calm = reopened(disk.clone(), Arc::default(), 1, options(records_ahead)).await;
        let fork = fork_and_see(&calm, &run, &request).await.unwrap();
        let (expected, status) = (calm.log_of(&fork).await, calm.status(&fork).await);
        calm.stop().await;
        for commits in 0.. {
            assert!(commits < MOST_CRASHES, "{}: never ends", case.name);
            let context = format!("{}, {:?} at {}, crashed after {commits}", case.name, request.mode, request.from_seq);
            let clock = Arc::new(SimClock::default());
            let Some(left) = crashed(disk.clone(), &clock, &run, &request, commits, records_ahead).await else {
                assert!(commits >= 2, "{context}: too few places to crash at");
                break;
            };
            let world = reopened(left, clock, 2, options(records_ahead)).await;
            world.settle().await;
            let before = made(&world, &run).await;
            assert_eq!(before.is_some(), commits > 0, "{context}: made in the first commit or not at all");
            let fork = in_time(&context, fork_and_see(&world, &run, &request)).await.unwrap();
            let log = world.log_of(&fork).await;
            if request.mode == baton_model::ForkMode::Replay {
                assert_eq!(log, source, "{context}");
            } else {
                assert_eq!(types(&log), types(&expected), "{context}");
            }
            assert_eq!(world.status(&fork).await, status, "{context}");
            world.verified(&fork, &context).await;
            for row in world.rows().await {
                assert!(row.status.is_terminal() && !row.busy && row.wake_at.is_none(), "{context}: {row:?}");
            }
            assert!(world.open_interrupts().await.is_empty(), "{context}");
            assert_eq!(world.log_of(&run).await, source, "{context}: the source is as it was");
            world.stop().await;
        }
    }
}

#[tokio::test]
async fn a_replay_survives_every_crash() {
    crash_everywhere(replay_from, 512).await;
}

#[tokio::test]
async fn a_branch_survives_every_crash() {
    crash_everywhere(branch_at, 1).await;
}

#[tokio::test]
async fn a_branch_that_runs_ahead_survives_every_crash() {
    crash_everywhere(branch_at, 512).await;
}

#[tokio::test]
async fn a_replay_goes_on_where_it_was_left() {
    let (world, run) = long().await;
    let source = world.log_of(&run).await;
    let clock = Arc::clone(&world.clock);
    let disk = world.stop().await;
    for commits in 1..4 {
        let world = reopened(disk.clone(), Arc::clone(&clock), 1, options(512)).await;
        world.settle().await;
        world.store.crash_after(commits);
        let replay = world.fork(&run, replay_from(500)).await;
        in_time("dying", world.store.crashed()).await;
        let left = world.row(&replay).await;
        assert!(!left.status.is_terminal() && left.busy, "{left:?}");
        assert_eq!(left.next_seq > 500, commits > 1, "some of it is there: {}", left.next_seq);
        let world = reopened(world.stop().await, Arc::clone(&clock), 2, options(512)).await;
        world.ended(&replay).await;
        assert_eq!(world.log_of(&replay).await, source, "after {commits}");
        world.stop().await;
    }
}

/// The disk fails for a while, and the process lives on.
#[tokio::test]
async fn a_failing_disk_delays_a_fork_and_loses_nothing() {
    let (world, run) = long().await;
    let source = world.log_of(&run).await;
    let (clock, disk) = (Arc::clone(&world.clock), world.stop().await);
    for (commits, request) in (0..4).flat_map(|commits| [(commits, replay_from(1500)), (commits, branch_at(3600))]) {
        let context = format!("{:?}, failing after {commits}", request.mode);
        let world = reopened(disk.clone(), Arc::clone(&clock), 1, options(64)).await;
        world.settle().await;
        world.store.fail_after(commits);
        let forked = world.try_fork(&run, request.clone()).await;
        assert_eq!(forked.is_ok(), commits > 0, "{context}: {forked:?}");
        world.settle().await;
        assert!(made(&world, &run).await.is_some() == forked.is_ok(), "{context}: acknowledged is durable");
        world.store.heal();
        for _ in 0..20 {
            world.clock.advance(1000);
            world.settle().await;
        }
        assert!(world.host.readiness().ready, "{context}");
        let fork = match forked {
            Ok(fork) => fork,
            Err(_) => world.fork(&run, request).await,
        };
        assert_eq!(world.ended(&fork).await.status, RunStatus::Completed, "{context}");
        let log = world.log_of(&fork).await;
        assert_eq!(types(&log), types(&source), "{context}");
        world.verified(&fork, &context).await;
        world.stop().await;
    }
}

/// The same on a real file: forks, restarts, forks of forks.
#[tokio::test(flavor = "multi_thread")]
async fn forks_live_in_a_real_file() {
    let folder = tempfile::tempdir().unwrap();
    let clock: Arc<SimClock> = Arc::default();
    let open = async |life: u64| {
        let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
        over(store, Arc::default(), Arc::clone(&clock), life, options(512)).await
    };
    let world = open(1).await;
    world.register(library::mindful("mindful")).await;
    let run = world.start("mindful").await;
    world.waiting(&run).await;
    let waits = world.length(&run).await;
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.ended(&run).await;
    let source = world.log_of(&run).await;
    let branch = world.fork(&run, branch_at(waits)).await;
    world.waiting(&branch).await;
    let mut replays = Vec::new();
    for from in 0..=source.len() as u64 {
        replays.push(world.replayed(&run, from).await);
    }
    world.host.shutdown().await;
    drop(world);
    assert!(SqliteStore::check(folder.path()).unwrap().is_sound());

    let world = open(2).await;
    for replay in &replays {
        assert_eq!(world.log_of(replay).await, source);
    }
    assert_eq!(world.status(&branch).await, RunStatus::WaitingApproval);
    assert_eq!(world.looked(&branch, waits - 1).await, world.looked(&run, waits - 1).await);
    let twig = world.fork(&branch, branch_at(waits - 1)).await;
    for fork in [&branch, &twig] {
        world.waiting(fork).await;
        world.resolve(fork, "gate", accept()).await.unwrap();
        assert_eq!(world.ended(fork).await.status, RunStatus::Completed);
        let log = world.log_of(fork).await;
        assert_eq!(types(&log), types(&source));
        let verified = world.host.verify(&tenant(), fork).await.unwrap();
        assert!(verified.difference.is_none(), "{verified:?}");
        let replay = world.replayed(fork, 3).await;
        assert_eq!(world.log_of(&replay).await, log);
    }
    assert_eq!(world.reader.forks(&run).await.unwrap().len(), replays.len() + 1);
    world.host.shutdown().await;
    drop(world);
    assert!(SqliteStore::check(folder.path()).unwrap().is_sound());
}
