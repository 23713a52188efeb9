//! What the database does not take, told apart from a database that is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::{NodeId, RunId, TenantId, Timestamp, WorkflowId};
use baton_store::conformance::sample::{append, notes, put, row, submit};
use baton_store::reads::*;
use baton_store::{
    Chains, Change, Commit, CommitError, Committed, InterruptRow, Journal as _, LostPart, Observer, Shared as _,
    StoredRecord, VersionedStoreCommitted, Write,
};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;
use parking_lot::Mutex;

fn poisoned(id: &str, expected: u64) -> Write {
    let Write::Append { row, expected, mut records } = append(row(id), expected, 2) else { panic!("an append") };
    records[1] = StoredRecord { body: "poison".to_owned(), ..records[1].clone() };
    Write::Append { row, expected, records }
}

fn refused(result: Result<(), CommitError>) -> (Option<RunId>, String) {
    match result {
        Err(CommitError::Refused { run, reason }) => (run, reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_names_the_run_and_spares_the_others() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    database.execute("ALTER TABLE events ADD CHECK (body <> 'poison')").await;
    database.execute("ALTER TABLE changes ADD CHECK (key <> 'poison')").await;
    for id in ["run_a", "run_b"] {
        submit(&store, vec![Write::CreateRun(row(id))]).await.unwrap();
    }
    // Queued together, they share a transaction, and are told apart all the same.
    let before =
        submit(&store, vec![append(row("run_a"), 0, 1), Write::Change { ledger: notes(), change: put(1, "k") }]);
    let change = Write::Change { ledger: notes(), change: put(2, "poison") };
    let alone = store.submit(Commit::new(1, vec![change]));
    let between = submit(&store, vec![append(row("run_a"), 1, 1)]);
    let culprit = submit(&store, vec![append(row("run_a"), 2, 1), poisoned("run_b", 0)]);
    let after = submit(&store, vec![append(row("run_a"), 3, 1)]);
    before.await.unwrap();
    let (run, reason) = refused(alone.await);
    assert!(run.is_none() && reason.contains("memory notes of acme") && reason.contains("23514"), "{reason}");
    between.await.unwrap();
    let (run, reason) = refused(culprit.await);
    assert_eq!(run, Some(RunId::new("run_b")));
    assert!(reason.contains("the log of run_b"), "{reason}");
    assert!(matches!(after.await, Err(CommitError::Conflict { .. })), "judged by itself");
    let lengths = [store.records(&RunId::new("run_a"), 0, 9).await, store.records(&RunId::new("run_b"), 0, 9).await];
    assert_eq!(lengths.map(|records| records.unwrap().len()), [2, 0]);
    assert_eq!(store.recover().await.unwrap(), 1, "the generation goes on");
    assert_eq!(store.suspects().await.unwrap(), [], "nobody died of it");
    submit(&store, vec![append(row("run_b"), 0, 1)]).await.unwrap();
    store.close().await;
}

/// What made every host fail, one after the other: an index has no room for such a name.
#[tokio::test]
async fn a_node_with_a_name_of_any_length_can_ask() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    let mut number = 1_u32;
    let name: String = std::iter::repeat_with(|| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + (number >> 24) as u8 % 90)
    })
    .take(6_400)
    .collect();
    let asked = InterruptRow {
        run: RunId::new("run_a"),
        tenant: TenantId::new("acme"),
        workflow: WorkflowId::new("echo"),
        node: NodeId::new(name.clone()),
        interrupt_id: "int_1".to_owned(),
        key: name.clone(),
        kind: "approval".to_owned(),
        data: serde_json::Value::Null,
        requested_at: Timestamp::from_micros(1),
        expires_at: None,
    };
    submit(&store, vec![Write::CreateRun(row("run_a")), Write::OpenInterrupt(asked.clone())]).await.unwrap();
    assert_eq!(store.interrupt(&asked.run, &asked.node).await.unwrap(), Some(asked.clone()));
    assert_eq!(store.interrupt(&asked.run, &NodeId::new(&name[..6_399])).await.unwrap(), None);
    // A claim is named after a memory scope, which is as long as people like.
    assert_eq!(store.claim(&name).await.unwrap(), baton_store::Claim::Mine);
    submit(&store, vec![Write::ReleaseClaim { name }]).await.unwrap();
    submit(&store, vec![Write::CloseInterrupt { run: asked.run.clone(), node: asked.node.clone() }]).await.unwrap();
    assert_eq!(store.interrupt(&asked.run, &asked.node).await.unwrap(), None);
    store.close().await;
}

