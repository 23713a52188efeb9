//! From a folder to a database and back: everything arrives, and nothing twice.

use std::collections::BTreeSet;

use baton_store::archive::{Archive, Table};
use baton_store::{Commit, Journal as _};
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::SqliteStore;
use baton_testkit::postgres::Database;

use crate::differential::history::{OPS, Pen};

/// Digests of everything in a table, a small page at a time.
async fn digests(store: &impl Archive, table: Table) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.page(table, after.as_ref(), 3).await.unwrap();
        assert!(page.len() <= 3);
        all.extend(page.iter().map(|entry| entry.digest().as_str().to_owned()));
        match page.into_iter().next_back() {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    assert_eq!(all.len() as u64, store.count(table).await.unwrap(), "{}", table.as_str());
    all
}

async fn copy(from: &impl Archive, to: &impl Archive) {
    for table in Table::ALL {
        let mut after = None;
        loop {
            let page = from.page(table, after.as_ref(), 4).await.unwrap();
            let Some(last) = page.last().cloned() else { break };
            to.restore(page.clone()).await.unwrap();
            to.restore(page).await.expect("what is there already stays");
            after = Some(last);
        }
    }
}

async fn same(a: &impl Archive, b: &impl Archive) {
    for table in Table::ALL {
        let (left, right) = (digests(a, table).await, digests(b, table).await);
        assert_eq!(left.iter().collect::<BTreeSet<_>>(), right.iter().collect::<BTreeSet<_>>(), "{}", table.as_str());
        assert!(!left.is_empty(), "the history has no {}", table.as_str());
        if table == Table::Runs {
            assert_eq!(left, right, "runs keep their order");
        }
    }
}

#[tokio::test]
async fn everything_moves_to_a_database_and_back() {
    let Some(database) = Database::fresh().await else { return };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = SqliteStore::open(here.path()).unwrap();
    // A long and mixed history, always the same.
    let mut number = 7_u32;
    let mut next = || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 24) as u8
    };
    for turn in 0..=200 {
        // Something of every table is there in the end.
        let last = vec![
            (27, 0, 0, 1),
            (28, 0, 0, 1),
            (29, 2, 0, 0),
            (30, 0, 0, 0),
            (33, 0, 0, 0),
            (37, 0, 0, 0),
            (37, 1, 0, 0),
            (37, 2, 0, 0),
        ];
        let ops = if turn == 200 { last } else { (0..3).map(|_| (next() % OPS, next(), next(), next())).collect() };
        for commit in Pen::new(&folder).await.write(&[(true, ops)]) {
            let writes = commit.into_iter().flat_map(|part| part.writes).collect();
            let _ = folder.submit(Commit::new(folder.generation(), writes)).await;
        }
    }
    let postgres = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
    copy(&folder, &postgres).await;
    same(&folder, &postgres).await;
    let back = SqliteStore::open(there.path()).unwrap();
    copy(&postgres, &back).await;
    same(&folder, &back).await;
    let report = PostgresStore::check(&Settings::new(database.url.clone())).await.unwrap();
    assert_eq!((report.empty, report.problems), (false, Vec::new()));
    assert!(SqliteStore::check(there.path()).unwrap().is_sound());

    database.execute("DELETE FROM events WHERE seq = 1").await;
    let report = PostgresStore::check(&Settings::new(database.url.clone())).await.unwrap();
    assert!(!report.problems.is_empty(), "a gap is found");
}
