//! How many commits and events a second this disk takes: `cargo run --release -p baton-store-sqlite --example
//! sqlite_append_rate [runs] [directory]`. Each run is one commit of four events, as a workflow without effects makes it.

#![allow(clippy::print_stdout)]

use std::path::PathBuf;

use baton_store::Journal as _;
use baton_store::conformance::rate;
use baton_store_sqlite::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let temporary = tempfile::tempdir()?;
    let dir = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);

    let store = SqliteStore::open(&dir)?;
    let mut syncs = SqliteStore::fsync_probe(&dir, 200)?;
    syncs.sort();
    println!("fdatasync p50 {:?}, p99 {:?}", syncs[100], syncs[198]);
    rate::measure(&store, runs, || store.transactions(), |rate| println!("{rate}")).await?;
    store.close().await;
    Ok(())
}
