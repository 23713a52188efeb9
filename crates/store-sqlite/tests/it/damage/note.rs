//! The note of the last commit: what is lost at the end is missed, and what is whole is not refused.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use baton_store::reads::*;
use baton_store::{Error, Journal as _, RunRow};
use baton_store_sqlite::{SqliteOptions, SqliteStore};

use super::served::{copy, everything_of, fill, id, run_row};
use crate::common::{append, row, submit};

/// What a killed process leaves behind.
async fn killed() -> tempfile::TempDir {
    let (live, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(live.path()).unwrap();
    fill(&store).await;
    copy(live.path(), left.path());
    #[cfg(unix)]
    std::fs::set_permissions(left.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    left
}

fn cut(path: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

fn refusal(dir: &Path) -> String {
    match SqliteStore::open(dir) {
        Err(Error::Corrupt { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_cut_end_is_missed_and_can_be_accepted() {
    let dir = killed().await;
    cut(&dir.path().join("baton.db-wal"), 5000);
    let refused = refusal(dir.path());
    assert!(refused.contains("has lost its end") && refused.contains("baton.db"), "{refused}");
    assert!(!SqliteStore::check(dir.path()).unwrap().is_sound());
    // What is left can be looked at, and is refused again after that.
    let options = SqliteOptions { refuse_damage: false, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(dir.path(), options).unwrap();
    assert!(store.run(&id(0)).await.unwrap().is_some());
    store.close().await;
    refusal(dir.path());

    let accepted = SqliteStore::accept(dir.path()).unwrap();
    assert!(accepted.lost_end.unwrap().contains("are missing"));
    let store = SqliteStore::open(dir.path()).unwrap();
    assert!(everything_of(&store).await.values().all(Result::is_ok), "what is left is whole");
    submit(&store, vec![baton_store::Write::CreateRun(row("run_new")), append("run_new", 0, &["{}"])]).await.unwrap();
    store.close().await;
    drop(store);
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
    assert_eq!(SqliteStore::accept(dir.path()).unwrap().lost_end, None, "there is nothing more to accept");
}

#[tokio::test]
async fn a_log_that_is_gone_or_empty_is_missed() {
    for empty in [true, false] {
        let dir = killed().await;
        let log = dir.path().join("baton.db-wal");
        if empty {
            std::fs::write(&log, []).unwrap()
        } else {
            std::fs::remove_file(&log).unwrap()
        }
        assert!(SqliteStore::open(dir.path()).is_err(), "empty: {empty}");
    }
}

#[tokio::test]
async fn an_older_copy_in_its_place_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![baton_store::Write::CreateRun(row("run_a"))]).await.unwrap();
    store.close().await;
    drop(store);
    let older = std::fs::read(dir.path().join("baton.db")).unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![append("run_a", 0, &["{}"])]).await.unwrap();
    store.close().await;
    drop(store);
    std::fs::write(dir.path().join("baton.db"), older).unwrap();
    assert!(refusal(dir.path()).contains("an older copy"));
}

#[tokio::test]
async fn a_note_that_power_loss_left_behind_refuses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![baton_store::Write::CreateRun(row("run_a"))]).await.unwrap();
    let older = std::fs::read(dir.path().join("baton.commits")).unwrap();
    submit(&store, vec![append("run_a", 0, &["{}"])]).await.unwrap();
    store.close().await;
    drop(store);
    let note = dir.path().join("baton.commits");
    // The note is never synced, so after a power loss any of these may be what is there.
    for left in [Some(older), Some(Vec::new()), Some(vec![0; 98]), None] {
        match &left {
            Some(bytes) => std::fs::write(&note, bytes).unwrap(),
            None => std::fs::remove_file(&note).unwrap(),
        }
        let store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(store.run(&baton_model::RunId::new("run_a")).await.unwrap().unwrap().next_seq, 1);
        store.close().await;
    }
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
}

#[tokio::test]
async fn a_commit_of_nothing_is_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![baton_store::Write::CreateRun(row("run_a"))]).await.unwrap();
    let before = std::fs::read(dir.path().join("baton.commits")).unwrap();
    submit(&store, Vec::new()).await.unwrap();
    assert_eq!(std::fs::read(dir.path().join("baton.commits")).unwrap(), before);
    submit(&store, vec![append("run_a", 0, &["{}"])]).await.unwrap();
    assert_ne!(std::fs::read(dir.path().join("baton.commits")).unwrap(), before);
    store.close().await;
}

/// All files of a folder but those that say who has it open.
fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = files.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    files
        .filter(|(name, _)| !name.ends_with("-shm") && name != "baton.lock")
        .map(|(name, path)| (name, std::fs::read(path).unwrap()))
        .collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn whoever_refuses_leaves_every_byte_as_it_was() {
    type Spoil = fn(&Path);
    let ways: [(&str, Spoil); 5] = [
        ("the log is cut", |dir| cut(&dir.join("baton.db-wal"), 5000)),
        // From here on SQLite makes nothing of the log at all.
        ("the head of the log", |dir| flip(&dir.join("baton.db-wal"), 16)),
        ("the first frame of the log", |dir| flip(&dir.join("baton.db-wal"), 32 + 24 + 100)),
        ("the database is gone", |dir| std::fs::remove_file(dir.join("baton.db")).unwrap()),
        ("the database is empty", |dir| std::fs::write(dir.join("baton.db"), []).unwrap()),
    ];
    for (what, spoil) in ways {
        let dir = killed().await;
        spoil(dir.path());
        let before = bytes(dir.path());
        for _ in 0..2 {
            assert!(SqliteStore::open(dir.path()).is_err(), "{what}");
            assert!(SqliteStore::compact(dir.path()).is_err(), "{what}");
            assert!(SqliteStore::check(dir.path()).map_or(true, |report| !report.is_sound()), "{what}");
            // Nobody looks at what is not there.
            if !what.starts_with("the database") {
                let all = SqliteOptions { refuse_damage: false, ..SqliteOptions::default() };
                if let Ok(store) = SqliteStore::open_with(dir.path(), all) {
                    store.close().await;
                }
            }
            let after = bytes(dir.path());
            let changed: Vec<_> =
                before.keys().chain(after.keys()).filter(|&name| before.get(name) != after.get(name)).collect();
            assert!(changed.is_empty(), "{what}: {changed:?} changed");
        }
    }
}

#[tokio::test]
async fn a_database_that_is_gone_is_not_begun_anew() {
    let dir = killed().await;
    std::fs::remove_file(dir.path().join("baton.db-wal")).unwrap();
    std::fs::remove_file(dir.path().join("baton.db")).unwrap();
    assert!(refusal(dir.path()).contains("is missing"));
    assert!(!dir.path().join("baton.db").exists());
    assert!(SqliteStore::check(dir.path()).unwrap_err().is_damage());
    assert!(SqliteStore::accept(dir.path()).unwrap_err().is_damage(), "there is nothing to go on with");
    std::fs::remove_file(dir.path().join("baton.commits")).unwrap();
    SqliteStore::open(dir.path()).unwrap().close().await;
}

/// Folders of their own, with so many runs.
async fn with_runs(runs: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    for run in 0..runs {
        submit(&store, vec![baton_store::Write::CreateRun(run_row(run))]).await.unwrap();
    }
    store.close().await;
    dir
}

#[tokio::test]
async fn a_note_of_another_database_is_noticed_whichever_is_further() {
    let (few, many) = (with_runs(1).await, with_runs(9).await);
    for (database, note) in [(&few, &many), (&many, &few)] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(database.path().join("baton.db"), dir.path().join("baton.db")).unwrap();
        std::fs::copy(note.path().join("baton.commits"), dir.path().join("baton.commits")).unwrap();
        assert!(refusal(dir.path()).contains("is not the database"));
        assert!(!SqliteStore::check(dir.path()).unwrap().is_sound());
        let accepted = SqliteStore::accept(dir.path()).unwrap();
        assert!(accepted.lost_end.unwrap().contains("another one was put in its place"));
        SqliteStore::open(dir.path()).unwrap().close().await;
        assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
    }
}

