use baton_store::reads::*;
use baton_store::{Journal as _, Store as _};
use baton_store_sqlite::{SqliteOptions, SqliteStore};

/// One connection is enough for any number of readers, be they answered in turn.
#[tokio::test]
async fn one_reader_serves_all() {
    let dir = tempfile::tempdir().unwrap();
    for readers in [0, 1] {
        let store = std::sync::Arc::new(
            SqliteStore::open_with(dir.path(), SqliteOptions { readers, ..SqliteOptions::default() }).unwrap(),
        );
        let asked: Vec<_> = (0..64)
            .map(|_| {
                let store = std::sync::Arc::clone(&store);
                tokio::spawn(async move { store.ping().await })
            })
            .collect();
        for answer in asked {
            answer.await.unwrap().unwrap();
        }
        store.probe().await.unwrap();
        store.close().await;
    }
}
