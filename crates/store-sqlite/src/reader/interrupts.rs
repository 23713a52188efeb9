//! What is asked about open questions and replies.

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId};
use baton_store::codec::Stored as _;
use baton_store::{Error, InterruptFilter, InterruptReads, InterruptRow, Reply};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::query::{bound, list_whole, one};
use crate::rows;
use crate::store::SqliteStore;

fn elsewhere(what: &str) -> Error {
    Error::Corrupt { reason: format!("an index leads from {what} to another one") }
}

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
        self.readers()
            .read(move |c| list_whole(c, InterruptRow::TABLE, &sql, rusqlite::params_from_iter(values), rows::stored))
            .await
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
        let found: Option<InterruptRow> = {
            let (run, node) = (run.clone(), node.clone());
            self.readers().read(move |c| one(c, &sql, [run.as_str(), node.as_str()], rows::stored)).await?
        };
        match found {
            // An index may lead to another row.
            Some(row) if (&row.run, &row.node) != (&run, &node) => Err(elsewhere("an interrupt")),
            found => Ok(found),
        }
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let key = key.clone();
        let sql = format!("SELECT {} FROM replies WHERE key = ?1", rows::columns::<Reply>());
        let asked = key.clone();
        let found: Option<Reply> = self.readers().read(move |c| one(c, &sql, [asked.as_str()], rows::stored)).await?;
        match found {
            Some(reply) if reply.key != key => Err(elsewhere("a reply")),
            found => Ok(found),
        }
    }
}
