use std::cell::Cell;
use std::time::Duration;

use baton_store::conformance;
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;

#[tokio::test]
async fn passes_the_conformance_suite() {
    if Database::fresh().await.is_none() {
        return;
    }
    let count = Cell::new(0);
    conformance::all(async || {
        count.set(count.get() + 1);
        let database = Database::fresh().await.unwrap();
        PostgresStore::open_alone(&Settings::new(database.url)).await.unwrap()
    })
    .await;
    assert!(count.get() > 20, "every check has a store of its own");
}

struct Hosts {
    database: Database,
    listen: bool,
    count: Cell<u32>,
}

impl conformance::Hosts for Hosts {
    type Store = PostgresStore;

    async fn join(&self) -> PostgresStore {
        self.count.set(self.count.get() + 1);
        let settings = Settings {
            host: format!("host {}", self.count.get()),
            lease: Duration::from_secs(600),
            listen: self.listen,
            ..Settings::new(self.database.url.clone())
        };
        PostgresStore::open(&settings).await.unwrap()
    }

    async fn lapse(&self, epoch: u64) {
        let lapse = format!("UPDATE sessions SET lease_until = now() - INTERVAL '1 second' WHERE epoch = {epoch}");
        self.database.execute(&lapse).await;
    }
}

async fn several_hosts(listen: bool) {
    if Database::fresh().await.is_none() {
        return;
    }
    let fresh = async || Hosts { database: Database::fresh().await.unwrap(), listen, count: Cell::new(0) };
    conformance::shared(fresh).await;
}

#[tokio::test]
async fn passes_the_suite_for_several_hosts() {
    several_hosts(true).await;
}

#[tokio::test]
async fn several_hosts_can_do_without_notifications() {
    several_hosts(false).await;
}
