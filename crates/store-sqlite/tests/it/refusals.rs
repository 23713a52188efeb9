//! What the database does not take, told apart from a disk that fails.

use std::sync::Arc;

use baton_model::RunId;
use baton_store::conformance::sample::notes;
use baton_store::reads::*;
use baton_store::{
    Chains, Commit, CommitError, Committed, Journal, LostPart, Observer, VersionedStoreCommitted, Write, WriteChain,
};
use baton_store_sqlite::SqliteStore;
use parking_lot::Mutex;

use crate::common::{append, bodies, change, hold_writer, row, submit};

/// Rules of the database that some text breaks.
fn forbid(dir: &std::path::Path) {
    let vandal = rusqlite::Connection::open(dir.join("baton.db")).unwrap();
    for (table, event, column) in
        [("events", "INSERT", "body"), ("changes", "INSERT", "key"), ("runs", "UPDATE", "error_code")]
    {
        vandal
            .execute_batch(&format!(
                "CREATE TRIGGER refuse_{table} BEFORE {event} ON {table} WHEN NEW.{column} = 'poison'
                 BEGIN SELECT RAISE(ABORT, 'no poison'); END"
            ))
            .unwrap();
    }
}

fn refused(result: Result<(), CommitError>) -> (Option<RunId>, String) {
    match result {
        Err(CommitError::Refused { run, reason }) => (run, reason),
        other => panic!("{other:?}"),
    }
}

/// What was lost, and what ended the generation.
#[derive(Default)]
struct Failures(Mutex<Vec<CommitError>>, Mutex<Vec<LostPart>>);

impl Observer for Failures {
    fn committed(&self, _: &[Committed], _: &[VersionedStoreCommitted]) {}
    fn lost(&self, parts: &[LostPart]) {
        self.1.lock().extend_from_slice(parts);
    }
    fn failed(&self, _: u64, error: &CommitError) {
        self.0.lock().push(error.clone());
    }
}

#[tokio::test]
async fn a_refusal_names_the_run_and_spares_everybody_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    forbid(dir.path());
    for id in ["run_a", "run_b", "run_c"] {
        submit(&store, vec![Write::CreateRun(row(id))]).await.unwrap();
    }
    let (reached, open) = hold_writer(&store);
    let held = submit(&store, vec![append("run_c", 0, &["{}"])]);
    reached.recv().unwrap();
    let before = submit(&store, vec![append("run_a", 0, &["{}"])]);
    let culprit = submit(&store, vec![append("run_a", 1, &["{}"]), append("run_b", 0, &["{}", "poison"])]);
    let after = submit(&store, vec![append("run_c", 1, &["{}"])]);
    let failures = Arc::new(Failures::default());
    store.observe(Arc::clone(&failures) as Arc<dyn Observer>);
    drop(open);
    held.await.unwrap();
    before.await.unwrap();
    let (run, reason) = refused(culprit.await);
    assert_eq!(run, Some(RunId::new("run_b")));
    assert!(reason.contains("the log of run_b") && reason.contains("no poison"), "{reason}");
    after.await.unwrap();
    assert!(failures.0.lock().is_empty(), "the generation goes on");
    assert!(matches!(failures.1.lock().as_slice(), [LostPart { error: CommitError::Refused { .. }, .. }]));
    assert_eq!((bodies(&store, "run_a").await.len(), bodies(&store, "run_b").await.len()), (1, 0));

    assert_eq!(store.recover().await.unwrap(), 1);
    submit(&store, vec![append("run_a", 1, &["{}"])]).await.unwrap();
    submit(&store, vec![append("run_b", 0, &["{}"]), change(1, "fine")]).await.unwrap();
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
}

#[tokio::test]
async fn a_refusal_of_what_stands_alone_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    forbid(dir.path());
    submit(&store, vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    let (reached, open) = hold_writer(&store);
    let held = submit(&store, vec![append("run_a", 0, &["{}"])]);
    reached.recv().unwrap();
    let before = submit(&store, vec![append("run_a", 1, &["{}"]), change(1, "fine")]);
    let alone = store.submit(Commit::new(1, vec![change(2, "poison")]));
    let after = submit(&store, vec![append("run_a", 2, &["{}"]), change(2, "fine")]);
    drop(open);
    held.await.unwrap();
    before.await.unwrap();
    let (run, reason) = refused(alone.await);
    assert!(run.is_none() && reason.contains("memory notes of acme"), "{reason}");
    after.await.unwrap();
    assert_eq!((bodies(&store, "run_a").await.len(), store.versioned_head(&notes()).await.unwrap()), (3, 2));

    // A row is written at the end of the transaction, and is somebody's all the same.
    let Write::Append { mut row, expected, records } = append("run_a", 3, &["{}"]) else { return };
    row.error_code = Some("poison".to_owned());
    let (run, _) = refused(store.submit(Commit::new(1, vec![Write::Append { row, expected, records }])).await);
    assert_eq!(run, Some(RunId::new("run_a")));
    submit(&store, vec![append("run_a", 3, &["{}"])]).await.unwrap();
}

