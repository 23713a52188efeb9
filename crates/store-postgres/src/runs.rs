//! The queries that find runs.

use std::sync::LazyLock;

use baton_store::StoredRecord;

use crate::rows;

pub(crate) static RECORDS: LazyLock<String> = LazyLock::new(|| {
    let columns = rows::columns::<StoredRecord>();
    format!("SELECT {columns} FROM events WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3")
});
/// The sizes are added up where the records lie: the length of a text is known without reading it, and what does not fit
/// is never sent. The first has nothing before it, so it always comes.
pub(crate) static RECORDS_WITHIN: LazyLock<String> = LazyLock::new(|| {
    let columns = rows::columns::<StoredRecord>();
    format!(
        "SELECT {columns} FROM events WHERE run = $1 AND seq IN (
             SELECT seq FROM (
                 SELECT seq, row_number() OVER log AS place, sum(size) OVER log AS upto FROM (
                     SELECT seq, octet_length(body) + coalesce(octet_length(private), 0) AS size
                     FROM events WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3
                 ) sizes WINDOW log AS (ORDER BY seq)
             ) sums WHERE upto <= $4 OR place = 1
         ) ORDER BY seq"
    )
});
/// In the order of [`crate::rows::log_ends`]. The record before the one that is asked for is the run's own, or none.
pub(crate) const LOG_ENDS: &str = "SELECT origin_seq, next_seq, pruned_log, chain_base, chain,
        (SELECT sum FROM events WHERE events.run = runs.id AND events.seq = $2)
    FROM runs WHERE id = $1";
/// A scope of its own is no scope: `=` finds nothing where there is none.
pub(crate) const ACTIVE_IN: &str = "SELECT id FROM runs WHERE tenant = $1 AND scope = $2 \
    AND status NOT IN ('completed', 'failed', 'cancelled') ORDER BY position LIMIT 1";
pub(crate) const ACTIVE: &str = "SELECT id FROM runs WHERE tenant = $1 AND scope IS NULL \
    AND status NOT IN ('completed', 'failed', 'cancelled') ORDER BY position LIMIT 1";
pub(crate) const UNFINISHED: &str =
    "SELECT position, id FROM runs WHERE busy AND owner = $1 AND position > $2 ORDER BY position LIMIT $3";
pub(crate) const DUE: &str = "SELECT id, wake_at FROM runs WHERE wake_at IS NOT NULL AND owner = $1 AND wake_at <= $2 \
    ORDER BY wake_at, position LIMIT $3";
pub(crate) const DESCENDANTS: &str = "SELECT count(*) FROM runs WHERE root = $1 AND root IS NOT NULL";
pub(crate) const FORKS: &str = "SELECT id FROM runs WHERE origin_run = $1 AND origin_run IS NOT NULL ORDER BY position";

/// Along `active_trees`, which holds nothing of trees that have ended.
pub(crate) const ACTIVE_TREES: &str = "SELECT status, count(*) AS count FROM runs WHERE tenant = $1 AND root IS NULL
    AND status NOT IN ('completed', 'failed', 'cancelled') GROUP BY status";
pub(crate) const TENANTS: &str = "WITH RECURSIVE named AS (
        (SELECT tenant FROM runs WHERE tenant > $1 ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT runs.tenant FROM runs WHERE runs.tenant > named.tenant ORDER BY runs.tenant LIMIT 1) FROM named
        WHERE named.tenant IS NOT NULL
    ) SELECT tenant FROM named WHERE tenant IS NOT NULL LIMIT $2";
/// In the order of [`baton_store::codec::kept_tree`].
pub(crate) const KEPT_TREES: &str = "SELECT created_at, position, id, coalesce(long_workflow, workflow), status, updated_at,
        1 + (SELECT count(*) FROM runs child WHERE child.root = runs.id AND child.root IS NOT NULL),
        next_seq + coalesce((SELECT sum(next_seq) FROM runs child WHERE child.root = runs.id AND child.root IS NOT NULL),
            0)::BIGINT
    FROM runs WHERE tenant = $1 AND root IS NULL AND NOT pruned_log AND (created_at, position) < ($2, $3)
    ORDER BY created_at DESC, position DESC LIMIT $4";

/// Every run that is not pruned may look back to what its first record knew; a fork's own first one, for what came
/// before is its source's. $2 is the key of the scope, $3 the scope. Each way to a scope is an index that has the lowest
/// first; only the runs of one tree are gone through.
pub(crate) const MEMORY_FLOOR: &str = "SELECT least(
        (SELECT first_memory FROM runs WHERE tenant = $1 AND memory_scope = $2 AND memory_scope <> ''
            AND pruned_at IS NULL AND first_memory IS NOT NULL ORDER BY first_memory LIMIT 1),
        (SELECT first_memory FROM runs WHERE tenant = $1 AND scope = $2 AND scope IS NOT NULL AND memory_scope = ''
            AND pruned_at IS NULL AND first_memory IS NOT NULL ORDER BY first_memory LIMIT 1),
        (SELECT min(first_memory) FROM runs WHERE root = $3 AND root IS NOT NULL AND tenant = $1 AND scope IS NULL
            AND memory_scope = '' AND pruned_at IS NULL),
        (SELECT first_memory FROM runs WHERE id = $3 AND tenant = $1 AND scope IS NULL AND root IS NULL
            AND memory_scope = '' AND pruned_at IS NULL))";
/// $2 is the scope, empty for the tenant's own.
pub(crate) const WORKSPACE_FLOOR: &str = "SELECT first_workspace FROM runs WHERE tenant = $1 AND pruned_at IS NULL
    AND left(workspace_scope, 100) = left($2, 100) AND workspace_scope = $2 AND first_workspace IS NOT NULL
    ORDER BY first_workspace LIMIT 1";
/// Where other versioned stores were forked off.
pub(crate) const FORK_FLOOR: &str = "SELECT min(base_version) FROM ledgers WHERE base = $1 AND base IS NOT NULL";
