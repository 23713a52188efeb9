//! What the database refuses again and again stops the run whose it is, and nobody else.

use std::pin::Pin;

use baton_model::RunId;
use baton_store::conformance::sample::{append, record, row, submit};
use baton_store::conformance::turns::hold_writer;
use baton_store::reads::*;
use baton_store::{Chains, Commit, CommitError, Journal as _, Shared as _, StoredRecord, Write};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;

const RUNS: [&str; 3] = ["run_a", "run_b", "run_c"];

async fn with_runs(database: &Database) -> PostgresStore {
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    submit(&store, RUNS.map(|id| Write::CreateRun(row(id))).into()).await.unwrap();
    store
}

/// A record to each run, each a part of its own. Says why `run_b` was refused.
async fn a_round(store: &PostgresStore, seq: u64) -> String {
    let seqs = [seq, 0, seq];
    let parts = RUNS.iter().zip(seqs).map(|(id, seq)| (vec![append(row(id), seq, 1)], Chains::default()));
    let refused = store.submit(Commit::of_parts(store.generation(), parts)).await;
    let Err(CommitError::Refused { run, reason }) = refused else { panic!("{refused:?}") };
    assert_eq!(run, Some(RunId::new("run_b")), "{reason}");
    let mut lengths = Vec::new();
    for id in RUNS {
        lengths.push(store.records(&RunId::new(id), 0, 9).await.map(|records| records.len() as u64).unwrap_or(0));
    }
    assert_eq!(lengths, [seq + 1, 0, seq + 1], "the others go on");
    assert_eq!(store.recover().await.unwrap(), 1, "and so does the generation");
    reason
}

#[tokio::test]
async fn a_record_that_is_in_the_way_of_one_run_stops_that_one() {
    let Some(database) = Database::fresh().await else { return };
    let store = with_runs(&database).await;
    database
        .execute("INSERT INTO events (run, seq, at, kind, body) VALUES ('run_b', 0, 1, 'node.started', '{}')")
        .await;
    for seq in 0..2 {
        let reason = a_round(&store, seq).await;
        assert!(reason.contains("the log of run_b") && reason.contains("23505"), "{reason}");
    }
    database.execute("DELETE FROM events WHERE run = 'run_b'").await;
    submit(&store, vec![append(row("run_b"), 0, 1)]).await.unwrap();
    assert_eq!(store.suspects().await.unwrap(), [], "nobody died of it");
    store.close().await;
}

/// The same for a rule that only some rows break.
#[tokio::test]
async fn an_index_of_somebody_elses_that_refuses_one_run_stops_that_one() {
    let Some(database) = Database::fresh().await else { return };
    let store = with_runs(&database).await;
    database.execute("CREATE TABLE taken (run TEXT PRIMARY KEY); INSERT INTO taken VALUES ('run_b')").await;
    database
        .execute(
            "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO taken VALUES (NEW.run) ON CONFLICT DO NOTHING;
             IF NEW.run = 'run_b' THEN INSERT INTO taken VALUES (NEW.run); END IF;
             RETURN NEW; END $$;
         CREATE TRIGGER take BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION take()",
        )
        .await;
    let reason = a_round(&store, 0).await;
    assert!(reason.contains("the log of run_b") && reason.contains("23505"), "{reason}");
    store.close().await;
}

#[tokio::test]
async fn a_row_that_does_not_move_stops_its_run() {
    let Some(database) = Database::fresh().await else { return };
    let store = with_runs(&database).await;
    database
        .execute(
            "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TRIGGER stay BEFORE UPDATE ON runs FOR EACH ROW WHEN (OLD.id = 'run_b') EXECUTE FUNCTION stay()",
        )
        .await;
    for seq in 0..2 {
        let reason = a_round(&store, seq).await;
        assert!(reason.contains("the log of run_b") && reason.contains("does not find"), "{reason}");
    }
    store.close().await;
}

/// Whoever was written beside it need not wait until it is known what was wrong with it.
#[tokio::test]
async fn what_is_written_is_told_before_the_culprit_is_found() {
    let Some(database) = Database::fresh().await else { return };
    let store = with_runs(&database).await;
    database.execute("ALTER TABLE events ADD CHECK (body <> 'poison')").await;
    // While it is looked for there is another limit for statements than usual. Then it waits for what this test holds.
    database
        .execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('statement_timeout') <> '30s' THEN
                 PERFORM set_config('lock_timeout', '0', true);
                 PERFORM pg_advisory_xact_lock(4711);
             END IF;
             RETURN NEW; END $$;
         CREATE TRIGGER wait BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.body = 'poison') EXECUTE FUNCTION wait()",
        )
        .await;
    let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("SELECT pg_advisory_lock(4711)").await.unwrap();

    let held = hold_writer(&store);
    let first = submit(&store, vec![Write::CreateRun(row("run_first"))]);
    held.reached.recv().unwrap();
    let before = submit(&store, vec![append(row("run_a"), 0, 1)]);
    let Write::Append { row: moved, expected, .. } = append(row("run_b"), 0, 1) else { panic!("an append") };
    let records = vec![StoredRecord { body: "poison".to_owned(), ..record(0) }];
    let mut culprit = submit(&store, vec![Write::Append { row: moved, expected, records }]);
    let after = submit(&store, vec![append(row("run_c"), 0, 1)]);
    drop(held.open);
    for written in [first, before, after] {
        written.await.unwrap();
    }
    let now = std::future::poll_fn(|context| std::task::Poll::Ready(Pin::new(&mut culprit).poll(context)));
    assert!(now.await.is_pending(), "it is still looked for");
    client.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let refused = culprit.await;
    let Err(CommitError::Refused { run, reason }) = refused else { panic!("{refused:?}") };
    assert_eq!(run, Some(RunId::new("run_b")));
    assert!(reason.contains("the log of run_b") && reason.contains("23514"), "{reason}");
    assert_eq!(store.recover().await.unwrap(), 1);
    drop(client);
    connection.await.unwrap().unwrap();
    store.close().await;
}
