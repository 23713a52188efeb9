use crate::common;

use baton_model::{Digest, RunId, RunStatus, Timestamp};
use baton_store::reads::*;
use baton_store::{CommitError, RunRow, VersionedStoreId, Write};
use baton_store_sqlite::SqliteStore;
use common::{append, bodies, change, hold_writer, notes, row, submit};

#[tokio::test]
async fn what_is_queued_while_the_disk_is_busy_shares_a_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let (reached, open) = hold_writer(&store);
    let mut tickets = vec![submit(&store, vec![Write::CreateRun(row("run_a"))])];
    reached.recv().unwrap();
    tickets.extend((0..512).map(|seq| submit(&store, vec![append("run_a", seq, &["{}"])])));
    drop(open);
    for ticket in tickets {
        ticket.await.unwrap();
    }
    assert_eq!(store.transactions(), 3, "one for the first commit, two of 256 for the rest");
    assert_eq!(bodies(&store, "run_a").await.len(), 512);
}

#[tokio::test]
async fn a_light_tenant_overtakes_a_heavy_ones_backlog() {
    let dir = tempfile::tempdir().unwrap();
    baton_store::conformance::turns::a_light_tenant_overtakes_a_backlog(&SqliteStore::open(dir.path()).unwrap()).await;
}

#[tokio::test]
async fn a_conflict_inside_a_transaction_spares_the_commits_around_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let (reached, open) = hold_writer(&store);
    let created = submit(&store, vec![Write::CreateRun(row("run_a"))]);
    reached.recv().unwrap();
    let blob = Write::PutBlob { digest: Digest::of_bytes("x"), bytes: b"x".to_vec() };
    let before = submit(&store, vec![append("run_a", 0, &["1", "2"]), Write::CreateRun(row("run_b"))]);
    let moved = submit(&store, vec![append("run_b", 0, &["3"])]);
    let refused = submit(&store, vec![blob, append("run_a", 1, &["no"])]);
    let behind = submit(&store, vec![append("run_a", 2, &["4"])]);
    drop(open);

    assert_eq!(created.await, Ok(()));
    assert_eq!((before.await, moved.await), (Ok(()), Ok(())));
    assert_eq!(refused.await, Err(CommitError::Conflict { run: RunId::new("run_a"), expected: 1, actual: 2 }));
    assert_eq!(behind.await, Ok(()));
    assert_eq!(store.transactions(), 2, "they were one transaction");
    assert_eq!(bodies(&store, "run_a").await, ["1", "2", "4"]);
    assert_eq!(bodies(&store, "run_b").await, ["3"]);
    assert_eq!(store.blob(&Digest::of_bytes("x")).await.unwrap(), None, "the refused commit left nothing");
}

#[tokio::test]
async fn a_run_that_ended_still_refuses_a_stale_append_in_the_same_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let (reached, open) = hold_writer(&store);
    let created = submit(&store, vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["1"])]);
    reached.recv().unwrap();
    let Write::Append { row: mut last, expected, records } = append("run_a", 1, &["2"]) else { unreachable!() };
    last.status = RunStatus::Completed;
    let ended = submit(&store, vec![Write::Append { row: last, expected, records }]);
    let stale = submit(&store, vec![append("run_a", 1, &["again"])]);
    drop(open);

    assert_eq!((created.await, ended.await), (Ok(()), Ok(())));
    assert_eq!(stale.await, Err(CommitError::Conflict { run: RunId::new("run_a"), expected: 1, actual: 2 }));
    assert_eq!(bodies(&store, "run_a").await, ["1", "2"]);
}

#[tokio::test]
async fn a_change_of_status_is_kept_when_the_same_transaction_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let (reached, open) = hold_writer(&store);
    let created = submit(&store, vec![Write::CreateRun(row("run_a"))]);
    reached.recv().unwrap();
    let pause = |write| match write {
        Write::Append { row, expected, records } => {
            let row =
                RunRow { status: RunStatus::Paused, busy: false, wake_at: Some(Timestamp::from_micros(9)), ..row };
            Write::Append { row, expected, records }
        }
        other => other,
    };
    let paused = submit(&store, vec![pause(append("run_a", 0, &["1"]))]);
    let noted = submit(&store, vec![pause(append("run_a", 1, &["2"]))]);
    drop(open);

    assert_eq!((created.await, paused.await, noted.await), (Ok(()), Ok(()), Ok(())));
    assert_eq!(store.transactions(), 2);
    let found = store.run(&RunId::new("run_a")).await.unwrap().unwrap();
    assert_eq!((found.status, found.busy, found.next_seq), (RunStatus::Paused, false, 2));
    assert_eq!(found.wake_at, Some(Timestamp::from_micros(9)));
    assert_eq!(store.unfinished(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_versioned_store_crowded_out_of_memory_goes_on_in_the_same_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let (reached, open) = hold_writer(&store);
    let first = submit(&store, vec![change(1, "k")]);
    reached.recv().unwrap();
    let mut tickets = vec![submit(&store, vec![change(2, "k"), change(3, "k")])];
    // More versioned stores than the writer remembers.
    for commit in 0..250 {
        let scopes = (0..40).map(|n| VersionedStoreId::memory(&"acme".into(), format!("{commit}/{n}")));
        let writes = scopes.map(|ledger| match change(1, "k") {
            Write::Change { change, .. } => Write::Change { ledger, change },
            other => other,
        });
        tickets.push(submit(&store, writes.collect()));
    }
    tickets.push(submit(&store, vec![change(4, "k")]));
    let refused = submit(&store, vec![change(4, "k")]);
    drop(open);

    first.await.unwrap();
    for ticket in tickets {
        ticket.await.unwrap();
    }
    assert_eq!(refused.await, Err(CommitError::VersionConflict { ledger: notes(), wanted: 4, actual: 4 }));
    assert_eq!(store.transactions(), 2, "they were one transaction");
    assert_eq!(store.versioned_head(&notes()).await.unwrap(), 4);
    let report = SqliteStore::check(dir.path()).unwrap();
    assert!(report.is_sound() && report.ledgers == 10_001, "{report:?}");
}
