//! One fault at a time.

use baton_faulty_disk::{Fault, Op, Part, What};
use baton_model::RunId;
use baton_store::reads::*;
use baton_store::{CommitError, Error, Journal as _};

use super::world::{RUNS, World, after_power_loss, open, reopened, reopened_or_empty, run, seeds, whole_commits};

/// Whatever fails while a commit is written: it is refused, reads go on, and the next one after recovery is taken.
#[tokio::test]
async fn a_commit_that_fails_is_refused_and_the_store_goes_on_in_the_same_process() {
    for (op, what) in
        [(Op::Write, What::Fail), (Op::Write, What::Short), (Op::Write, What::Full), (Op::Sync, What::Fail)]
    {
        let mut world = World::new(1).await;
        let before = world.acknowledged;
        world.disk.inject(Fault::lasting(op, Part::Wal, what));
        let error = world.commit(20_000).await.unwrap_err();
        assert!(matches!(error, CommitError::Unavailable { .. }), "{op:?} {what:?}: {error}");
        assert_eq!(world.commit(8).await, Err(CommitError::Stale), "{op:?} {what:?}");
        for number in 0..RUNS {
            let records = world.store.records(&RunId::new(run(number)), 0, 9).await.unwrap();
            assert_eq!(records.len(), 1, "{op:?} {what:?}: reads go on, and show what is acknowledged");
        }
        let still = world.store.recover().await;
        assert!(matches!(still, Err(Error::Unavailable { .. })), "{op:?} {what:?}: {still:?}");
        world.disk.heal();
        world.recover(before + 1).await.unwrap();
        world.commit(20_000).await.unwrap();
        let (count, _left) = after_power_loss(&world.disk, 5).await.unwrap();
        assert_eq!(count, world.acknowledged, "{op:?} {what:?}");
    }
}

/// The operating system forgets what it could not sync, and says at the next sync that all is well.
#[tokio::test]
async fn after_one_failed_sync_nothing_that_was_in_doubt_is_built_on() {
    for seed in seeds(4) {
        let mut world = World::new(seed).await;
        for round in 0..3 {
            world.disk.inject(Fault::once(Op::Sync, Part::Wal, What::Fail));
            let failed = world.commit(3000).await.unwrap_err();
            assert!(matches!(failed, CommitError::Unavailable { .. }), "{failed}");
            world.recover(world.acknowledged + 1).await.unwrap();
            world.commit(5000).await.unwrap();
            let (count, _left) = after_power_loss(&world.disk, seed + round).await.unwrap();
            assert_eq!(count, world.acknowledged, "seed {seed}");
        }
    }
}

