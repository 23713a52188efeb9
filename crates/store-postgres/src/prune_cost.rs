//! What pruning costs, counted in rows that the database looks at: as much for the last run of many as for the first.
#![allow(clippy::unwrap_used)]

use baton_model::{Digest, RunId, Timestamp};
use baton_store::{Journal as _, Pruned, Write};
use baton_testkit::postgres::Database;

use crate::known::Known;
use crate::plan::Plan;
use crate::statement::{Statement, Statements};
use crate::{PostgresStore, Settings};

/// What this transaction has looked at so far.
const NOTE: &str = "INSERT INTO looked_at (count) SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::BIGINT
    FROM pg_stat_xact_user_tables WHERE relname <> 'looked_at'";

#[tokio::test]
async fn pruning_two_thousand_runs_costs_the_same_for_each() {
    const RUNS: u64 = 2000;
    const AT_ONCE: u64 = 50;
    let Some(database) = Database::fresh().await else { return };
    PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap().close().await;
    database
        .execute(&format!(
            "CREATE TABLE looked_at (place BIGSERIAL, count BIGINT NOT NULL);
             INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, tags,
                 first_memory, first_workspace)
             SELECT 'run_' || lpad(n::TEXT, 6, '0'), 'acme', 'w', '{}', 'completed', n, n, 3, false, '{{}}', 0, n
             FROM generate_series(1, {RUNS}) n;
             INSERT INTO events (run, seq, at, kind, body)
             SELECT id, seq, 1, 'node.started', '{{}}' FROM runs, generate_series(0, 2) seq",
            Digest::of_bytes("w").as_str()
        ))
        .await;
    let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(crate::connect::PLAN_ONCE).await.unwrap();
    let mut statements = Statements::default();
    for first in (1..=RUNS).step_by(AT_ONCE as usize) {
        let marks: Vec<Write> = (first..first + AT_ONCE)
            .map(|number| Write::Prune {
                run: RunId::new(format!("run_{number:06}")),
                pruned: Pruned { at: Timestamp::from_micros(1), log: true },
            })
            .collect();
        let mut plan = Plan::new(0);
        plan.add(&marks, &Known::new(0, None));
        let mut all = vec![Statement::new(NOTE)];
        all.extend(plan.statements());
        all.push(Statement::new(NOTE));
        assert!(statements.transact(&client, &all).await.is_ok(), "{first}");
    }
    let left: i64 = client.query_one("SELECT count(*) FROM events", &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "all of them are pruned");
    let noted = client.query("SELECT count FROM looked_at ORDER BY place", &[]).await.unwrap();
    let noted: Vec<i64> = noted.iter().map(|row| row.get(0)).collect();
    let costs: Vec<i64> = noted.chunks(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(costs.len() as u64, RUNS / AT_ONCE);
    let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
    assert!(*least >= (4 * AT_ONCE).cast_signed(), "{least} rows cannot be all: something is not counted");
    assert!(*most <= least * 2, "between {least} and {most} rows for {AT_ONCE} runs");
    assert!(*most <= (20 * AT_ONCE).cast_signed(), "{most} rows for {AT_ONCE} runs");
    drop(client);
    connection.await.unwrap().unwrap();
}
