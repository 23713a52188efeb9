//! The queries that find runs.

use std::sync::LazyLock;

use baton_model::{RunId, RunStatus, TenantId, WorkflowId};
use baton_store::codec::{after_prefix, integer};
use baton_store::{RunFilter, RunRow, StoredRecord};
use tokio_postgres::types::ToSql;

use crate::rows;
use crate::text::{key, written};

pub(crate) static RECORDS: LazyLock<String> = LazyLock::new(|| {
    let columns = rows::columns::<StoredRecord>();
    format!("SELECT {columns} FROM events WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3")
});
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

/// Every run that is not pruned may look back to what its first record knew; a fork's own first one, for what came
/// before is its source's. $2 is the key of the scope, $3 the scope.
pub(crate) const MEMORY_FLOOR: &str = "SELECT min((
        SELECT memory FROM events WHERE events.run = readers.id ORDER BY seq LIMIT 1
    )) FROM (
        SELECT id FROM runs WHERE tenant = $1 AND memory_scope = $2 AND memory_scope <> '' AND pruned_at IS NULL
        UNION ALL
        SELECT id FROM runs WHERE tenant = $1 AND scope = $2 AND scope IS NOT NULL AND memory_scope = ''
            AND pruned_at IS NULL
        UNION ALL
        SELECT id FROM runs WHERE root = $3 AND root IS NOT NULL AND tenant = $1 AND scope IS NULL
            AND memory_scope = '' AND pruned_at IS NULL
        UNION ALL
        SELECT id FROM runs WHERE id = $3 AND tenant = $1 AND scope IS NULL AND root IS NULL AND memory_scope = ''
            AND pruned_at IS NULL
    ) readers";
pub(crate) const WORKSPACE_FLOOR: &str = "SELECT min((
        SELECT workspace FROM events WHERE events.run = runs.id ORDER BY seq LIMIT 1
    )) FROM runs WHERE tenant = $1 AND pruned_at IS NULL
    AND workspace_scope = CASE WHEN $2::TEXT = 'default' THEN '' ELSE $2::TEXT END";
/// Where other versioned stores were forked off.
pub(crate) const FORK_FLOOR: &str = "SELECT min(base_version) FROM ledgers WHERE base = $1 AND base IS NOT NULL";

pub(crate) type Value = Box<dyn ToSql + Sync + Send>;

/// Newest first, and one row more than the limit, which tells whether there is another page.
pub(crate) fn query(filter: &RunFilter) -> (String, Vec<Value>) {
    let mut query = Query {
        sql: format!("SELECT {}, position FROM runs WHERE true", rows::columns::<RunRow>()),
        values: Vec::new(),
    };
    let text = |text: &str| -> Value { Box::new(written(text).into_owned()) };
    let number = |number: i64| -> Value { Box::new(number) };
    query.narrow("tenant = $", filter.tenant.as_ref().map(TenantId::as_str).map(text));
    let key = |text: &str| -> Value { Box::new(key(text).into_owned()) };
    query.narrow("workflow = $", filter.workflow.as_ref().map(WorkflowId::as_str).map(key));
    query.narrow("parent = $", filter.parent.as_ref().map(RunId::as_str).map(text));
    query.narrow("root = $", filter.root.as_ref().map(RunId::as_str).map(text));
    query.narrow("created_at >= $", filter.created_from.map(|at| number(at.as_micros())));
    query.narrow("created_at <= $", filter.created_until.map(|at| number(at.as_micros())));
    query.narrow("updated_at >= $", filter.updated_from.map(|at| number(at.as_micros())));
    query.narrow("updated_at <= $", filter.updated_until.map(|at| number(at.as_micros())));
    query.narrow("cost_usd >= $", filter.cost_usd_from.map(|cost| -> Value { Box::new(cost) }));
    query.narrow("position < $", filter.cursor.map(|cursor| number(integer(cursor))));
    if let Some(tag) = &filter.tag {
        query.values.push(text(tag));
        query.sql.push_str(&format!(" AND ${} = ANY(tags)", query.values.len()));
    }
    if let Some(prefix) = filter.id_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        query.narrow("id >= $", Some(text(prefix)));
        // On the written form, which `text` must not write again.
        query.narrow("id < $", after_prefix(&written(prefix)).map(|end| -> Value { Box::new(end) }));
    }
    if let Some(prefix) = filter.text_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        // By two columns at once: no index finds both in order, so the tenant's runs are walked, newest first.
        query.values.push(text(prefix));
        query.values.push(Box::new(after_prefix(&written(prefix))));
        let (first, after) = (query.values.len() - 1, query.values.len());
        let within = |column: &str| format!("({column} >= ${first} AND coalesce({column} < ${after}::TEXT, true))");
        query.sql.push_str(&format!(" AND ({} OR {})", within("id"), within("coalesce(long_workflow, workflow)")));
    }
    if !filter.ids.is_empty() {
        let ids: Vec<String> = filter.ids.iter().map(|id| written(id.as_str()).into_owned()).collect();
        query.values.push(Box::new(ids));
        query.sql.push_str(&format!(" AND id = ANY(${})", query.values.len()));
    }
    for (told, column) in [(filter.diverged, "diverged"), (filter.over_budget, "over_budget")] {
        match told {
            Some(true) => query.sql.push_str(&format!(" AND {column}")),
            Some(false) => query.sql.push_str(&format!(" AND NOT {column}")),
            None => {}
        }
    }
    if filter.top_level {
        query.sql.push_str(" AND parent IS NULL");
    }
    if !filter.status.is_empty() {
        let statuses: Vec<&'static str> = filter.status.iter().map(|status| status.as_str()).collect();
        query.values.push(Box::new(statuses));
        query.sql.push_str(&format!(" AND status = ANY(${})", query.values.len()));
        if !filter.status.contains(&RunStatus::Completed) {
            query.sql.push_str(" AND status <> 'completed'");
        }
    }
    query.values.push(number(i64::try_from(filter.limit).unwrap_or(i64::MAX).saturating_add(1)));
    query.sql.push_str(&format!(" ORDER BY position DESC LIMIT ${}", query.values.len()));
    (query.sql, query.values)
}

pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Query {
    pub(crate) fn narrow(&mut self, clause: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.values.push(value);
            self.sql.push_str(&format!(" AND {clause}{}", self.values.len()));
        }
    }
}
