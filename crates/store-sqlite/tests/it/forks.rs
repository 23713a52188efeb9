//! A file with forks in it holds together, and stays what it was when it is opened again.

use crate::common;

use baton_model::{ForkMode, Origin, Overlay, RunId, SideEffects, Timestamp, Versions};
use baton_store::reads::*;
use baton_store::{RunRow, VersionedStoreId, Write};
use baton_store_sqlite::{Gap, SqliteStore};
use common::{append, change, notes, row, submit};

fn fork() -> RunRow {
    let origin = Origin {
        source: RunId::new("run_a"),
        seq: 2,
        requested: None,
        mode: ForkMode::Branch,
        at: Timestamp::from_millis(9),
        moment: None,
        length: None,
        versions: Versions { memory: 1, workspace: 0 },
        overlay: Overlay::default(),
        side_effects: SideEffects::Simulated,
        workers: None,
    };
    RunRow { origin: Some(origin), next_seq: 2, ..row("run_b") }
}

#[tokio::test]
async fn a_fork_survives_and_is_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let forked = VersionedStoreId { scope: "forked".to_owned(), ..notes() };
    {
        let store = SqliteStore::open(dir.path()).unwrap();
        let source = vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["1", "2", "3"]), change(1, "k")];
        submit(&store, source).await.unwrap();
        let ledger = Write::ForkVersionedStore { ledger: forked.clone(), base: notes(), version: 1 };
        submit(&store, vec![Write::CreateRun(fork()), ledger]).await.unwrap();
    }
    let report = SqliteStore::check(dir.path()).unwrap();
    assert!(report.is_sound(), "a fork that has no records yet is whole: {report:?}");
    {
        let store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(store.run(&RunId::new("run_b")).await.unwrap(), Some(fork()));
        assert_eq!(store.versioned_base(&forked).await.unwrap(), Some((notes(), 1)));
        let Write::Change { change, .. } = change(2, "k") else { panic!() };
        let own = Write::Change { ledger: forked.clone(), change };
        let Write::Append { row, expected, records } = append("run_b", 2, &["3", "4", "5"]) else { panic!() };
        let row = RunRow { origin: fork().origin, ..row };
        submit(&store, vec![Write::Append { row, expected, records }, own]).await.unwrap();
    }
    let report = SqliteStore::check(dir.path()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let vandal = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    vandal.execute("DELETE FROM events WHERE seq = 3", []).unwrap();
    let broken = SqliteStore::check(dir.path()).unwrap();
    let gap = Gap { run: RunId::new("run_b"), next_seq: 5, events: 2, last: Some(4) };
    assert_eq!(broken.gaps, [gap], "a real gap is still one");
}
