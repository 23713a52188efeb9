//! The database goes away and comes back.

use std::time::Duration;

use baton_model::{RunId, Timestamp};
use baton_store::conformance::sample::{append, row, submit};
use baton_store::reads::*;
use baton_store::{CommitError, ForwardedCommand, Journal as _, Owner, Recipient, RunRow, Shared as _, Write};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::{Cluster, Database, rows};

#[tokio::test]
async fn many_commits_share_a_transaction() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    let mut tickets = Vec::new();
    for n in 0..20 {
        let id = format!("run_{n}");
        tickets.push(submit(&store, vec![Write::CreateRun(row(&id))]));
        tickets.extend((0..50).map(|seq| submit(&store, vec![append(row(&id), seq, 1)])));
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    assert!(store.transactions() < 100, "{} transactions for 1020 commits", store.transactions());
    for n in 0..20 {
        let records = store.records(&RunId::new(format!("run_{n}")), 0, 100).await.unwrap();
        assert!((0_u64..).zip(&records).all(|(seq, record)| record.seq == seq) && records.len() == 50);
    }
    store.close().await;
}

#[tokio::test]
async fn a_light_tenant_overtakes_a_heavy_ones_backlog() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    baton_store::conformance::turns::a_light_tenant_overtakes_a_backlog(&store).await;
    store.close().await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_crash_of_the_server() {
    let Some(cluster) = Cluster::start().await else { return };
    let settings = Settings { lease: Duration::from_secs(600), ..Settings::new(cluster.database().await) };
    let store = PostgresStore::open(&settings).await.unwrap();
    let first = store.epoch();
    submit(&store, vec![Write::CreateRun(row("run_a")), append(row("run_a"), 0, 3)]).await.unwrap();
    store.ping().await.unwrap();

    cluster.stop(true);
    let lost = submit(&store, vec![append(row("run_a"), 3, 1)]).await;
    assert!(matches!(lost, Err(CommitError::Unavailable { .. })), "{lost:?}");
    assert_eq!(submit(&store, vec![append(row("run_a"), 3, 1)]).await, Err(CommitError::Stale));
    store.ping().await.expect_err("nobody there");
    store.recover().await.expect_err("nobody there");
    assert_eq!(store.generation(), 1, "still the old one");

    cluster.start_again();
    assert_eq!(store.recover().await.unwrap(), 2);
    assert!(store.epoch() > first, "a new life");
    store.ping().await.expect("connections are made anew");
    assert_eq!(store.run(&RunId::new("run_a")).await.unwrap().unwrap().next_seq, 3);
    assert_eq!(
        submit(&store, vec![append(row("run_a"), 3, 1)]).await,
        Err(CommitError::Foreign { run: RunId::new("run_a") })
    );
    store.recover().await.unwrap();
    assert_eq!(store.adopt_tree(&RunId::new("run_a")).await.unwrap(), Some(Owner::Taken));
    submit(&store, vec![append(row("run_a"), 3, 1)]).await.unwrap();
    let epochs = store.epochs(&RunId::new("run_a"), 0, 9).await.unwrap();
    assert_eq!(epochs, [(0, first), (1, first), (2, first), (3, store.epoch())]);
    store.close().await;
}

#[tokio::test]
async fn a_transaction_that_hangs_over_there_cannot_arrive_after_recovery() {
    let Some(database) = Database::fresh().await else { return };
    let settings = Settings { lease: Duration::from_secs(600), ..Settings::new(database.url.clone()) };
    let store = PostgresStore::open(&settings).await.unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a")), append(row("run_a"), 0, 1)]).await.unwrap();
    // Another connection of the same session, in the middle of a transaction, as an old one of ours might be.
    let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let hold = format!("BEGIN; SELECT 1 FROM sessions WHERE epoch = {} AND NOT ended FOR KEY SHARE", store.epoch());
    client.batch_execute(&hold).await.unwrap();

    database.execute("ALTER TABLE events RENAME COLUMN body TO another").await;
    submit(&store, vec![append(row("run_a"), 1, 1)]).await.expect_err("the database does not understand it");
    database.execute("ALTER TABLE events RENAME COLUMN another TO body").await;
    let recovering = store.recover();
    tokio::pin!(recovering);
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut recovering).await;
    assert!(waited.is_err(), "the session cannot end while somebody writes for it");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(recovering.await.unwrap(), 2);
    drop(client);
    let _ = connection.await;
    store.close().await;
}

#[tokio::test]
async fn a_host_that_lost_its_connections_ends_its_session_all_the_same() {
    let Some(database) = Database::fresh().await else { return };
    let settings = Settings { lease: Duration::from_secs(600), ..Settings::new(database.url.clone()) };
    let store = PostgresStore::open(&settings).await.unwrap();
    submit(&store, vec![Write::CreateRun(row("run_a")), append(row("run_a"), 0, 1)]).await.unwrap();
    // Nothing is written after this, so nobody notices.
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert!(!rows(&database.url, all).await.is_empty());
    store.close().await;
    assert_eq!(rows(&database.url, "SELECT count(*) FROM sessions WHERE NOT ended").await[0][0], "0");
}

#[tokio::test]
async fn a_session_is_forgotten_once_it_is_old_and_nothing_is_left_to_take_over() {
    let Some(database) = Database::fresh().await else { return };
    let settings = Settings::new(database.url.clone());
    for (id, busy) in [("run_busy", true), ("run_waits", false)] {
        let gone = PostgresStore::open(&settings).await.unwrap();
        let resting = RunRow { busy, wake_at: None, ..row(id) };
        submit(&gone, vec![Write::CreateRun(resting.clone()), append(resting, 0, 1)]).await.unwrap();
        gone.close().await;
    }
    let store = PostgresStore::open(&settings).await.unwrap();
    let sessions = async || rows(&database.url, "SELECT count(*) FROM sessions").await[0][0].clone();
    store.end_lapsed().await.unwrap();
    assert_eq!(sessions().await, "3", "they ended a moment ago");
    rows(&database.url, "UPDATE sessions SET ended_at = now() - INTERVAL '31 days' WHERE ended").await;
    store.end_lapsed().await.unwrap();
    assert_eq!(sessions().await, "2", "the one with a run that is at work stays");

    let waits = RunId::new("run_waits");
    let letter = ForwardedCommand { id: "l".to_owned(), to: Recipient::Run(waits.clone()), body: "{}".to_owned() };
    store.send(letter).await.unwrap();
    let later = Timestamp::from_millis(0);
    let mut taken = store.adopt(later, 9).await.unwrap();
    taken.sort();
    assert_eq!(taken, [RunId::new("run_busy"), waits], "whoever is written to is found without its session");
    store.end_lapsed().await.unwrap();
    assert_eq!(sessions().await, "1");
    store.close().await;
}
