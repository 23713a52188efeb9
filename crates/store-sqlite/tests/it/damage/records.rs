//! One thing changed at a time, by somebody who knows SQL: no page is damaged, and still it is noticed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::{ForkMode, Origin, Overlay, RunId, SideEffects, Versions};
use baton_store::archive::{Archive as _, Table};
use baton_store::conformance::sample::{record, sealed};
use baton_store::reads::*;
use baton_store::{CommitError, Error, Journal as _, LogChain, ReadView, RunFilter, RunRow, Write};
use baton_store_sqlite::SqliteStore;
use rusqlite::Connection;

use super::served::{RUNS, everything_of, fill, id, run_row};
use crate::common::{notes, row, submit};

async fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    fill(&store).await;
    store.close().await;
    dir
}

/// Changes the file behind the host's back, and opens it again.
fn changed(dir: &Path, sql: &str) -> SqliteStore {
    spoiled(dir, sql);
    SqliteStore::open(dir).unwrap()
}

fn spoiled(dir: &Path, sql: &str) {
    let file = Connection::open(dir.join("baton.db")).unwrap();
    let rows = file.execute(sql, []).unwrap();
    assert!(rows > 0, "{sql}");
    file.close().unwrap();
}

/// Of the run that everything here happens to.
const LOG: &str = "run = (SELECT run FROM runs WHERE id = 'run_0003')";

#[tokio::test]
async fn whatever_is_changed_of_a_log_is_told_with_its_place() {
    for (what, at) in [
        ("UPDATE events SET body = replace(body, 'sequence', 'Sequence') WHERE LOG AND seq = 2", 2),
        ("UPDATE events SET private = NULL WHERE LOG AND seq = 4", 4),
        ("UPDATE events SET at = at + 1 WHERE LOG AND seq = 0", 0),
        ("UPDATE events SET kind = 'node.failed' WHERE LOG AND seq = 5", 5),
        ("UPDATE events SET part = 3 - part WHERE LOG AND seq = 3", 3),
        ("UPDATE events SET memory = memory + 1 WHERE LOG AND seq = 3", 3),
        ("UPDATE events SET sum = zeroblob(16) WHERE LOG AND seq = 1", 1),
        ("UPDATE events SET sum = NULL WHERE LOG AND seq = 1", 1),
        ("UPDATE events SET sum = NULL WHERE LOG", 5),
        ("DELETE FROM events WHERE LOG AND seq = 2", 2),
        ("DELETE FROM events WHERE LOG AND seq = 5", 5),
        ("DELETE FROM events WHERE LOG", 0),
        // Two of them change places.
        ("UPDATE events SET seq = CASE seq WHEN 1 THEN -2 ELSE -1 END WHERE LOG AND seq IN (1, 2)", 1),
    ] {
        let dir = filled().await;
        let store = changed(dir.path(), &what.replace("LOG", LOG));
        if what.contains("-2") {
            store.close().await;
            drop(store);
            let again = changed(dir.path(), &format!("UPDATE events SET seq = -seq WHERE {LOG} AND seq < 0"));
            told(&again, at, what).await;
        } else {
            told(&store, at, what).await;
        }
        let report = SqliteStore::check(dir.path()).unwrap();
        assert!(report.wrong.iter().any(|line| line.contains("run_0003")), "{what}: {report:?}");
    }
}

async fn told(store: &SqliteStore, at: u64, what: &str) {
    match store.records(&id(3), 0, usize::MAX).await {
        Err(Error::Damaged { run, seq, .. }) => assert_eq!((run, seq), (id(3), at), "{what}"),
        other => panic!("{what}: {other:?}"),
    }
    assert_eq!(store.records(&id(4), 0, usize::MAX).await.unwrap().len(), 9, "others are none the worse for it");
    store.close().await;
}

#[tokio::test]
async fn a_page_from_the_middle_is_compared_with_what_is_before_it() {
    let dir = filled().await;
    let store = changed(dir.path(), &format!("UPDATE events SET body = '{{}}' WHERE {LOG} AND seq = 3"));
    for (from, limit, whole) in [(0, 3, true), (0, 4, false), (3, 1, false), (2, 1, true), (4, 2, true), (1, 5, false)]
    {
        let found = store.records(&id(3), from, limit).await;
        assert_eq!(found.is_ok(), whole, "{from} and {limit}: {found:?}");
    }
}

