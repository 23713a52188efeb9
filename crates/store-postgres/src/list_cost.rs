//! What a page of a list costs, counted in rows that the database looks at: a bounded number, whatever is asked.
#![allow(clippy::unwrap_used)]

use baton_model::{RunId, RunStatus, TenantId, Timestamp, WorkflowId};
use baton_store::run_list::LOOKED_AT;
use baton_store::{Journal as _, RunFilter, RunPlace};
use baton_testkit::postgres::Database;

use super::{choose, listed, looked_at};
use crate::conditions::Query;
use crate::{PostgresStore, Settings};

type Part = fn(&mut RunFilter);

/// What callers can ask for, one by one.
const PARTS: [(&str, Part); 18] = [
    ("failed", |f| f.status = vec![RunStatus::Failed]),
    ("waiting", |f| f.status = RunStatus::ALL.into_iter().filter(|status| status.is_waiting()).collect()),
    ("completed", |f| f.status = vec![RunStatus::Completed]),
    ("ended", |f| f.status = vec![RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled]),
    ("workflow", |f| f.workflow = Some(WorkflowId::new("w"))),
    ("tag", |f| f.tag = Some("t".to_owned())),
    ("parent", |f| f.parent = Some(RunId::new("p"))),
    ("root", |f| f.root = Some(RunId::new("r"))),
    ("id prefix", |f| f.id_prefix = Some("run_".to_owned())),
    ("text", |f| f.text_prefix = Some("run_".to_owned())),
    ("created", |f| {
        f.created_from = Some(Timestamp::from_micros(1));
        f.created_until = Some(Timestamp::from_micros(9000));
    }),
    ("updated", |f| {
        f.updated_from = Some(Timestamp::from_micros(1));
        f.updated_until = Some(Timestamp::from_micros(2));
    }),
    ("diverged", |f| f.diverged = Some(true)),
    ("not diverged", |f| f.diverged = Some(false)),
    ("over budget", |f| f.over_budget = Some(true)),
    ("cost", |f| f.cost_usd_from = Some(1.0)),
    ("top level", |f| f.top_level = true),
    ("cursor", |f| f.cursor = Some(RunPlace { created_at: Timestamp::from_micros(9000), position: 9000 })),
];

/// Every one and every two of them together.
fn filters() -> Vec<(String, RunFilter)> {
    let base = || RunFilter { tenant: Some(TenantId::new("t")), limit: 50, ..RunFilter::default() };
    let mut all = vec![("nothing".to_owned(), base())];
    for (place, (a, part_a)) in PARTS.iter().enumerate() {
        for (b, part_b) in PARTS.iter().skip(place) {
            let mut filter = base();
            part_a(&mut filter);
            part_b(&mut filter);
            all.push((format!("{a}, {b}"), filter));
        }
    }
    all.push(("ids".to_owned(), RunFilter { ids: vec![RunId::new("run_00000001")], ..base() }));
    all
}

/// What one statement looked at: rows of tables, and how often it went through all runs.
async fn cost(client: &mut tokio_postgres::Client, query: &Query) -> (i64, i64) {
    const LOOKED: &str = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::BIGINT, 
            (sum(seq_scan) FILTER (WHERE relname = 'runs'))::BIGINT
        FROM pg_stat_xact_user_tables";
    let transaction = client.transaction().await.unwrap();
    let before = transaction.query_one(LOOKED, &[]).await.unwrap();
    transaction.query(&query.sql, &query.references()).await.unwrap();
    let after = transaction.query_one(LOOKED, &[]).await.unwrap();
    transaction.commit().await.unwrap();
    let grown = |column| after.get::<_, i64>(column) - before.get::<_, i64>(column);
    (grown(0), grown(1))
}

#[tokio::test]
async fn a_page_looks_at_a_bounded_number_of_rows_whatever_is_asked() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open_alone(&Settings::new(database.url.clone())).await.unwrap();
    // One in a thousand has a tag of its own, one in a hundred failed.
    let fill = format!(
        "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, tags, root, parent)
         SELECT 'run_' || lpad(n::TEXT, 8, '0'), 't', CASE WHEN n % 3 = 0 THEN 'v' ELSE 'w' END, '{}',
             CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'completed' END, n, n, 1, false,
             CASE WHEN n % 1000 = 0 THEN '{{t}}' ELSE '{{}}' END::TEXT[],
             CASE WHEN n % 7 = 0 THEN 'r' END, CASE WHEN n % 7 = 0 THEN 'p' END
         FROM generate_series(1, {}) n;
         INSERT INTO run_tags SELECT tenant, tag, created_at, position, id FROM runs, unnest(tags) tag;
         ANALYZE",
        baton_model::Digest::of_bytes("w").as_str(),
        15 * LOOKED_AT
    );
    database.execute(&fill).await;
    let (mut client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut worst = (0, String::new());
    for (name, filter) in filters() {
        let chosen = choose(&store.questions, &filter).await.unwrap();
        let (asked, judged) = listed(&filter, &chosen, filter.limit + 1);
        let mut all = vec![asked];
        if judged {
            all.push(looked_at(&filter, &chosen, filter.limit + 1));
        }
        for query in all {
            let (rows, scans) = cost(&mut client, &query).await;
            assert_eq!(scans, 0, "{name} by {:?} goes through all runs: {}", chosen.drive, query.sql);
            // Where a tag drives, its own table and that of runs. Where there are few more than that, the planner may fetch
            // and sort all of them.
            let most = 3 * LOOKED_AT * chosen.sources.len();
            assert!(rows <= most as i64, "{name} by {:?} looks at {rows} rows: {}", chosen.drive, query.sql);
            worst = worst.max((rows, name.clone()));
        }
    }
    assert!(worst.0 > 50, "nothing is counted: {worst:?}");
    drop(client);
    connection.await.unwrap().unwrap();
    store.close().await;
}
