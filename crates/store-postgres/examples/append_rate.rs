//! How many commits and events a second a database takes: `cargo run --release -p baton-store-postgres --example
//! append_rate URL [runs]`. The database must be empty. Each run is one commit of four events, as a workflow without effects makes it.

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use baton_model::{Digest, RunId, RunStatus, Timestamp, Versions};
use baton_store::{Commit, CommitError, Journal, RunRow, StoredRecord, Ticket, Write};
use baton_store_postgres::{PostgresStore, Settings};

const EVENTS: u64 = 4;

fn run(number: usize) -> Commit {
    let row = RunRow {
        id: RunId::new(format!("run_{number:032x}")),
        tenant: "acme".into(),
        workflow: "noop".into(),
        digest: Digest::of_bytes("noop"),
        status: RunStatus::Completed,
        created_at: Timestamp::from_micros(1),
        updated_at: Timestamp::from_micros(1),
        next_seq: EVENTS,
        wake_at: None,
        busy: false,
        parent: None,
        root: None,
        scope: None,
        tags: Vec::new(),
        current_node: None,
        error_code: None,
        memory_scope: format!("run_{number:032x}"),
        workspace_scope: "default".to_owned(),
        origin: None,
        pruned: None,
        summary: None,
    };
    let record = |seq| StoredRecord {
        seq,
        at: Timestamp::from_micros(1),
        kind: "node.completed".to_owned(),
        body: format!(r#"{{"runId":"{}","sequence":{seq},"payload":"{}"}}"#, row.id, "x".repeat(300)),
        private: None,
        versions: Versions::default(),
        part: None,
    };
    let records = (0..EVENTS).map(record).collect();
    Commit::new(1, vec![Write::CreateRun(row.clone()), Write::Append { row, expected: 0, records }])
}

/// Keeps `window` commits under way until all are durable.
async fn measure(store: &PostgresStore, commits: Vec<Commit>, window: usize) -> Result<Duration, CommitError> {
    let start = Instant::now();
    let mut under_way = std::collections::VecDeque::<Ticket>::new();
    for commit in commits {
        if under_way.len() == window
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await?;
        }
        under_way.push_back(store.submit(commit));
    }
    for ticket in under_way {
        ticket.await?;
    }
    Ok(start.elapsed())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("name a database: postgres://user:password@host/database")?;
    let runs: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let store = PostgresStore::open(&Settings::new(url)).await?;
    let mut number = 0;
    for (window, runs) in [(1, runs / 20), (16, runs / 4), (64, runs), (256, runs)] {
        let commits: Vec<_> = (number..number + runs).map(run).collect();
        number += runs;
        let before = store.transactions();
        let seconds = measure(&store, commits, window).await?.as_secs_f64();
        let transactions = store.transactions() - before;
        println!(
            "{window:>4} under way: {:>7.0} commits/s {:>8.0} events/s, {:>5.1} commits per transaction",
            runs as f64 / seconds,
            runs as f64 * EVENTS as f64 / seconds,
            runs as f64 / transactions as f64,
        );
    }
    store.close().await;
    Ok(())
}