#[tokio::test]
async fn whatever_is_changed_of_a_row_is_noticed() {
    let run = "WHERE id = 'run_0003'";
    for (what, table) in [
        (format!("UPDATE runs SET workflow = 'other' {run}"), "runs"),
        (format!("UPDATE runs SET workspace_scope = 'x' {run}"), "runs"),
        (format!("UPDATE runs SET status = 'failed' {run}"), "runs"),
        (format!("UPDATE runs SET next_seq = 5 {run}"), "runs"),
        (format!("UPDATE runs SET busy = 1 - busy {run}"), "runs"),
        (format!("UPDATE runs SET wake_at = 7 {run}"), "runs"),
        (format!("UPDATE runs SET summary = '{{}}' {run}"), "runs"),
        (format!("UPDATE runs SET chain = zeroblob(16) {run}"), "runs"),
        (format!("UPDATE runs SET pruned_log = 1 {run}"), "runs"),
        ("UPDATE interrupts SET data = '{}'".to_owned(), "interrupts"),
        ("UPDATE workflows SET name = name || 'x'".to_owned(), "workflows"),
        ("UPDATE replies SET body = body || ' '".to_owned(), "replies"),
        ("UPDATE webhooks SET url = 'https://evil.example'".to_owned(), "webhooks"),
        ("UPDATE quarantine SET cause = cause || 'x'".to_owned(), "quarantine"),
        ("UPDATE annotations SET body = body || ' '".to_owned(), "annotations"),
        ("UPDATE changes SET key = key || 'x'".to_owned(), "changes"),
        ("UPDATE changes SET content = content || 'x' WHERE content IS NOT NULL".to_owned(), "changes"),
        ("UPDATE changes SET expires_at = 5 WHERE content IS NOT NULL".to_owned(), "changes"),
        ("UPDATE ledgers SET version = version + 1".to_owned(), "ledgers"),
        ("UPDATE blobs SET bytes = zeroblob(length(bytes))".to_owned(), "blobs"),
        ("UPDATE spending SET body = replace(body, '1', '2')".to_owned(), "spending"),
        ("UPDATE spending SET seq = seq - 1".to_owned(), "spending"),
        ("UPDATE tokens SET tenant = 'other'".to_owned(), "tokens"),
        ("UPDATE tokens SET expires_at = expires_at + 1 WHERE expires_at IS NOT NULL".to_owned(), "tokens"),
        ("UPDATE tokens SET expires_at = NULL WHERE expires_at IS NOT NULL".to_owned(), "tokens"),
        ("UPDATE run_counts SET count = count + 1".to_owned(), "counts"),
        ("DELETE FROM run_tags WHERE tag = 'tag-3'".to_owned(), "tags"),
    ] {
        let dir = filled().await;
        let before = SqliteStore::open(dir.path()).unwrap();
        let truth = everything_of(&before).await;
        before.close().await;
        drop(before);
        if ["counts", "tags"].contains(&table) {
            spoiled(dir.path(), &what);
            assert!(SqliteStore::open(dir.path()).is_err(), "{what}: derived values are compared at the start");
            assert!(!SqliteStore::check(dir.path()).unwrap().is_sound(), "{what}");
            SqliteStore::accept(dir.path()).unwrap();
            assert!(SqliteStore::check(dir.path()).unwrap().is_sound(), "{what}: made anew");
            continue;
        }
        let store = changed(dir.path(), &what);
        let found = everything_of(&store).await;
        for (question, answer) in &found {
            let same = |truth: &String| answer.as_ref().is_ok_and(|answer| answer == truth);
            let told = answer.is_err() || truth.get(question).and_then(|truth| truth.as_ref().ok()).is_some_and(same);
            assert!(told, "{what}: {question} is {answer:?}");
        }
        store.close().await;
        let report = SqliteStore::check(dir.path()).unwrap();
        assert!(!report.is_sound(), "{what}: {report:?}");
    }
}

/// A budget must not be spent by what a damaged note says: the log says it too.
#[tokio::test]
async fn a_note_of_spending_that_is_damaged_is_as_good_as_none() {
    let dir = filled().await;
    let (run, root) = (RunId::new("run_full"), RunId::new("run_root"));
    let noted = SqliteStore::open(dir.path()).unwrap();
    let whole = noted.run_spending(&run).await.unwrap().unwrap();
    assert_eq!(noted.spending(&root, None, 9).await.unwrap(), [whole]);
    noted.close().await;
    drop(noted);
    let store = changed(dir.path(), "UPDATE spending SET body = replace(body, '1', '2')");
    assert_eq!(store.run_spending(&run).await.unwrap(), None);
    assert_eq!(store.spending(&root, None, 9).await.unwrap(), []);
    store.close().await;
    drop(store);
    let report = SqliteStore::check(dir.path()).unwrap();
    assert!(report.wrong.iter().any(|line| line.starts_with("spending: ")), "{report:?}");
    let accepted = SqliteStore::accept(dir.path()).unwrap();
    assert!(accepted.rebuilt.iter().any(|line| line.contains("spent")), "{accepted:?}");
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound(), "the note is gone");
}

