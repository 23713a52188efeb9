use crate::common;

use baton_model::{Digest, RunId};
use baton_store::reads::*;
use baton_store::{Checkpoint, CheckpointWrite, Commit, CommitError, Error, Journal, Store as _, Write};
use baton_store_sqlite::{Gap, SqliteStore, VersionGap};
use common::{append, bodies, change, hold_writer, notes, row, submit};

fn blob(size: usize) -> Write {
    let bytes = vec![7; size];
    Write::PutBlob { digest: Digest::of_bytes(&bytes), bytes }
}

#[tokio::test]
async fn a_new_open_finds_everything_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, closes) in [(0, false), (1, true), (2, false)] {
        let store = SqliteStore::open(dir.path()).unwrap();
        let create = (turn == 0).then(|| Write::CreateRun(row("run_a")));
        let more = [append("run_a", turn, &["{}"]), change(turn + 1, "k")];
        submit(&store, create.into_iter().chain(more).collect()).await.unwrap();
        assert_eq!(store.versioned_head(&notes()).await.unwrap(), turn + 1);
        assert_eq!(bodies(&store, "run_a").await.len() as u64, turn + 1);
        if closes {
            store.close().await;
            assert!(matches!(store.ping().await, Err(Error::Unavailable { .. })), "closed");
            assert!(matches!(store.recover().await, Err(Error::Unavailable { .. })), "closed");
        }
    }
}

#[tokio::test]
async fn what_a_killed_process_leaves_behind_holds_everything_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    for seq in 0..50 {
        submit(&store, vec![append("run_a", seq, &["{}"])]).await.unwrap();
    }
    // The files as they are now, without the shared memory that dies with a process and without a clean close.
    let after = tempfile::tempdir().unwrap();
    for name in ["baton.db", "baton.db-wal", "baton.lock"] {
        std::fs::copy(dir.path().join(name), after.path().join(name)).unwrap();
    }
    let restarted = SqliteStore::open(after.path()).unwrap();
    assert_eq!(bodies(&restarted, "run_a").await.len(), 50);
    submit(&restarted, vec![append("run_a", 50, &["{}"])]).await.unwrap();
}

#[tokio::test]
async fn dropping_writes_what_was_queued() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let ticket = submit(&store, vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["{}"])]);
    drop(store);
    assert_eq!(ticket.await, Ok(()));
    assert_eq!(bodies(&SqliteStore::open(dir.path()).unwrap(), "run_a").await.len(), 1);
}

#[tokio::test]
async fn a_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let owner = SqliteStore::open(dir.path()).unwrap();
    let Err(Error::Locked { path, pid }) = SqliteStore::open(dir.path()) else { panic!("opened twice") };
    assert_eq!(pid, std::process::id().to_string());
    assert_eq!(path, dir.path().display().to_string());
    owner.close().await;
    SqliteStore::open(dir.path()).unwrap();
}

#[test]
fn a_lock_file_left_by_a_dead_process_locks_nobody_out() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("baton.lock"), "4194304999\n").unwrap();
    let _store = SqliteStore::open(dir.path()).unwrap();
    let pid = std::fs::read_to_string(dir.path().join("baton.lock")).unwrap();
    assert_eq!(pid.trim(), std::process::id().to_string(), "the new owner signs");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_acknowledged_and_is_recovered_from() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    store.limit_growth(Some(64)).await.unwrap();

    let body = format!("{:?}", "x".repeat(10_000));
    let mut acknowledged = 0;
    let error = loop {
        match submit(&store, vec![append("run_a", acknowledged, &[&body])]).await {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1000, "the disk never filled up");
    };
    assert!(matches!(error, CommitError::Unavailable { .. }), "{error:?}");
    assert!(acknowledged > 0);
    assert_eq!(submit(&store, vec![append("run_a", acknowledged, &["{}"])]).await, Err(CommitError::Stale));
    assert_eq!(bodies(&store, "run_a").await.len() as u64, acknowledged, "reads go on");
    assert!(matches!(store.recover().await, Err(Error::Unavailable { .. })), "still full");
    assert_eq!(store.generation(), 1);

    store.limit_growth(None).await.unwrap();
    assert_eq!(store.recover().await.unwrap(), 2);
    let old = Commit::new(1, vec![append("run_a", acknowledged, &["{}"])]);
    assert_eq!(store.submit(old).await, Err(CommitError::Stale));
    submit(&store, vec![append("run_a", acknowledged, &["{}"]), blob(1 << 20)]).await.unwrap();
    drop(store);

    let store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(bodies(&store, "run_a").await.len() as u64, acknowledged + 1, "numbering went on");
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
}

#[tokio::test]
async fn a_full_disk_takes_the_whole_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    store.limit_growth(Some(20)).await.unwrap();
    let (reached, open) = hold_writer(&store);
    let created = submit(&store, vec![Write::CreateRun(row("run_a"))]);
    reached.recv().unwrap();
    let small = submit(&store, vec![append("run_a", 0, &["{}"]), change(1, "lost")]);
    let large = submit(&store, vec![append("run_a", 1, &["{}"]), blob(1 << 20)]);
    let behind = submit(&store, vec![append("run_a", 2, &["{}"])]);
    drop(open);

    assert_eq!(created.await, Ok(()), "an earlier transaction");
    assert!(matches!(small.await, Err(CommitError::Unavailable { .. })), "not durable, so not acknowledged");
    assert!(matches!(large.await, Err(CommitError::Unavailable { .. })));
    assert_eq!(behind.await, Err(CommitError::Stale));
    assert_eq!(store.run(&RunId::new("run_a")).await.unwrap().unwrap().next_seq, 0, "no trace of it");
    assert_eq!(store.versioned_head(&notes()).await.unwrap(), 0, "nor of what was written beside it");

    store.limit_growth(None).await.unwrap();
    store.recover().await.unwrap();
    submit(&store, vec![append("run_a", 0, &["1", "2"]), change(1, "kept"), change(2, "kept")]).await.unwrap();
    assert_eq!(bodies(&store, "run_a").await, ["1", "2"], "the writer remembers nothing of what was lost");
    assert_eq!(store.versioned_head(&notes()).await.unwrap(), 2);
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
}