#[tokio::test]
async fn a_backup_is_refused_beside_a_newer_note_and_welcome_without() {
    let (dir, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(dir.path()).unwrap();
    submit(&store, vec![baton_store::Write::CreateRun(row("run_a"))]).await.unwrap();
    // Beside the host that is at work, as the guide says.
    let copied = backup.path().join("baton.db");
    rusqlite::Connection::open(dir.path().join("baton.db"))
        .unwrap()
        .execute("VACUUM INTO ?1", [copied.to_str().unwrap()])
        .unwrap();
    submit(&store, vec![append("run_a", 0, &["{}"])]).await.unwrap();
    store.close().await;
    drop(store);

    let fresh = tempfile::tempdir().unwrap();
    std::fs::copy(&copied, fresh.path().join("baton.db")).unwrap();
    let report = SqliteStore::check(fresh.path()).unwrap();
    assert!(report.is_sound() && !report.noted, "whole, and nothing tells more: {report:?}");
    let store = SqliteStore::open(fresh.path()).unwrap();
    assert_eq!(store.run(&baton_model::RunId::new("run_a")).await.unwrap().unwrap().next_seq, 0);
    submit(&store, vec![append("run_a", 0, &["{}"])]).await.unwrap();
    store.close().await;
    drop(store);
    assert!(SqliteStore::check(fresh.path()).unwrap().noted);

    std::fs::copy(&copied, dir.path().join("baton.db")).unwrap();
    assert!(refusal(dir.path()).contains("1 are missing"));
    SqliteStore::accept(dir.path()).unwrap();
    SqliteStore::open(dir.path()).unwrap().close().await;
}

#[tokio::test]
async fn a_folder_and_its_copy_both_go_on() {
    let (dir, other) = (with_runs(3).await, tempfile::tempdir().unwrap());
    copy(dir.path(), other.path());
    for place in [dir.path(), other.path(), dir.path()] {
        let store = SqliteStore::open(place).unwrap();
        let run = store.run(&id(0)).await.unwrap().unwrap();
        let mut row = RunRow { next_seq: run.next_seq + 1, ..run };
        let mut records = vec![baton_store::conformance::sample::record(row.next_seq - 1)];
        row.seal(&mut records);
        let expected = row.next_seq - 1;
        submit(&store, vec![baton_store::Write::Append { row, expected, records }]).await.unwrap();
        store.close().await;
        drop(store);
        assert!(SqliteStore::check(place).unwrap().is_sound());
    }
}

#[tokio::test]
async fn a_note_that_does_not_read_back_is_told_of_and_written_anew() {
    let dir = with_runs(1).await;
    let note = dir.path().join("baton.commits");
    for at in [0, 20, 40, 60, 100] {
        flip(&note, at);
        let report = SqliteStore::check(dir.path()).unwrap();
        assert!(report.wrong.iter().any(|line| line.contains("baton.commits")), "byte {at}: {report:?}");
        SqliteStore::open(dir.path()).unwrap().close().await;
        assert!(SqliteStore::check(dir.path()).unwrap().is_sound(), "byte {at}");
    }
}

#[tokio::test]
async fn a_damaged_number_of_the_last_transaction_is_noticed() {
    for spoil in ["UPDATE commits SET number = number + 1", "DELETE FROM commits"] {
        let dir = with_runs(1).await;
        let file = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
        file.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
        file.execute(spoil, []).unwrap();
        drop(file);
        assert!(refusal(dir.path()).contains("number of the last transaction"), "{spoil}");
        assert!(SqliteStore::check(dir.path()).map_or(true, |report| !report.is_sound()), "{spoil}");
    }
}
