//! How many commits and events a second a database takes: `cargo run --release -p baton-store-postgres --example
//! postgres_append_rate URL [runs]`. The database must be empty. Each run is one commit of four events, as a workflow
//! without effects makes it.

#![allow(clippy::print_stdout)]

use baton_store::Journal as _;
use baton_store::conformance::rate;
use baton_store_postgres::{PostgresStore, Settings};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("name a database: postgres://user:password@host/database")?;
    let runs: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let store = PostgresStore::open(&Settings::new(url)).await?;
    rate::measure(&store, runs, || store.transactions(), |rate| println!("{rate}")).await?;
    store.close().await;
    Ok(())
}
