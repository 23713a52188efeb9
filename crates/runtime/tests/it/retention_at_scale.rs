//! How long pruning takes among a million runs. Takes minutes and prints figures, so it is run by hand:
//! `cargo test -p baton-runtime --test it retention_at_scale -- --ignored --nocapture`, with `BATON_RUNS` for another
//! number.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use baton_model::{Digest, TenantId};
use baton_runtime::{Clock as _, Host, Options, RetentionPolicy, RetentionRule, SystemClock};
use baton_store::Journal as _;
use baton_store::reads::*;
use baton_store_sqlite::SqliteStore;

use crate::common::options;

/// A run a minute, the last one just now; three records each.
const FILL: &str = "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, tags,
        first_memory, first_workspace)
    WITH RECURSIVE n (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
    SELECT printf('run_%08d', n), 'acme', 'flow', ?3, 'completed', ?4 - (?5 - n) * 60000000, ?4 - (?5 - n) * 60000000, 3, 0,
        '[]', 0, n / 1000 FROM n";
const EVENTS: &str = "INSERT INTO events (run, seq, at, kind, body)
    SELECT run, seq.value, created_at, 'node.started', printf('%.*c', 600, 'x') FROM runs, json_each('[0,1,2]') seq
    WHERE run BETWEEN ?1 AND ?2";
const PRUNED: u64 = 20_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; prints figures"]
async fn pruning_among_a_million_runs() {
    let runs: i64 = std::env::var("BATON_RUNS").map_or(1_000_000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    SqliteStore::open(dir.path()).unwrap().close().await;
    let path = dir.path().join("baton.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000").unwrap();
    let now = SystemClock.now().as_micros();
    for first in (1..=runs).step_by(50_000) {
        let last = runs.min(first + 49_999);
        db.execute_batch("BEGIN").unwrap();
        db.execute(FILL, rusqlite::params![first, last, Digest::of_bytes("w").as_str(), now, runs]).unwrap();
        db.execute(EVENTS, [first, last]).unwrap();
        db.execute_batch("COMMIT").unwrap();
    }
    drop(db);
    let size = || std::fs::metadata(&path).unwrap().len() / 1_000_000;
    println!("{runs} runs, {} MB", size());
    let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
    // All but the oldest are kept.
    let general = RetentionRule { max_runs: Some(runs.unsigned_abs() - PRUNED), ..RetentionRule::default() };
    let retention = RetentionPolicy { window_ms: 0, general, ..RetentionPolicy::default() };
    let host = Host::open(Arc::clone(&store) as _, Options { retention, ..options(512) }).await.unwrap();
    let tenant = TenantId::new("acme");
    let begun = Instant::now();
    let (due, _) = host.retention_due(&tenant, 200).await.unwrap();
    println!("{} due, shown in {:?}", due.len(), begun.elapsed());
    let begun = Instant::now();
    let report = host.apply_retention(&tenant).await.unwrap();
    let each = begun.elapsed() / u32::try_from(report.trees.max(1)).unwrap();
    println!("{report:?} in {:?}, {each:?} a run", begun.elapsed());
    assert_eq!(report.trees, PRUNED);
    let kept = store.usage().await.unwrap();
    host.shutdown().await;
    println!("{} MB now, {:?}", size(), kept.bytes);
}
