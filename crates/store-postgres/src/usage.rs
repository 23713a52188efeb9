//! How much the database holds, in its own words: sizes on disk, and rows as its planner last estimated them.

use baton_store::{Usage, UsageClass};
use tokio_postgres::Row;

use crate::{PostgresStore, rows};

/// The planner knows nothing of a table (-1) until somebody has looked through it.
const SIZES: &str = "SELECT pg_total_relation_size(oid), reltuples::BIGINT FROM pg_class WHERE oid = to_regclass($1)";
/// Up to how many rows are counted one by one, where nobody has estimated them.
const COUNTED: u64 = 20_000;

/// Asked by people who look at a page. Databases that only speak like PostgreSQL may not know their sizes: then nothing is
/// said of them.
pub(crate) async fn read(store: &PostgresStore) -> Usage {
    let mut classes = Vec::new();
    for (class, table) in [
        ("records", "events"),
        ("runs", "runs"),
        ("changes", "changes"),
        ("blobs", "blobs"),
        ("replies", "replies"),
        ("deliveries", "deliveries"),
        ("deadLetters", "dead_letters"),
        ("interrupts", "interrupts"),
        ("checkpoints", "checkpoints"),
        ("checkpointChunks", "checkpoint_chunks"),
    ] {
        let size = |row: &Row| rows::fields(row, |row| Ok((row.count("size")?, row.integer("rows")?)));
        let Ok(Some((bytes, estimated))) = store.questions.one(SIZES, &[&table], size).await else { continue };
        let counted = format!("SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {COUNTED}) few");
        let count = match u64::try_from(estimated) {
            Ok(estimated) if estimated > COUNTED => Ok(Some(estimated)),
            _ => store.questions.one(&counted, &[], rows::count).await,
        };
        classes.push(UsageClass { class, bytes, count: count.ok().flatten().unwrap_or(0) });
    }
    let known = !classes.is_empty();
    Usage { kind: "postgres", bytes: known.then(|| classes.iter().map(|class| class.bytes).sum()), classes }
}
