//! One process per directory, whatever becomes of the files in it.

use baton_store::reads::*;
use baton_store::{Commit, CommitError, Error, Journal, Write};
use baton_store_sqlite::SqliteStore;

use crate::common::{append, bodies, row, submit};

fn refused(opened: Result<SqliteStore, Error>) -> String {
    match opened {
        Err(Error::Locked { pid, .. }) => pid,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lock_file_that_is_deleted_or_replaced_lets_nobody_in() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("baton.lock");
    let store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(refused(SqliteStore::open(dir.path())), std::process::id().to_string());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(refused(SqliteStore::open(dir.path())), "unknown", "whoever it is, it is somebody");
    assert!(!file.exists(), "and nothing was made to look as if");
    std::fs::write(&file, "4711\n").unwrap();
    assert_eq!(refused(SqliteStore::open(dir.path())), "4711", "another file is no other directory");
    submit(&store, vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    store.close().await;
    SqliteStore::open(dir.path()).unwrap();
}

#[tokio::test]
async fn a_version_that_locks_the_file_alone_is_respected() {
    let dir = tempfile::tempdir().unwrap();
    let older = std::fs::File::create(dir.path().join("baton.lock")).unwrap();
    older.lock().unwrap();
    refused(SqliteStore::open(dir.path()));
    drop(older);
    SqliteStore::open(dir.path()).unwrap();
}

#[tokio::test]
async fn a_directory_that_is_renamed_stays_locked_and_its_old_name_is_another_directory() {
    let parent = tempfile::tempdir().unwrap();
    let (old, new) = (parent.path().join("data"), parent.path().join("moved"));
    let store = SqliteStore::open(&old).unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["{}"])]).await.unwrap();
    assert_eq!(bodies(&store, "run_a").await.len(), 1);
    std::fs::rename(&old, &new).unwrap();
    refused(SqliteStore::open(&new));
    // Another host begins anew under the old name, which is nothing of ours any more.
    let other = SqliteStore::open(&old).unwrap();
    submit(&other, vec![Write::CreateRun(row("run_b")), append("run_b", 0, &["{}", "{}"])]).await.unwrap();
    assert_eq!(bodies(&store, "run_a").await.len(), 1, "connections stay with their files");
    // After a failure everything is opened again, by name.
    store.limit_growth(Some(0)).await.unwrap();
    let long = "x".repeat(1 << 20);
    let full = store.submit(Commit::new(1, vec![append("run_a", 1, &[&long])])).await;
    assert!(matches!(full, Err(CommitError::Unavailable { .. })), "{full:?}");
    let error = store.recover().await.unwrap_err().to_string();
    assert!(error.contains("moved or replaced"), "{error}");
    assert_eq!(store.generation(), 1, "and nothing is written into the other's file");
    assert_eq!(other.run(&row("run_a").id).await.unwrap(), None);
    assert_eq!(bodies(&other, "run_b").await.len(), 2);
}
