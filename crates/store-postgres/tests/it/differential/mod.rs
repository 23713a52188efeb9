//! Three stores, the same histories: whatever is written, in whatever order and however it fails, all of them say the same
//! about it, and show the same.

pub(crate) mod history;
mod views;

use std::sync::Arc;

use baton_store::{Chains, Commit, CommitError, MemoryStore, Store, WriteChain};
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::SqliteStore;
use baton_testkit::postgres::Database;
use proptest::test_runner::{Config, TestRunner};

use history::{Draft, History, Pen};

const CASES: u32 = 16;

/// Queues all of them before it waits for any, so that they share transactions. Says what came of them, and which chains
/// are broken.
async fn submit(store: &dyn Store, batch: &[Vec<Draft>]) -> (Vec<Result<(), CommitError>>, Vec<bool>) {
    let generation = store.generation();
    let chains = [(), ()].map(|()| Arc::new(WriteChain::of_store()));
    let chain = |number: usize| number.checked_sub(1).map(|at| Arc::clone(&chains[at])).into_iter().collect();
    let part = |draft: &Draft| {
        (draft.writes.clone(), Chains { links: chain(draft.link), builds_on: chain(draft.builds_on), asked: false })
    };
    let queue = |commit: &Vec<Draft>| store.submit(Commit::of_parts(generation, commit.iter().map(part)));
    let tickets: Vec<_> = batch.iter().map(queue).collect();
    let mut results = Vec::new();
    for ticket in tickets {
        results.push(ticket.await);
    }
    (results, chains.iter().map(|chain| chain.is_broken()).collect())
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
                     quarantine, canary, dead_letters, annotations, checkpoints, checkpoint_chunks, spending, \
                     tokens, runners, runner_steps",
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
