//! How much the file holds. Asked by people who look at a page, so it may cost only a little however large the file is:
//! what is long is judged by its newest rows.

use baton_store::{Usage, UsageClass};
use rusqlite::{Connection, OptionalExtension as _};

use crate::rows;

/// How many of the newest rows stand for all.
const SAMPLE: u64 = 500;
/// Up to how many rows are added up one by one.
const COUNTED: u64 = 20_000;
/// What a row costs beside its text: columns, index entries, the page's own needs.
const ROW: u64 = 60;

/// States, and what they share.
const CHECKPOINTS: &str =
    "(SELECT body AS bytes FROM checkpoints UNION ALL SELECT bytes FROM checkpoint_chunks) AS checkpoints";

pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Usage> {
    let number = |sql: &str| connection.prepare_cached(sql)?.query_row([], rows::maybe_count).optional();
    let number = |sql: &str| Ok::<_, rusqlite::Error>(number(sql)?.flatten().unwrap_or(0));
    let bytes = number("PRAGMA page_count")? * number("PRAGMA page_size")?;
    let records = sampled(
        connection,
        "events",
        "length(body) + coalesce(length(private), 0) + length(kind)",
        number("SELECT max(rowid) FROM events")?,
    )?;
    let mut classes = vec![UsageClass { class: "records", ..records }];
    for (class, kind) in [("memory", "memory"), ("workspace", "workspace")] {
        let sql = format!("SELECT sum(version - forgotten) FROM ledgers WHERE kind = '{kind}'");
        let size = "length(key) + length(meta) + coalesce(length(content), 0)";
        let of_kind = format!("changes WHERE ledger IN (SELECT ledger FROM ledgers WHERE kind = '{kind}' LIMIT 1000)");
        classes.push(UsageClass { class, ..sampled(connection, &of_kind, size, number(&sql)?)? });
    }
    for (class, table, size) in [
        ("blobs", "blobs", "length(bytes)"),
        ("replies", "replies", "length(body)"),
        ("deliveries", "deliveries", "20"),
        ("deadLetters", "dead_letters", "60"),
        ("interrupts", "interrupts", "length(data)"),
        ("checkpoints", CHECKPOINTS, "length(bytes)"),
    ] {
        let sql = format!(
            "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT {size} AS size FROM {table} LIMIT {COUNTED})"
        );
        let counted = connection.prepare_cached(&sql)?.query_row([], |row| {
            rows::fields(row, |row| Ok(UsageClass { class, count: row.count("count")?, bytes: row.count("bytes")? }))
        })?;
        classes.push(UsageClass { bytes: counted.bytes + ROW * counted.count, ..counted });
    }
    let runs = sampled(
        connection,
        "runs",
        "length(id) + length(tags) + coalesce(length(summary), 0) + coalesce(length(origin), 0) + 200",
        number("SELECT max(rowid) FROM runs")?,
    )?;
    classes.push(UsageClass { class: "runs", ..runs });
    Ok(Usage { kind: "sqlite", bytes: Some(bytes), classes })
}

/// `count` rows, as large as the newest of them are.
fn sampled(connection: &Connection, table: &str, size: &str, count: u64) -> rusqlite::Result<UsageClass> {
    let sql = format!("SELECT avg(size) FROM (SELECT {size} AS size FROM {table} ORDER BY rowid DESC LIMIT {SAMPLE})");
    let mean: Option<f64> = connection.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
    let bytes = mean.map_or(0.0, |mean| (mean + ROW as f64) * count as f64);
    Ok(UsageClass { class: "", bytes: bytes as u64, count })
}
