//! The queries that find runs. Their conditions are spelled as in the partial indexes they rely on, or SQLite would
//! not use them; the tests here ask it.

use std::sync::LazyLock;

use baton_model::{RunId, RunStatus, TenantId, Timestamp, WorkflowId};
use baton_store::codec::{after_prefix, integer};
use baton_store::{RunFilter, RunRow, StoredRecord};
use rusqlite::types::Value;

use crate::rows;

pub(crate) static BY_ID: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM runs WHERE id = ?1", rows::columns::<RunRow>()));
pub(crate) static RECORDS: LazyLock<String> = LazyLock::new(|| {
    let columns = rows::columns::<StoredRecord>();
    format!(
        "SELECT {columns} FROM events
         WHERE run = (SELECT run FROM runs WHERE id = ?1) AND seq >= ?2 ORDER BY seq LIMIT ?3"
    )
});
pub(crate) const ACTIVE: &str = "SELECT id FROM runs WHERE tenant = ?1 AND scope IS ?2 \
    AND status NOT IN ('completed', 'failed', 'cancelled') ORDER BY run LIMIT 1";
pub(crate) const UNFINISHED: &str = "SELECT run, id FROM runs WHERE busy AND run > ?1 ORDER BY run LIMIT ?2";
pub(crate) const DUE: &str =
    "SELECT id, wake_at FROM runs WHERE wake_at IS NOT NULL AND wake_at <= ?1 ORDER BY wake_at, run LIMIT ?2";

/// What nearly all runs are is left out, as in the index; it is what is missing to the total.
pub(crate) const COUNTS: &str =
    "SELECT status, count(*) FROM runs WHERE tenant = ?1 AND status <> 'completed' GROUP BY status";
pub(crate) const TOTAL: &str = "SELECT count(*) FROM runs WHERE tenant = ?1";
pub(crate) const DESCENDANTS: &str = "SELECT count(*) FROM runs WHERE root = ?1";

/// Every run that is not pruned may look back to what its first record knew; a fork's own first one, for what came
/// before is its source's.
pub(crate) const MEMORY_FLOOR: &str = "SELECT min((
        SELECT memory FROM events WHERE events.run = readers.run ORDER BY seq LIMIT 1
    )) FROM (
        SELECT run FROM runs WHERE tenant = ?1 AND memory_scope = ?2 AND memory_scope <> '' AND pruned_at IS NULL
        UNION ALL
        SELECT run FROM runs WHERE tenant = ?1 AND scope = ?2 AND scope IS NOT NULL AND memory_scope = ''
            AND pruned_at IS NULL
        UNION ALL
        SELECT run FROM runs WHERE root = ?2 AND tenant = ?1 AND scope IS NULL AND memory_scope = ''
            AND pruned_at IS NULL
        UNION ALL
        SELECT run FROM runs WHERE id = ?2 AND tenant = ?1 AND scope IS NULL AND root IS NULL AND memory_scope = ''
            AND pruned_at IS NULL
    ) readers";
pub(crate) const FORKS: &str = "SELECT id FROM runs WHERE origin_run = ?1 AND origin_run IS NOT NULL ORDER BY run";
pub(crate) const WORKSPACE_FLOOR: &str = "SELECT min((
        SELECT workspace FROM events WHERE events.run = runs.run ORDER BY seq LIMIT 1
    )) FROM runs WHERE tenant = ?1 AND pruned_at IS NULL AND workspace_scope = iif(?2 = 'default', '', ?2)";
/// Where other versioned stores were forked off.
pub(crate) const FORK_FLOOR: &str = "SELECT min(forked.base_version) FROM ledgers base JOIN ledgers forked \
    ON forked.base = base.ledger WHERE base.tenant = ?1 AND base.kind = ?2 AND base.scope = ?3";