#[tokio::test]
async fn check_finds_a_missing_record_beside_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(SqliteStore::check(dir.path()), Err(Error::Unavailable { .. })), "nothing to check");
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["1", "2", "3"])]).await.unwrap();
    submit(&store, vec![Write::CreateRun(row("run_b"))]).await.unwrap();
    let sound = SqliteStore::check(dir.path()).unwrap();
    assert_eq!((sound.runs, sound.events, sound.is_sound()), (2, 3, true));
    drop(store);

    let vandal = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    vandal.execute("DELETE FROM events WHERE seq = 1", []).unwrap();
    let broken = SqliteStore::check(dir.path()).unwrap();
    assert_eq!(broken.gaps, [Gap { run: RunId::new("run_a"), next_seq: 3, events: 2, last: Some(2) }]);
    assert!(!broken.is_sound());
}

#[tokio::test]
async fn check_finds_a_missing_change() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, (1..=9).map(|version| change(version, "k")).collect()).await.unwrap();
    submit(&store, vec![Write::ForgetHistory { ledger: notes(), below: 5 }]).await.unwrap();
    let sound = SqliteStore::check(dir.path()).unwrap();
    assert_eq!((sound.ledgers, sound.changes, sound.is_sound()), (1, 5, true), "what was forgotten is not missed");
    drop(store);

    let vandal = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    let found = |sql: &str| {
        vandal.execute(sql, []).unwrap();
        SqliteStore::check(dir.path()).unwrap().version_gaps
    };
    let gap = |changes, last| [VersionGap { ledger: notes(), version: 9, forgotten: 5, changes, last: Some(last) }];
    assert_eq!(found("DELETE FROM changes WHERE version = 7"), gap(3, 9));
    assert_eq!(found("UPDATE changes SET version = 7 WHERE version = 9"), gap(3, 8), "the row is ahead");
    assert_eq!(found("UPDATE changes SET version = 10 WHERE version = 7"), gap(3, 10), "the row is behind");
}

#[test]
fn a_file_that_is_no_database_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("baton.db"),
        "this is not a database, but it is long enough to be looked at".repeat(99),
    )
    .unwrap();
    assert!(matches!(SqliteStore::open(dir.path()), Err(Error::Corrupt { .. })));
}

#[test]
fn the_disk_probe_measures_and_cleans_up() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(SqliteStore::fsync_probe(dir.path(), 3).unwrap().len(), 3);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_disk_that_is_full_at_start_is_found_by_a_probe() {
    let dir = tempfile::tempdir().unwrap();
    SqliteStore::open(dir.path()).unwrap().close().await;
    // Migrations leave pages free, and a disk that has some left is not full.
    rusqlite::Connection::open(dir.path().join("baton.db")).unwrap().execute_batch("VACUUM").unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    store.limit_growth(Some(0)).await.unwrap();
    store.ping().await.unwrap();
    assert!(matches!(store.probe().await, Err(Error::Unavailable { .. })), "reading works, writing does not");
    store.recover().await.unwrap_err();
    store.limit_growth(None).await.unwrap();
    store.recover().await.unwrap();
    store.probe().await.unwrap();
    let pages = std::fs::metadata(dir.path().join("baton.db")).unwrap().len();
    for _ in 0..20 {
        store.probe().await.unwrap();
    }
    store.close().await;
    let after = std::fs::metadata(dir.path().join("baton.db")).unwrap().len();
    assert!(after <= pages.max(1) + 64 * 1024, "probes leave nothing behind: {pages} and {after} bytes");
}

/// A cache that the disk has no room for is nobody's trouble.
#[tokio::test]
async fn a_checkpoint_that_finds_no_room_hurts_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let generation = store.generation();
    let create = |name: &str| Commit::new(generation, vec![Write::CreateRun(row(name))]);
    store.submit(create("run_a")).await.unwrap();
    store.limit_growth(Some(100)).await.unwrap();
    let body: Vec<u8> = (0..8 * 1024 * 1024_u32).map(|n| n as u8).collect();
    let checkpoint = Checkpoint {
        run: RunId::new("run_a"),
        seq: 0,
        key: "k".to_owned(),
        chunks: Vec::new(),
        digest: Digest::of_bytes(&body),
        body,
    };
    let put = Write::Checkpoint(CheckpointWrite::Put { checkpoint, chunks: Vec::new() });
    // Between two that have room, perhaps in one transaction with them; and alone.
    let before = store.submit(create("run_b"));
    let large = store.submit(Commit::new(generation, vec![put.clone()]));
    let behind = store.submit(create("run_c"));
    before.await.unwrap();
    assert!(matches!(large.await, Err(CommitError::Unavailable { .. })));
    behind.await.unwrap();
    let alone = store.submit(Commit::new(generation, vec![put])).await;
    assert!(matches!(alone, Err(CommitError::Unavailable { .. })));
    store.submit(create("run_d")).await.unwrap();
    assert_eq!(store.generation(), generation, "it goes on");
    for run in ["run_a", "run_b", "run_c", "run_d"] {
        assert!(store.run(&RunId::new(run)).await.unwrap().is_some(), "{run}");
    }
    store.close().await;
}