/// A commit whose sync failed, and then the process dies with nothing in between. The next one finds all of it or nothing.
#[tokio::test]
async fn a_death_right_after_a_failed_sync_leaves_all_or_nothing() {
    for seed in seeds(4) {
        let mut world = World::new(seed).await;
        world.disk.inject(Fault::once(Op::Sync, Part::Wal, What::Fail));
        world.commit(9000).await.unwrap_err();
        // The files as the operating system shows them: nobody lost power.
        let left = tempfile::tempdir().unwrap();
        for name in ["baton.db", "baton.db-wal"] {
            std::fs::copy(world.dir.path().join(name), left.path().join(name)).unwrap();
        }
        let count = reopened(left.path()).await.unwrap();
        assert!((world.acknowledged..=world.acknowledged + 1).contains(&count), "seed {seed}: {count}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_until_there_is_room_and_keeps_what_fits() {
    let mut world = World::new(3).await;
    for _ in 0..3 {
        world.disk.fill_up(60_000);
        let mut attempts = 0;
        while world.commit(9000).await.is_ok() {
            attempts += 1;
            assert!(attempts < 100, "the disk never filled up");
        }
        assert!(matches!(world.store.recover().await, Err(Error::Unavailable { .. })), "still full");
        assert_eq!(
            world.store.versioned_head(&baton_store::conformance::sample::notes()).await.unwrap(),
            world.acknowledged
        );
        world.disk.heal();
        world.recover(world.acknowledged + 1).await.unwrap();
    }
    let (count, _left) = after_power_loss(&world.disk, 1).await.unwrap();
    assert_eq!(count, world.acknowledged);
}

/// A first start that fails, or whose power goes, at any of its writes. The next one begins where it can.
#[tokio::test]
async fn a_start_that_failed_anywhere_can_be_repeated() {
    // Every sync, and some of the many writes.
    for (op, what, stride) in [(Op::Sync, What::Fail, 1), (Op::Write, What::Full, 37)] {
        for after in (0..).step_by(stride) {
            let dir = tempfile::tempdir().unwrap();
            let disk = baton_faulty_disk::Disk::of(dir.path(), u64::from(after));
            disk.inject(Fault::lasting(op, Part::Wal, what).after(after));
            let first = open(dir.path());
            let left = tempfile::tempdir().unwrap();
            disk.power_loss(u64::from(after), left.path()).unwrap();
            let failed = first.is_err();
            drop(first);
            assert_eq!(reopened_or_empty(left.path()).await, Ok(0), "after the power was lost at {op:?} {after}");
            disk.heal();
            let store = open(dir.path()).unwrap_or_else(|error| panic!("after {op:?} {after} failed: {error}"));
            assert_eq!(whole_commits(&store).await, Ok(0));
            if !failed {
                assert!(after > 0, "nothing was written");
                break;
            }
        }
    }
}

/// The write-ahead log cannot be folded back: it stays, and nothing is lost with it.
#[tokio::test]
async fn a_database_file_that_fails_costs_nothing_while_the_log_is_well() {
    for (op, what) in
        [(Op::Write, What::Fail), (Op::Write, What::Full), (Op::Sync, What::Fail), (Op::Truncate, What::Fail)]
    {
        let mut world = World::new(4).await;
        world.disk.inject(Fault::lasting(op, Part::Database, what));
        for _ in 0..10 {
            world.commit(4000).await.unwrap();
        }
        let acknowledged = world.acknowledged;
        world.store.close().await;
        let (count, _left) = after_power_loss(&world.disk, 2).await.unwrap();
        assert_eq!(count, acknowledged, "{op:?} {what:?}");
        world.disk.heal();
        let store = open(world.dir.path()).unwrap();
        assert_eq!(whole_commits(&store).await, Ok(acknowledged), "{op:?} {what:?}");
    }
}

/// One reader meets an error; the next one does not.
#[tokio::test]
async fn a_read_that_fails_is_an_error_and_not_an_answer() {
    let mut world = World::new(5).await;
    for _ in 0..30 {
        world.commit(9000).await.unwrap();
    }
    let mut failed = 0;
    for after in 0..10 {
        for part in [Part::Database, Part::Wal] {
            // One that has read nothing yet has to.
            let fresh = after_power_loss(&world.disk, after.into()).await.unwrap().1;
            let disk = baton_faulty_disk::Disk::of(fresh.path(), 1);
            let store = open(fresh.path()).unwrap();
            disk.inject(Fault::once(Op::Read, part, What::Fail).after(after));
            match store.records(&RunId::new(run(0)), 0, usize::MAX).await {
                // One more than was acknowledged: whoever looked at what was left has added it.
                Ok(records) => assert_eq!(records.len() as u64, (world.acknowledged + 1).div_ceil(RUNS)),
                Err(Error::Unavailable { .. }) => failed += 1,
                Err(error) => panic!("{error}"),
            }
            disk.heal();
            assert!(whole_commits(&store).await.is_ok());
        }
    }
    assert!(failed > 0, "no read failed");
}

/// A disk that takes its time holds up commits and nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn reads_go_on_while_a_sync_takes_for_ever() {
    let world = World::new(6).await;
    let stall = world.disk.stall(Op::Sync, Part::Wal);
    let mut receipt = Box::pin(world.submit(world.acknowledged, 100));
    let stall = tokio::task::spawn_blocking(move || {
        stall.reached();
        stall
    });
    let stall = stall.await.unwrap();
    for number in 0..RUNS {
        assert_eq!(world.store.records(&RunId::new(run(number)), 0, 9).await.unwrap().len(), 1);
    }
    let now = std::future::poll_fn(|context| std::task::Poll::Ready(receipt.as_mut().poll(context)));
    assert!(now.await.is_pending(), "not synced, so not acknowledged");
    let (count, _left) = after_power_loss(&world.disk, 9).await.unwrap();
    assert!(count <= world.acknowledged + 1);
    drop(stall);
    receipt.await.unwrap();
    let (count, _left) = after_power_loss(&world.disk, 9).await.unwrap();
    assert_eq!(count, world.acknowledged + 1);
}