/// Newest first, and one row more than the limit, which tells whether there is another page.
pub(crate) fn query(filter: &RunFilter) -> (String, Vec<Value>) {
    let mut sql = format!("SELECT {}, run FROM runs WHERE true", rows::columns::<RunRow>());
    let mut values = Vec::new();
    let mut narrow = |clause: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(clause);
            values.push(value);
        }
    };
    let text = |text: &str| Value::from(text.to_owned());
    let time = |at: Timestamp| Value::from(at.as_micros());
    // A few ids are looked up one by one, whatever else is asked; nobody walks through a tenant's runs for them.
    let by_tenant = if filter.ids.is_empty() { " AND tenant = ?" } else { " AND +tenant = ?" };
    narrow(by_tenant, filter.tenant.as_ref().map(TenantId::as_str).map(text));
    narrow(" AND workflow = ?", filter.workflow.as_ref().map(WorkflowId::as_str).map(text));
    narrow(" AND parent = ?", filter.parent.as_ref().map(RunId::as_str).map(text));
    narrow(" AND root = ?", filter.root.as_ref().map(RunId::as_str).map(text));
    narrow(" AND created_at >= ?", filter.created_from.map(time));
    narrow(" AND created_at <= ?", filter.created_until.map(time));
    narrow(" AND updated_at >= ?", filter.updated_from.map(time));
    narrow(" AND updated_at <= ?", filter.updated_until.map(time));
    narrow(" AND summary ->> '$.usage.costUsd' >= ?", filter.cost_usd_from.map(Value::from));
    narrow(" AND run < ?", filter.cursor.map(|cursor| Value::from(integer(cursor))));
    narrow(" AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", filter.tag.as_deref().map(text));
    if let Some(prefix) = filter.id_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        narrow(" AND id >= ?", Some(text(prefix)));
        narrow(" AND id < ?", after_prefix(prefix).map(Value::from));
    }
    if let Some(prefix) = filter.text_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        // By two columns at once: no index finds both in order, so the tenant's runs are walked, newest first.
        let (first, after) = (text(prefix), after_prefix(prefix).map_or(Value::Null, Value::from));
        narrow(" AND (+id >= ?", Some(first.clone()));
        narrow(" AND coalesce(+id < ?, true)", Some(after.clone()));
        narrow(" OR +workflow >= ?", Some(first));
        narrow(" AND coalesce(+workflow < ?, true))", Some(after));
    }
    for (position, id) in filter.ids.iter().enumerate() {
        narrow(if position == 0 { " AND id IN (?" } else { ", ?" }, Some(text(id.as_str())));
    }
    if !filter.ids.is_empty() {
        sql.push(')');
    }
    let mut narrow = |clause: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(clause);
            values.push(value);
        }
    };
    for (position, status) in filter.status.iter().enumerate() {
        narrow(if position == 0 { " AND status IN (?" } else { ", ?" }, Some(text(status.as_str())));
    }
    if !filter.status.is_empty() {
        sql.push(')');
        if !filter.status.contains(&RunStatus::Completed) {
            sql.push_str(" AND status <> 'completed'");
        }
    }
    for (told, path) in [(filter.diverged, "'$.diverged'"), (filter.over_budget, "'$.overBudget'")] {
        match told {
            Some(true) => sql.push_str(&format!(" AND summary ->> {path}")),
            Some(false) => sql.push_str(&format!(" AND NOT coalesce(summary ->> {path}, 0)")),
            None => {}
        }
    }
    if filter.top_level {
        sql.push_str(" AND parent IS NULL");
    }
    sql.push_str(" ORDER BY run DESC LIMIT ?");
    values.push(Value::from(i64::try_from(filter.limit).unwrap_or(i64::MAX).saturating_add(1)));
    (sql, values)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
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
    fn counting_reads_indexes_only() {
        let tenant = || vec![Value::from("t".to_owned())];
        assert!(plan(COUNTS, tenant()).contains("COVERING INDEX runs_by_status"), "{}", plan(COUNTS, tenant()));
        assert!(plan(TOTAL, tenant()).contains("COVERING INDEX runs_by_"), "{}", plan(TOTAL, tenant()));
    }

    #[test]
    fn floors_look_only_at_runs_that_may_look_back() {
        let (tenant, scope) = (Value::from("t".to_owned()), Value::from("s".to_owned()));
        let memory = plan(MEMORY_FLOOR, vec![tenant.clone(), scope]);
        for index in
            ["runs_by_memory_scope", "runs_by_scope", "runs_by_root", "sqlite_autoindex_runs_1", "events_by_run"]
        {
            uses(&memory, index);
        }
        uses(&plan(WORKSPACE_FLOOR, vec![tenant.clone(), Value::from("default".to_owned())]), "runs_by_tenant");
        let kind = Value::from("memory".to_owned());
        uses(&plan(FORK_FLOOR, vec![tenant.clone(), kind, tenant]), "ledgers_by_base");
    }

    #[test]
    fn lists_use_an_index_and_need_no_sorting() {
        let planned = |filter: RunFilter| {
            let (sql, values) = query(&RunFilter { limit: 10, ..filter });
            plan(&sql, values)
        };
        let tenant = Some(TenantId::new("t"));
        let by_tenant = RunFilter { tenant, ..RunFilter::default() };
        uses(&planned(by_tenant.clone()), "runs_by_tenant");
        uses(&planned(RunFilter { workflow: Some(WorkflowId::new("w")), ..by_tenant.clone() }), "runs_by_workflow");
        uses(&planned(RunFilter { status: vec![RunStatus::Failed], ..by_tenant.clone() }), "runs_by_status");
        uses(&planned(RunFilter { parent: Some(RunId::new("p")), ..RunFilter::default() }), "runs_by_parent");
        uses(&planned(RunFilter { diverged: Some(true), ..by_tenant.clone() }), "runs_diverged");
        uses(&planned(RunFilter { over_budget: Some(true), ..by_tenant.clone() }), "runs_over_budget");
        let by_id = planned(RunFilter { ids: vec![RunId::new("a"), RunId::new("b")], ..by_tenant.clone() });
        assert!(by_id.contains("sqlite_autoindex_runs_1 (id=?)"), "{by_id}");
        let text_prefix = Some("run_".to_owned());
        uses(&planned(RunFilter { text_prefix, ..by_tenant.clone() }), "runs_by_tenant");
        uses(&planned(RunFilter { root: Some(RunId::new("p")), ..RunFilter::default() }), "runs_by_root");
    }
}
