//! Statements that are put together from what is asked.

use tokio_postgres::types::ToSql;

pub(crate) type Value = Box<dyn ToSql + Sync + Send>;

#[derive(Default)]
pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Query {
    /// A value, and how the statement refers to it.
    pub(crate) fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// Goes on behind other conditions; the value stands at the end.
    pub(crate) fn narrow(&mut self, clause: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.values.push(value);
            self.sql.push_str(&format!(" AND {clause}{}", self.values.len()));
        }
    }

    pub(crate) fn references(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
