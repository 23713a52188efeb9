//! A file gives room back after something was pruned.

use std::path::Path;
use std::time::Duration;

use baton_model::{RunId, Timestamp};
use baton_store::reads::*;
use baton_store::{Journal as _, Pruned, Write};
use baton_store_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::common::{append, row, submit};

const RUNS: usize = 60;

fn pages(dir: &Path) -> (u32, u32) {
    let db = Connection::open(dir.join("baton.db")).unwrap();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    (number("PRAGMA page_count"), number("PRAGMA freelist_count"))
}

fn id(run: usize) -> String {
    format!("run_{run}")
}

/// Some 200 kB each.
async fn fill(store: &SqliteStore) {
    let long = "x".repeat(100_000);
    for run in 0..RUNS {
        let writes = vec![Write::CreateRun(row(&id(run))), append(&id(run), 0, &[&long, &long])];
        submit(store, writes).await.unwrap();
    }
}

async fn prune(store: &SqliteStore, runs: std::ops::Range<usize>) {
    let mark = |run| {
        let pruned = Pruned { at: Timestamp::from_micros(9), log: true };
        Write::Prune { run: RunId::new(id(run)), pruned }
    };
    submit(store, runs.map(mark).collect()).await.unwrap();
}

/// Waits until there is little room left that nobody uses.
async fn shrunk(dir: &Path) -> u32 {
    let small = async {
        loop {
            let (all, free) = pages(dir);
            if free <= 1024 {
                return all;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), small).await.unwrap()
}

#[tokio::test]
async fn a_file_becomes_smaller_by_itself_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    fill(&store).await;
    let (before, _) = pages(dir.path());
    prune(&store, 0..RUNS - 1).await;
    // Somebody writes all the while.
    for turn in 0..50 {
        submit(&store, vec![append(&id(RUNS - 1), 2 + turn, &["{}"])]).await.unwrap();
    }
    let after = shrunk(dir.path()).await;
    assert!(after < before / 2, "{before} pages, then {after}");
    assert_eq!(store.records(&RunId::new(id(RUNS - 1)), 0, 99).await.unwrap().len(), 52);
    store.close().await;
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
    let bytes = std::fs::metadata(dir.path().join("baton.db")).unwrap().len();
    assert!(bytes <= u64::from(after) * 4096, "{bytes} bytes, {after} pages");
}

#[tokio::test]
async fn what_was_left_in_the_middle_goes_on_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    fill(&store).await;
    prune(&store, 0..RUNS).await;
    store.close().await;
    let store = SqliteStore::open(dir.path()).unwrap();
    shrunk(dir.path()).await;
    store.close().await;
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
}

/// A file from before this has no map of its pages.
#[tokio::test]
async fn an_old_file_keeps_its_size_until_it_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    fill(&store).await;
    let busy = SqliteStore::compact(dir.path()).unwrap_err().to_string();
    assert!(busy.contains("in use") || busy.contains("another") || busy.contains("lock"), "{busy}");
    store.close().await;
    let db = Connection::open(dir.path().join("baton.db")).unwrap();
    db.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    assert_eq!(db.query_row("PRAGMA auto_vacuum", [], |row| row.get::<_, u32>(0)).unwrap(), 0);
    drop(db);

    let store = SqliteStore::open(dir.path()).unwrap();
    prune(&store, 0..RUNS - 1).await;
    submit(&store, vec![append(&id(RUNS - 1), 2, &["{}"])]).await.unwrap();
    store.close().await;
    let (_, free) = pages(dir.path());
    assert!(free > 1024, "{free}");
    let done = SqliteStore::compact(dir.path()).unwrap();
    assert!(done.after < done.before / 5, "{done:?}");
    assert_eq!(SqliteStore::compact(dir.path()).unwrap().after, done.after, "twice is once");
    let store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(store.records(&RunId::new(id(RUNS - 1)), 0, 99).await.unwrap().len(), 3);
    fill_more(&store).await;
    prune(&store, RUNS..RUNS + 60).await;
    shrunk(dir.path()).await;
    store.close().await;
    assert!(SqliteStore::compact(&dir.path().join("nowhere")).is_err());
}

async fn fill_more(store: &SqliteStore) {
    let long = "y".repeat(100_000);
    for run in RUNS..RUNS + 60 {
        let writes = vec![Write::CreateRun(row(&id(run))), append(&id(run), 0, &[&long, &long])];
        submit(store, writes).await.unwrap();
    }
}
