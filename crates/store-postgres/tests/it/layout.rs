//! What rows look like in the database, column by column. A database of one version is opened by the next, so nothing of
//! this changes; a new column adds to it.

use std::fmt::Write as _;

use baton_store::Journal as _;
use baton_store::conformance::{everything, sample::submit};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;

/// Every row as JSON, without what is NULL.
async fn dump(url: &str) -> String {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut all = String::new();
    for table in everything::TABLES {
        let sql = format!("SELECT jsonb_strip_nulls(to_jsonb(t))::TEXT COLLATE \"C\" FROM {table} t ORDER BY 1");
        for row in client.query(&sql, &[]).await.unwrap() {
            writeln!(all, "{table} {}", row.get::<_, String>(0)).unwrap();
        }
    }
    drop(client);
    connection.await.unwrap().unwrap();
    all
}

#[tokio::test]
async fn rows_look_as_they_always_did() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
    for commit in everything::commits() {
        submit(&store, commit).await.unwrap();
    }
    store.close().await;
    let found = dump(&database.url).await;
    // Only for new columns: what was there stays.
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/layout.txt"), &found).unwrap();
    }
    let expected = include_str!("layout.txt");
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of layout.txt", line + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
