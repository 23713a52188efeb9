//! What is wrong with a database, and what to do about it, in one sentence and without the password.

use baton_store::Error;
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;

async fn refusal(url: &str) -> String {
    match PostgresStore::open(&Settings::new(url)).await {
        Ok(_) => panic!("{url} opens"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_a_way_out() {
    let Some(database) = Database::fresh().await else { return };
    let missing = refusal(&database.url.replace("/baton_test", "/nobody_made")).await;
    assert!(missing.contains("does not exist") && missing.contains("createdb"), "{missing}");

    // The system gives nobody a port below 1024, so nobody listens there.
    let silent = refusal("postgres://baton:hunter2@127.0.0.1:1/x").await;
    assert!(silent.contains("is the server running there") && !silent.contains("hunter2"), "{silent}");

    let query = if database.url.contains('?') { '&' } else { '?' };
    if let Some(right) = database.guarded_url(Database::password()).await {
        let wrong = refusal(&right.replace("let", "not")).await;
        assert!(wrong.contains("password authentication failed") && wrong.contains("check the user"), "{wrong}");
        assert!(!wrong.contains("not%20me") && !wrong.contains("not me"), "{wrong}");
        PostgresStore::open(&Settings::new(right)).await.unwrap();
        let plain = refusal(&format!("{}{query}sslmode=require", database.url)).await;
        assert!(plain.contains("sslmode"), "a server without TLS: {plain}");
    }
}

#[tokio::test]
async fn a_schema_from_the_future_is_left_alone() {
    let Some(database) = Database::fresh().await else { return };
    PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    database
        .execute("INSERT INTO refinery_schema_history SELECT 99, 'later', applied_on, '0' FROM refinery_schema_history LIMIT 1")
        .await;
    let error = PostgresStore::open(&Settings::new(database.url.clone())).await.err().unwrap();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("newer version of Baton"), "{error}");
}

#[tokio::test]
async fn hosts_that_start_at_once_migrate_once() {
    let Some(database) = Database::fresh().await else { return };
    let settings = Settings::new(database.url.clone());
    let open = || PostgresStore::open(&settings);
    let (a, b, c) = tokio::join!(open(), open(), open());
    for store in [a.unwrap(), b.unwrap(), c.unwrap()] {
        baton_store::HealthReads::ping(&store).await.unwrap();
    }
}
