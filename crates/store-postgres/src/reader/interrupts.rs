//! What is asked about open questions and replies.

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId};
use baton_store::codec::Stored as _;
use baton_store::{Error, InterruptFilter, InterruptReads, InterruptRow, Reply};
use tokio_postgres::types::ToSql;

use crate::conditions::{Query, Value};
use crate::questions::bound;
use crate::text::{key, written};
use crate::{PostgresStore, rows};

#[async_trait]
impl InterruptReads for PostgresStore {
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        // Only what is asked for, or no index would be used.
        let text = |text: &str| -> Value { Box::new(written(text).into_owned()) };
        let sql = format!("SELECT {} FROM interrupts WHERE true", rows::columns::<InterruptRow>());
        let mut query = Query { sql, values: Vec::new() };
        query.narrow("tenant = $", filter.tenant.as_ref().map(|tenant| text(tenant.as_str())));
        query.narrow("run = $", filter.run.as_ref().map(|run| text(run.as_str())));
        query.narrow("kind = $", filter.kind.as_deref().map(text));
        query.values.push(Box::new(bound(filter.limit)));
        query
            .sql
            .push_str(&format!(" ORDER BY requested_at, run, coalesce(long_node, node) LIMIT ${}", query.values.len()));
        let values: Vec<&(dyn ToSql + Sync)> =
            query.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.questions.list_whole(InterruptRow::TABLE, &query.sql, &values, rows::stored).await
    }

    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM interrupts WHERE tenant = $1";
        let counted = self.questions.one(sql, &[&written(tenant.as_str())], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        let sql = format!("SELECT {} FROM interrupts WHERE run = $1 AND node = $2", rows::columns::<InterruptRow>());
        self.questions.one(&sql, &[&written(run.as_str()), &key(node.as_str())], rows::stored).await
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let sql = format!("SELECT {} FROM replies WHERE key = $1", rows::columns::<Reply>());
        self.questions.one(&sql, &[&key.as_str()], rows::stored).await
    }
}