#[tokio::test]
async fn a_list_goes_on_without_what_is_damaged_and_a_tree_does_not() {
    let dir = filled().await;
    let store = changed(dir.path(), "UPDATE runs SET workflow = 'other' WHERE id = 'run_0003'");
    let tenant = run_row(3).tenant;
    let filter = RunFilter { tenant: Some(tenant), limit: 3, ..RunFilter::default() };
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.runs(&RunFilter { cursor, ..filter.clone() }).await.unwrap();
        found.extend(page.items.into_iter().map(|row| row.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 19);
    assert!(!found.contains(&id(3)));
    assert!(matches!(store.run(&id(3)).await, Err(Error::Corrupt { .. })));
    let tree = RunFilter { root: Some(RunId::new("run_root")), limit: 9, ..RunFilter::default() };
    assert!(store.runs(&tree).await.is_ok());
    store.close().await;
    drop(store);
    let store = changed(dir.path(), "UPDATE runs SET current_node = 'x' WHERE root = 'run_root'");
    assert!(matches!(store.runs(&tree).await, Err(Error::Corrupt { .. })), "a tree is whole or not to be had");
}

#[tokio::test]
async fn a_fork_goes_on_from_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let source = RunRow { next_seq: 4, ..row("run_source") };
    let log = sealed(source, 0, (0..4).map(record).collect());
    submit(&store, vec![Write::CreateRun(row("run_source")), log]).await.unwrap();
    let before = store.records(&RunId::new("run_source"), 1, 1).await.unwrap().pop().unwrap();
    let origin = Origin {
        source: RunId::new("run_source"),
        seq: 2,
        requested: None,
        mode: ForkMode::Branch,
        at: before.at,
        moment: None,
        length: None,
        versions: Versions::default(),
        overlay: Overlay::default(),
        side_effects: SideEffects::default(),
        workers: None,
    };
    let fork = RunRow { origin: Some(origin), next_seq: 2, chain: LogChain::after(before.sum), ..row("run_fork") };
    let log = sealed(RunRow { next_seq: 4, ..fork.clone() }, 2, (2..4).map(record).collect());
    submit(&store, vec![Write::CreateRun(fork), log]).await.unwrap();
    let run = RunId::new("run_fork");
    assert_eq!(store.records(&run, 0, 9).await.unwrap().len(), 2);
    assert_eq!(store.records(&run, 3, 9).await.unwrap().len(), 1);
    store.close().await;
    drop(store);
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
    // The whole of the source changed, sums and all: what was forked from it does not follow it any more.
    let file = Connection::open(dir.path().join("baton.db")).unwrap();
    let other = "UPDATE events SET sum = x'00112233445566778899aabbccddeeff' WHERE seq = 1
        AND run = (SELECT run FROM runs WHERE id = 'run_source')";
    assert_eq!(file.execute(other, []).unwrap(), 1);
    file.close().unwrap();
    let report = SqliteStore::check(dir.path()).unwrap();
    assert!(
        report.wrong.iter().any(|line| line.contains("run_fork") && line.contains("does not follow")),
        "{report:?}"
    );
}

#[tokio::test]
async fn records_that_do_not_end_where_the_row_does_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    let Write::Append { mut row, expected, records } =
        sealed(RunRow { next_seq: 1, ..row("run_a") }, 0, vec![record(0)])
    else {
        panic!()
    };
    row.chain.head = None;
    let refused = submit(&store, vec![Write::Append { row, expected, records }]).await;
    assert!(matches!(refused, Err(CommitError::Refused { .. })), "{refused:?}");
    store.close().await;
}

#[tokio::test]
async fn nobody_is_told_of_damage_while_a_log_grows() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
    submit(store.as_ref(), vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    let (done, run) = (Arc::new(AtomicBool::new(false)), RunId::new("run_a"));
    let readers: Vec<_> = (0..3_u64)
        .map(|number| {
            let (store, done, run) = (Arc::clone(&store), Arc::clone(&done), run.clone());
            tokio::spawn(async move {
                let mut looks = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    let from = looks * number % 50;
                    store.records_within(&run, from, 20, 2000).await.unwrap();
                    store.run(&run).await.unwrap();
                    looks += 1;
                }
                looks
            })
        })
        .collect();
    let mut now = row("run_a");
    for seq in 0..400 {
        now.next_seq = seq + 1;
        let Write::Append { row, expected, records } = sealed(now, seq, vec![record(seq)]) else { panic!() };
        now = row.clone();
        submit(store.as_ref(), vec![Write::Append { row, expected, records }]).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    assert_eq!(store.records(&run, 0, usize::MAX).await.unwrap().len(), 400);
    store.close().await;
}

#[tokio::test]
async fn what_is_whole_can_be_copied_past_what_is_not() {
    let dir = filled().await;
    let store = changed(dir.path(), "UPDATE runs SET workflow = 'other' WHERE id IN ('run_0003', 'run_0004')");
    assert!(store.page(Table::Runs, None, 500).await.is_err());
    let (mut after, mut skipped, mut whole, mut damaged) = (None, 0, 0, 0);
    loop {
        match store.row_past(Table::Runs, after.as_ref(), skipped).await {
            Ok(Some(row)) => (after, skipped, whole) = (Some(row), 0, whole + 1),
            Ok(None) => break,
            Err(error) => {
                assert!(error.is_damage(), "{error}");
                (skipped, damaged) = (skipped + 1, damaged + 1);
            }
        }
    }
    assert_eq!((whole, damaged), (RUNS + 4 - 2, 2));
    let view = ReadView { version: 9, ..ReadView::default() };
    assert!(store.versioned_items(&notes(), &view).await.is_ok());
    store.close().await;
}
