//! How long lists take with a million runs. Takes minutes and prints figures, so it is run by hand:
//! `cargo test -p baton-store-postgres --test it million -- --ignored --nocapture`, with `BATON_RUNS` for another number.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use baton_model::{RunId, RunStatus, TenantId, Timestamp, WorkflowId};
use baton_store::reads::*;
use baton_store::{Journal as _, RunFilter, VersionedStoreId};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;

/// How many times as long as the cheapest full page any list may take.
const MOST: u32 = 500;

fn fill(runs: i64) -> String {
    let digest = baton_model::Digest::of_bytes("w");
    let digest = digest.as_str();
    format!(
        r#"INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, tags, root, parent,
    summary, diverged, cost_usd, first_memory, first_workspace)
SELECT 'run_' || md5(n::TEXT), CASE WHEN n % 10 > 0 THEN 'acme' ELSE 'other' END, 'flow.' || (n % 50), '{digest}',
    CASE WHEN n % 97 = 0 THEN 'failed' WHEN n % 997 = 0 THEN 'cancelled' WHEN n % 5003 = 0 THEN 'waiting-approval'
        ELSE 'completed' END,
    1700000000000000 + n * 1000000, 1700000000000000 + n * 1000000 + 500000, 3, false,
    CASE WHEN n % 100003 = 0 THEN '{{rare}}' WHEN n % 2 = 0 THEN '{{prod}}' ELSE '{{}}' END::TEXT[],
    CASE WHEN n % 4 = 0 THEN 'run_top' END, CASE WHEN n % 4 = 0 THEN 'run_top' END,
    CASE WHEN n % 50021 = 0 THEN '{{"diverged":true}}' WHEN n % 3 = 0
        THEN '{{"usage":{{"inputTokens":1000,"outputTokens":200,"costUsd":0.0125}},"iteration":3}}' END,
    n % 50021 = 0, CASE WHEN n % 3 = 0 THEN 0.0125 END, 0, n / 1000
FROM generate_series(1, {runs}::BIGINT) n;
INSERT INTO run_tags SELECT tenant, tag, created_at, position, id FROM runs, unnest(tags) tag;
INSERT INTO events (run, seq, at, kind, body)
    SELECT id, seq, created_at, 'node.started', repeat('x', 300) FROM runs, generate_series(0, 2) seq;
ANALYZE"#
    )
}