/// Whatever is written fails then, and whoever wrote it is not at fault.
#[tokio::test]
async fn a_database_that_does_not_understand_or_allow_blames_nobody() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a"))]).await.unwrap();
    database.execute("ALTER TABLE events RENAME COLUMN body TO another").await;
    let lost = submit(&store, vec![append(row("run_a"), 0, 1)]).await;
    assert!(matches!(lost, Err(CommitError::Unavailable { .. })), "{lost:?}");
    database.execute("ALTER TABLE events RENAME COLUMN another TO body").await;
    store.recover().await.unwrap();
    store.adopt_tree(&RunId::new("run_a")).await.unwrap();
    submit(&store, vec![append(row("run_a"), 0, 1)]).await.unwrap();

    // The same for a right that is taken away: as somebody who has it not.
    database.execute("CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE insufficient_privilege; END $$").await;
    database.execute("CREATE TRIGGER forbid BEFORE INSERT ON events EXECUTE FUNCTION forbid()").await;
    let lost = submit(&store, vec![append(row("run_a"), 1, 1)]).await;
    assert!(matches!(lost, Err(CommitError::Unavailable { .. })), "{lost:?}");
    store.close().await;
}

/// Somebody else's run must not be put in quarantine for it.
#[tokio::test]
async fn what_belongs_to_nobody_is_blamed_on_nobody() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
    database.execute("ALTER TABLE changes ADD CHECK (key <> 'poison')").await;
    for id in ["run_a", "run_b"] {
        submit(&store, vec![Write::CreateRun(row(id))]).await.unwrap();
    }
    let of_nobody = || Write::Change { ledger: notes(), change: Change { run: None, ..put(1, "poison") } };
    let parts = [vec![append(row("run_a"), 0, 1)], vec![of_nobody()], vec![append(row("run_b"), 0, 1)]];
    let of = |parts: Vec<Vec<Write>>| Commit::of_parts(1, parts.into_iter().map(|part| (part, Chains::default())));
    let (run, reason) = refused(store.submit(of(parts.into())).await);
    assert!(run.is_none() && reason.contains("memory notes of acme"), "{reason}");
    // What was made with a run is that run's.
    let parts = [vec![append(row("run_a"), 1, 1)], vec![append(row("run_b"), 1, 1), of_nobody()]];
    let (run, _) = refused(store.submit(of(parts.into())).await);
    assert_eq!(run, Some(RunId::new("run_b")));
    let lengths = [store.records(&RunId::new("run_a"), 0, 9).await, store.records(&RunId::new("run_b"), 0, 9).await];
    assert_eq!(lengths.map(|records| records.unwrap().len()), [2, 1], "the others are written");
    store.close().await;
}

/// Trying one write after the other would take longer than anybody waits for a database.
#[tokio::test]
async fn the_culprit_of_a_long_commit_is_found_in_a_slow_database() {
    const RUNS: usize = 600;
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
    let ids: Vec<String> = (0..RUNS).map(|number| format!("run_{number:04}")).collect();
    submit(&store, ids.iter().map(|id| Write::CreateRun(row(id))).collect()).await.unwrap();
    database.execute("ALTER TABLE events ADD CHECK (body <> 'poison')").await;
    database
        .execute("CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.05); RETURN NULL; END $$")
        .await;
    database
        .execute("CREATE TRIGGER dawdle BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION dawdle()")
        .await;
    let writes = ids.iter().enumerate().map(
        |(number, id)| {
            if number == RUNS - 3 { poisoned(id, 0) } else { append(row(id), 0, 1) }
        },
    );
    let (run, _) = refused(submit(&store, writes.collect()).await);
    assert_eq!(run, Some(RunId::new(ids[RUNS - 3].as_str())));
    store.close().await;
}

/// Panics when it hears of a commit, once, and notes what failed.
#[derive(Default)]
struct Clumsy {
    panicked: AtomicBool,
    failures: Mutex<Vec<CommitError>>,
}

impl Observer for Clumsy {
    fn committed(&self, _: &[Committed], _: &[VersionedStoreCommitted]) {
        assert!(self.panicked.swap(true, Ordering::SeqCst), "a defect");
    }
    fn lost(&self, parts: &[LostPart]) {
        unreachable!("{parts:?}");
    }
    fn failed(&self, _: u64, error: &CommitError) {
        self.failures.lock().push(error.clone());
    }
}

#[tokio::test]
async fn a_writer_that_panics_ends_the_generation_and_goes_on() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    let clumsy = Arc::new(Clumsy::default());
    store.observe(Arc::clone(&clumsy) as Arc<dyn Observer>);
    let first = submit(&store, vec![Write::CreateRun(row("run_a")), append(row("run_a"), 0, 1)]);
    let second = submit(&store, vec![append(row("run_a"), 1, 1)]);
    assert!(matches!(first.await, Err(CommitError::Unavailable { .. })), "nobody can say what became of it");
    assert!(second.await.is_err());
    let failures = clumsy.failures.lock().clone();
    assert!(matches!(failures.as_slice(), [CommitError::Unavailable { .. }]), "{failures:?}");
    assert_eq!(store.recover().await.unwrap(), 2);
    store.adopt_tree(&RunId::new("run_a")).await.unwrap();
    let next = store.run(&RunId::new("run_a")).await.unwrap().unwrap().next_seq;
    submit(&store, vec![append(row("run_a"), next, 1)]).await.unwrap();
    store.close().await;
}
