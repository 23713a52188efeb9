//! What is asked about open questions and replies.

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId};
use baton_store::{Error, InterruptFilter, InterruptReads, InterruptRow, Reply};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::query::{bound, list, one};
use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl InterruptReads for SqliteStore {
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        let mut sql = format!("SELECT {} FROM interrupts WHERE true", rows::columns::<InterruptRow>());
        let mut values = Vec::new();
        let mut narrow = |clause: &str, value: Option<&str>| {
            if let Some(value) = value {
                sql.push_str(clause);
                values.push(Value::from(value.to_owned()));
            }
        };
        narrow(" AND tenant = ?", filter.tenant.as_ref().map(TenantId::as_str));
        narrow(" AND run = ?", filter.run.as_ref().map(RunId::as_str));
        narrow(" AND kind = ?", filter.kind.as_deref());
        sql.push_str(" ORDER BY requested_at, run, node LIMIT ?");
        values.push(Value::from(bound(filter.limit)));
        self.readers().read(move |c| list(c, &sql, rusqlite::params_from_iter(values), rows::stored)).await
    }

    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let tenant = tenant.clone();
        let sql = "SELECT count(*) FROM interrupts WHERE tenant = ?1";
        let query = move |c: &Connection| one(c, sql, [tenant.as_str()], rows::count);
        Ok(self.readers().read(query).await?.unwrap_or(0))
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        let (run, node) = (run.clone(), node.clone());
        let sql = format!("SELECT {} FROM interrupts WHERE run = ?1 AND node = ?2", rows::columns::<InterruptRow>());
        self.readers().read(move |c| one(c, &sql, [run.as_str(), node.as_str()], rows::stored)).await
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let key = key.clone();
        let sql = format!("SELECT {} FROM replies WHERE key = ?1", rows::columns::<Reply>());
        self.readers().read(move |c| one(c, &sql, [key.as_str()], rows::stored)).await
    }
}