#[tokio::test]
#[ignore = "minutes; prints figures"]
async fn lists_of_a_million_runs() {
    let runs: i64 = std::env::var("BATON_RUNS").map_or(1_000_000, |text| text.parse().unwrap());
    let Some(database) = Database::fresh().await else { return };
    let settings = Settings::new(database.url.clone());
    let store = PostgresStore::open_alone(&settings).await.unwrap();
    let begun = Instant::now();
    database.execute(&fill(runs)).await;
    println!("{runs} runs filled in {:?}", begun.elapsed());
    let acme = || RunFilter { tenant: Some(TenantId::new("acme")), limit: 50, ..RunFilter::default() };
    let at = |part: i64| Some(Timestamp::from_micros(1_700_000_000_000_000 + runs * part * 10_000));
    let (failed, waiting) = (vec![RunStatus::Failed], vec![RunStatus::WaitingApproval, RunStatus::WaitingInput]);
    let ended = vec![RunStatus::Failed, RunStatus::Cancelled];
    let tag = |tag: &str| Some(tag.to_owned());
    let filters = [
        ("all", acme()),
        ("workflow", RunFilter { workflow: Some(WorkflowId::new("flow.7")), ..acme() }),
        ("failed", RunFilter { status: failed.clone(), ..acme() }),
        ("failed, cancelled", RunFilter { status: ended, ..acme() }),
        ("waiting", RunFilter { status: waiting, ..acme() }),
        ("completed", RunFilter { status: vec![RunStatus::Completed], ..acme() }),
        ("tag of half", RunFilter { tag: tag("prod"), ..acme() }),
        ("rare tag", RunFilter { tag: tag("rare"), ..acme() }),
        ("no such tag", RunFilter { tag: tag("none"), ..acme() }),
        ("tag of half, failed", RunFilter { tag: tag("prod"), status: failed.clone(), ..acme() }),
        ("tag of half, workflow", RunFilter { tag: tag("prod"), workflow: Some(WorkflowId::new("flow.7")), ..acme() }),
        ("failed, workflow", RunFilter { status: failed, workflow: Some(WorkflowId::new("flow.7")), ..acme() }),
        ("created long ago", RunFilter { created_until: at(5), ..acme() }),
        ("created in between", RunFilter { created_from: at(40), created_until: at(41), ..acme() }),
        ("updated before", RunFilter { updated_until: at(50), ..acme() }),
        ("updated after", RunFilter { updated_from: at(50), ..acme() }),
        ("diverged", RunFilter { diverged: Some(true), ..acme() }),
        ("not diverged", RunFilter { diverged: Some(false), ..acme() }),
        ("over budget", RunFilter { over_budget: Some(true), ..acme() }),
        ("cost", RunFilter { cost_usd_from: Some(0.01), ..acme() }),
        ("no such cost", RunFilter { cost_usd_from: Some(10.0), ..acme() }),
        ("top level", RunFilter { top_level: true, ..acme() }),
        ("parent", RunFilter { parent: Some(RunId::new("run_top")), ..acme() }),
        ("root", RunFilter { root: Some(RunId::new("run_top")), ..acme() }),
        ("root, tag", RunFilter { root: Some(RunId::new("run_top")), tag: tag("none"), ..acme() }),
        ("id prefix of all", RunFilter { id_prefix: tag("run_"), ..acme() }),
        ("id prefix of some", RunFilter { id_prefix: tag("run_3030"), ..acme() }),
        ("text: workflows", RunFilter { text_prefix: tag("flow.4"), ..acme() }),
        ("text: nothing", RunFilter { text_prefix: tag("nothing"), ..acme() }),
        ("text: all runs", RunFilter { text_prefix: tag("run_"), ..acme() }),
    ];
    let mut slowest: Vec<(Duration, &str, usize)> = Vec::new();
    for (name, filter) in filters {
        let mut page = store.runs(&filter).await.unwrap();
        let (found, mut taken) = (page.items.len(), Vec::new());
        for turn in 0..100 {
            // Every other time further down.
            let cursor = page.next.filter(|_| turn % 2 == 1);
            let begun = Instant::now();
            page = store.runs(&RunFilter { cursor, ..filter.clone() }).await.unwrap();
            taken.push(begun.elapsed());
        }
        taken.sort();
        let p95: Duration = taken[taken.len() * 95 / 100];
        println!("{name:24} {found:3} found, p50 {:?}, p95 {p95:?}", taken[taken.len() / 2]);
        slowest.push((p95, name, found));
    }
    // Against the cheapest full page of the same run, so that it holds on any machine: a page reads 50 runs, may look at 4,000,
    // and would take thousands of times as long if it went through all of them.
    let cheapest = slowest.iter().filter(|(.., found)| *found == 50).min().unwrap();
    let worst = slowest.iter().max().unwrap();
    println!("p95 between {cheapest:?} and {worst:?}");
    assert!(worst.0 <= cheapest.0 * MOST, "{worst:?} is more than {MOST} times {cheapest:?}");
    let acme = TenantId::new("acme");
    for _ in 0..2 {
        let begun = Instant::now();
        let counts = store.run_counts(&acme).await.unwrap();
        println!("counts {:?}: {counts:?}", begun.elapsed());
    }
    let begun = Instant::now();
    store.usage().await.unwrap();
    println!("usage {:?}", begun.elapsed());
    let begun = Instant::now();
    let floor = store.versioned_floor(&VersionedStoreId::workspace(&acme, "default")).await.unwrap();
    println!("workspace floor {:?}: {floor:?}", begun.elapsed());
    let begun = Instant::now();
    let kept = store.kept_trees(&acme, None, 500).await.unwrap();
    println!("{} kept trees {:?}", kept.len(), begun.elapsed());
    store.close().await;
}
