//! The queries that find runs. Their conditions are spelled as in the partial indexes they rely on, or SQLite would
//! not use them; the tests here ask it.

use std::sync::LazyLock;

use baton_store::{RunRow, StoredRecord};

use crate::rows;

pub(crate) static BY_ID: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM runs WHERE id = ?1", rows::columns::<RunRow>()));
/// In the order of [`crate::rows::log_ends`].
pub(crate) const LOG_ENDS: &str =
    "SELECT run, coalesce(origin ->> '$.seq', 0), next_seq, pruned_log, chain_base, chain, id
    FROM runs WHERE id = ?1";
pub(crate) const SUM: &str = "SELECT sum FROM events WHERE run = ?1 AND seq = ?2";
pub(crate) static RECORDS: LazyLock<String> = LazyLock::new(|| {
    let columns = rows::columns::<StoredRecord>();
    format!("SELECT {columns} FROM events WHERE run = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3")
});
pub(crate) const ACTIVE: &str = "SELECT id FROM runs WHERE tenant = ?1 AND scope IS ?2 \
    AND status NOT IN ('completed', 'failed', 'cancelled') ORDER BY run LIMIT 1";
pub(crate) const UNFINISHED: &str = "SELECT run, id FROM runs WHERE busy AND run > ?1 ORDER BY run LIMIT ?2";
pub(crate) const DUE: &str =
    "SELECT id, wake_at FROM runs WHERE wake_at IS NOT NULL AND wake_at <= ?1 ORDER BY wake_at, run LIMIT ?2";

pub(crate) const COUNTS: &str = "SELECT status, count FROM run_counts WHERE tenant = ?1 AND count > 0";
/// Along `active_trees`, which holds nothing of trees that have ended.
pub(crate) const ACTIVE_TREES: &str = "SELECT status, count(*) AS count FROM runs WHERE tenant = ?1 AND root IS NULL
    AND status NOT IN ('completed', 'failed', 'cancelled') GROUP BY status";
pub(crate) const TENANTS: &str = "SELECT DISTINCT tenant FROM run_counts WHERE tenant > ?1 ORDER BY tenant LIMIT ?2";
/// In the order of [`baton_store::codec::kept_tree`].
pub(crate) const KEPT_TREES: &str = "SELECT created_at, run, id, workflow, status, updated_at,
        1 + (SELECT count(*) FROM runs child WHERE child.root = runs.id),
        next_seq + coalesce((SELECT sum(next_seq) FROM runs child WHERE child.root = runs.id), 0)
    FROM runs WHERE tenant = ?1 AND root IS NULL AND NOT pruned_log AND (created_at, run) < (?2, ?3)
    ORDER BY created_at DESC, run DESC LIMIT ?4";
pub(crate) const DESCENDANTS: &str = "SELECT count(*) FROM runs WHERE root = ?1";

/// Every run that is not pruned may look back to what its first record knew; a fork's own first one, for what came
/// before is its source's. Each way to a scope is an index that has the lowest first; only the runs of one tree are gone
/// through.
pub(crate) const MEMORY_FLOOR: &str = "SELECT min(floor) FROM (
        SELECT (SELECT first_memory FROM runs WHERE tenant = ?1 AND memory_scope = ?2 AND memory_scope <> ''
            AND pruned_at IS NULL AND first_memory IS NOT NULL ORDER BY first_memory LIMIT 1) AS floor
        UNION ALL
        SELECT (SELECT first_memory FROM runs WHERE tenant = ?1 AND scope = ?2 AND scope IS NOT NULL
            AND memory_scope = '' AND pruned_at IS NULL AND first_memory IS NOT NULL ORDER BY first_memory LIMIT 1)
        UNION ALL
        SELECT (SELECT min(first_memory) FROM runs WHERE root = ?2 AND +tenant = ?1 AND +scope IS NULL
            AND +memory_scope = '' AND pruned_at IS NULL)
        UNION ALL
        SELECT (SELECT first_memory FROM runs WHERE id = ?2 AND +tenant = ?1 AND +scope IS NULL AND root IS NULL
            AND +memory_scope = '' AND pruned_at IS NULL)
    )";
pub(crate) const FORKS: &str = "SELECT id FROM runs WHERE origin_run = ?1 AND origin_run IS NOT NULL ORDER BY run";
pub(crate) const WORKSPACE_FLOOR: &str = "SELECT first_workspace FROM runs \
    WHERE tenant = ?1 AND workspace_scope = iif(?2 = 'default', '', ?2) AND pruned_at IS NULL \
    AND first_workspace IS NOT NULL ORDER BY first_workspace LIMIT 1";
/// Where other versioned stores were forked off.
pub(crate) const FORK_FLOOR: &str = "SELECT min(forked.base_version) FROM ledgers base JOIN ledgers forked \
    ON forked.base = base.ledger WHERE base.tenant = ?1 AND base.kind = ?2 AND base.scope = ?3";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rusqlite::types::Value;

    use super::*;
    use crate::open;

    /// How SQLite would run a query, in one line.
    fn plan(sql: &str, values: Vec<Value>) -> String {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        open::migrate(&mut connection).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = explain.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    fn uses(plan: &str, index: &str) {
        assert!(plan.contains(&format!("INDEX {index} ")) || plan.ends_with(&format!("INDEX {index}")), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "sorted by hand: {plan}");
    }

    #[test]
    fn schedulers_use_their_partial_indexes() {
        uses(&plan(UNFINISHED, vec![Value::from(0), Value::from(9)]), "runs_unfinished");
        uses(&plan(DUE, vec![Value::from(0), Value::from(9)]), "runs_due");
        uses(&plan(ACTIVE, vec![Value::from("t".to_owned()), Value::Null]), "runs_active");
    }

    #[test]
    fn floors_look_only_at_runs_that_may_look_back() {
        let (tenant, scope) = (Value::from("t".to_owned()), Value::from("s".to_owned()));
        let memory = plan(MEMORY_FLOOR, vec![tenant.clone(), scope]);
        for index in ["runs_by_memory_scope", "runs_by_scope", "runs_by_root", "sqlite_autoindex_runs_1"] {
            uses(&memory, index);
        }
        uses(&plan(WORKSPACE_FLOOR, vec![tenant.clone(), Value::from("default".to_owned())]), "runs_by_workspace");
        let kind = Value::from("memory".to_owned());
        uses(&plan(FORK_FLOOR, vec![tenant.clone(), kind, tenant]), "ledgers_by_base");
    }
}
