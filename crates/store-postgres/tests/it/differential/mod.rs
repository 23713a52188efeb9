//! Three stores, the same histories: whatever is written, in whatever order and however it fails, all of them say the same
//! about it, and show the same.

pub(crate) mod history;
mod views;

use std::sync::Arc;

use baton_store::{Commit, CommitError, MemoryStore, Store};
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::SqliteStore;
use baton_testkit::postgres::Database;
use proptest::test_runner::{Config, TestRunner};

use history::{History, Pen};

const CASES: u32 = 16;

/// Queues all of them before it waits for any, so that they share transactions.
async fn submit(store: &dyn Store, batch: &[Commit]) -> Vec<Result<(), CommitError>> {
    let generation = store.generation();
    let queue = |commit: &Commit| store.submit(Commit { generation, ..commit.clone() });
    let tickets: Vec<_> = batch.iter().map(queue).collect();
    let mut results = Vec::new();
    for ticket in tickets {
        results.push(ticket.await);
    }
    store.recover().await.unwrap();
    results
}

async fn live_through(history: &History, stores: &[(&str, Arc<dyn Store>)]) {
    let (_, model) = &stores[0];
    for batch in &history.0 {
        let commits = Pen::new(&**model).await.write(batch);
        let expected = submit(&**model, &commits).await;
        let shown = views::all(&**model).await;
        for (name, store) in &stores[1..] {
            assert_eq!(submit(&**store, &commits).await, expected, "what {name} says of {commits:#?}");
            for ((question, answer), (_, expected)) in views::all(&**store).await.into_iter().zip(&shown) {
                assert_eq!(answer, *expected, "{question}, asked of {name} after {commits:#?}");
            }
        }
    }
}

#[test]
fn three_stores_agree_on_every_history() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let Some(database) = runtime.block_on(Database::fresh()) else { return };
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let tried = runner.run(&history::any(), |history| {
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let postgres = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
            database
                .execute(
                    "TRUNCATE runs, events, interrupts, blobs, workflows, replies, webhooks, deliveries, ledgers, changes, \
                     quarantine, canary, dead_letters, annotations",
                )
                .await;
            let stores: [(&str, Arc<dyn Store>); 3] = [
                ("memory", Arc::new(MemoryStore::new())),
                ("SQLite", Arc::new(SqliteStore::open(folder.path()).unwrap())),
                ("PostgreSQL", Arc::new(postgres)),
            ];
            live_through(&history, &stores).await;
            for (_, store) in &stores {
                store.close().await;
            }
        });
        Ok(())
    });
    tried.unwrap();
}