/// Somebody else's run must not be put in quarantine for it.
#[tokio::test]
async fn what_belongs_to_nobody_is_blamed_on_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    forbid(dir.path());
    for id in ["run_a", "run_b"] {
        submit(&store, vec![Write::CreateRun(row(id))]).await.unwrap();
    }
    let of_nobody = |version, key| {
        let Write::Change { ledger, change } = change(version, key) else { unreachable!("a change") };
        Write::Change { ledger, change: baton_store::Change { run: None, ..change } }
    };
    let of = |parts: Vec<Vec<Write>>| Commit::of_parts(1, parts.into_iter().map(|part| (part, Chains::default())));
    let parts = [vec![append("run_a", 0, &["{}"])], vec![of_nobody(1, "poison")], vec![append("run_b", 0, &["{}"])]];
    let (run, reason) = refused(store.submit(of(parts.into())).await);
    assert!(run.is_none() && reason.contains("memory notes of acme"), "{reason}");
    assert_eq!((bodies(&store, "run_a").await.len(), bodies(&store, "run_b").await.len()), (1, 1));
    // What was made with a run is that run's.
    let parts = [vec![append("run_a", 1, &["{}"])], vec![append("run_b", 1, &["{}"]), of_nobody(1, "poison")]];
    let (run, _) = refused(store.submit(of(parts.into())).await);
    assert_eq!(run, Some(RunId::new("run_b")));
    assert_eq!((bodies(&store, "run_a").await.len(), bodies(&store, "run_b").await.len()), (2, 1));
}

/// What a transaction remembers of a part must go with it: rows that are written at the end, versions that have grown,
/// runs that were created.
#[tokio::test]
async fn a_part_that_is_undone_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    forbid(dir.path());
    submit(&store, vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["{}"])]).await.unwrap();
    let (a, b) = (WriteChain::of_tree(RunId::new("run_a")), WriteChain::of_tree(RunId::new("run_b")));
    let (a, b) = (Arc::new(a), Arc::new(b));
    let part = |chain: &Arc<WriteChain>, writes| (writes, Chains::link(Arc::clone(chain)));
    let commit = Commit::of_parts(
        1,
        [
            part(&b, vec![Write::CreateRun(row("run_b")), append("run_b", 0, &["{}"]), change(1, "first")]),
            // Refused by its last write, after a run was created, a row moved and a version taken.
            part(
                &a,
                vec![
                    Write::CreateRun(row("run_c")),
                    append("run_c", 0, &["{}"]),
                    append("run_a", 1, &["{}"]),
                    change(2, "second"),
                    change(3, "poison"),
                ],
            ),
            part(&b, vec![append("run_b", 1, &["{}"]), change(2, "second")]),
            part(&a, vec![append("run_a", 1, &["{}"])]),
        ],
    );
    refused(store.submit(commit).await);
    assert_eq!((a.is_broken(), b.is_broken()), (true, false));
    let lengths = [bodies(&store, "run_a").await, bodies(&store, "run_b").await, bodies(&store, "run_c").await];
    assert_eq!(lengths.map(|bodies| bodies.len()), [1, 2, 0]);
    assert_eq!(store.versioned_head(&notes()).await.unwrap(), 2);
    assert!(store.run(&RunId::new("run_c")).await.unwrap().is_none());
    submit(&store, vec![append("run_a", 1, &["{}"]), change(3, "third")]).await.unwrap();
    store.close().await;
    assert!(SqliteStore::check(dir.path()).unwrap().is_sound());
}

/// Panics when it hears of a commit, once, and notes what failed.
#[derive(Default)]
struct Clumsy {
    panicked: std::sync::atomic::AtomicBool,
    failures: Failures,
}

impl Observer for Clumsy {
    fn committed(&self, _: &[Committed], _: &[VersionedStoreCommitted]) {
        assert!(self.panicked.swap(true, std::sync::atomic::Ordering::SeqCst), "a defect");
    }
    fn lost(&self, parts: &[LostPart]) {
        self.failures.lost(parts);
    }
    fn failed(&self, generation: u64, error: &CommitError) {
        self.failures.failed(generation, error);
    }
}

#[tokio::test]
async fn a_writer_that_panics_ends_the_generation_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let clumsy = Arc::new(Clumsy::default());
    store.observe(Arc::clone(&clumsy) as Arc<dyn Observer>);
    let first = submit(&store, vec![Write::CreateRun(row("run_a")), append("run_a", 0, &["{}"])]);
    let second = submit(&store, vec![append("run_a", 1, &["{}"])]);
    assert!(matches!(first.await, Err(CommitError::Unavailable { .. })), "nobody can say what became of it");
    assert!(second.await.is_err());
    let failures = clumsy.failures.0.lock().clone();
    assert!(matches!(failures.as_slice(), [CommitError::Unavailable { .. }]), "{failures:?}");
    assert_eq!(store.recover().await.unwrap(), 2);
    let next = bodies(&store, "run_a").await.len() as u64;
    submit(&store, vec![append("run_a", next, &["{}"])]).await.unwrap();
    store.close().await;
}
