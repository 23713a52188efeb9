//! A search that takes too long costs a name, and nothing else.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;
use baton_store::conformance::sample::{append, row, submit};
use baton_store::reads::*;
use baton_store::{Chains, Commit, CommitError, CommitPart, Journal as _, StoredRecord, Write, WriteChain};
use baton_testkit::postgres::Database;

use crate::statement::Statements;
use crate::transact::{Outcome, Verdict, Work};
use crate::{PostgresStore, Settings};

async fn write(client: &tokio_postgres::Client, commit: &Commit, search: Duration) -> Outcome {
    let parts: Vec<CommitPart<'_>> = commit.parts().collect();
    let (mut work, mut statements) = (Work::of(&parts), Statements::default());
    while work.go_on(client, &mut statements, 0).await.is_some() {}
    assert_eq!(work.verdicts().len(), parts.len(), "all of it is tried before anything is looked for");
    work.end(client, &mut statements, 0, search).await
}

#[tokio::test]
async fn a_search_that_takes_too_long_ends_no_generation() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
    let ids = ["run_a", "run_b", "run_c", "run_d"];
    submit(&store, ids.map(|id| Write::CreateRun(row(id))).into()).await.unwrap();
    database.execute("ALTER TABLE events ADD CHECK (body <> 'poison')").await;
    // Only while it is looked for there is a limit for statements on this connection.
    database
        .execute(
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF current_setting('statement_timeout') <> '0' THEN PERFORM pg_sleep(3600); END IF;
                 RETURN NEW; END $$;
             CREATE TRIGGER dawdle BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION dawdle()",
        )
        .await;
    let poisoned = |id| {
        let Write::Append { row, expected, mut records } = append(row(id), 0, 1) else { return Vec::new() };
        records[0] = StoredRecord { body: "poison".to_owned(), ..records[0].clone() };
        vec![Write::Append { row, expected, records }]
    };
    let chain = Arc::new(WriteChain::of_tree(RunId::new("run_b")));
    let built = Chains { builds_on: vec![Arc::clone(&chain)], ..Chains::default() };
    let parts = [
        (vec![append(row("run_a"), 0, 1)], Chains::default()),
        (poisoned("run_b"), Chains::link(Arc::clone(&chain))),
        (vec![append(row("run_b"), 1, 1)], Chains::link(Arc::clone(&chain))),
        (vec![append(row("run_c"), 0, 1)], built),
        (vec![append(row("run_d"), 0, 1)], Chains::default()),
        (poisoned("run_b"), Chains::default()),
    ];
    let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let outcome = write(&client, &Commit::of_parts(1, parts), Duration::from_millis(200)).await;
    assert!(!outcome.broken && outcome.failure().is_none(), "{outcome:?}");
    let [Verdict::Written, Verdict::Refused(culprit), next, stale, Verdict::Written, Verdict::Refused(second)] =
        outcome.verdicts.as_slice()
    else {
        unreachable!("{outcome:?}")
    };
    for lost in [next, stale] {
        assert_eq!(*lost, Verdict::Refused(CommitError::Stale), "what goes on from it or builds on it is lost with it");
    }
    for refused in [culprit, second] {
        let told = matches!(refused, CommitError::Refused { run: Some(run), reason }
            if *run == RunId::new("run_b") && reason.contains("23514"));
        assert!(told, "a part with one run is that run's: {refused:?}");
    }
    assert_eq!(chain.broken_by(), Some(culprit), "whoever waits hears why");
    let lost: Vec<_> = outcome.lost.iter().map(|lost| lost.error.blames()).collect();
    assert_eq!(lost, [true, true, false, false], "the culprits first");

    // And the connection goes on.
    let next = Commit::new(1, vec![append(row("run_d"), 1, 1)]);
    assert_eq!(write(&client, &next, Duration::from_millis(200)).await.verdicts, [Verdict::Written]);
    let mut lengths = Vec::new();
    for id in ids {
        lengths.push(store.run(&RunId::new(id)).await.unwrap().unwrap().next_seq);
    }
    assert_eq!(lengths, [1, 0, 0, 2]);
    drop(client);
    connection.await.unwrap().unwrap();
    store.close().await;
}
