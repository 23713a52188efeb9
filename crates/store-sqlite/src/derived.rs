//! What is derived from rows, against them.

use rusqlite::Connection;

use crate::rows;

/// So many of them are about what can be made anew.
const REBUILT: usize = 3;
/// What there is beside rows of tables that are compared with each other, and what is said if they are not the same.
const DERIVED: [(&str, &str); 7] = [
    (
        "a tag of a run is not in the index of tags, or one that it does not have is",
        "SELECT count(*) FROM (
            SELECT tenant, value, created_at, run FROM runs, json_each(runs.tags)
            EXCEPT SELECT tenant, tag, created_at, run FROM run_tags)",
    ),
    (
        "the index of tags knows of a tag that no run has",
        "SELECT count(*) FROM (
            SELECT tenant, tag, created_at, run FROM run_tags
            EXCEPT SELECT tenant, value, created_at, run FROM runs, json_each(runs.tags))",
    ),
    (
        "the counts of runs by status are not those of the runs",
        "SELECT count(*) FROM (
            SELECT * FROM (SELECT tenant, status, count(*) FROM runs GROUP BY tenant, status
                EXCEPT SELECT tenant, status, count FROM run_counts)
            UNION ALL
            SELECT * FROM (SELECT tenant, status, count FROM run_counts WHERE count > 0
                EXCEPT SELECT tenant, status, count(*) FROM runs GROUP BY tenant, status))",
    ),
    ("a fork is not found by its source", "SELECT count(*) FROM runs WHERE (origin ->> '$.source') IS NOT origin_run"),
    (
        "a run does not know how far its first record looks back",
        "SELECT count(*) FROM runs JOIN events ON events.run = runs.run
            AND events.seq = coalesce(runs.origin ->> '$.seq', 0)
         WHERE pruned_at IS NULL AND (first_memory IS NOT memory OR first_workspace IS NOT workspace)",
    ),
    (
        "a record or a change belongs to nothing",
        "SELECT (SELECT count(*) FROM events WHERE run NOT IN (SELECT run FROM runs))
            + (SELECT count(*) FROM changes WHERE ledger NOT IN (SELECT ledger FROM ledgers))",
    ),
    (
        "a migration was made at no time",
        "SELECT count(*) FROM refinery_schema_history WHERE datetime(applied_on) IS NULL",
    ),
];

/// All that is not as it should be, in words.
pub(crate) fn all(connection: &Connection) -> Vec<String> {
    compared(connection, &DERIVED)
}

/// What is derived from rows, can be made anew from them ([`crate::SqliteStore::accept`]) and is not as it should be.
pub(crate) fn rebuilt(connection: &Connection) -> Vec<String> {
    compared(connection, &DERIVED[..REBUILT])
}

fn compared(connection: &Connection, derived: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (what, sql) in derived {
        match connection.query_row(sql, [], rows::count) {
            Ok(0) => {}
            Ok(count) => wrong.push(format!("{what} ({count} of them)")),
            Err(error) => wrong.push(format!("{what}: {error}")),
        }
    }
    wrong
}
