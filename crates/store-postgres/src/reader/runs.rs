//! What is asked about runs.

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, TenantId, Timestamp};
use baton_store::codec::integer;
use baton_store::{Error, Page, RunFilter, RunReads, RunRow, StoredRecord};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::questions::bound;
use crate::text::{key, written};
use crate::{PostgresStore, rows, runs};

#[async_trait]
impl RunReads for PostgresStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.lookups.run(run).await
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.questions
            .list(&runs::RECORDS, &[&written(run.as_str()), &integer(from), &bound(limit)], rows::stored)
            .await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        let (sql, values) = runs::query(filter);
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let mut found = self.questions.list(&sql, &values, rows::run).await?;
        // One more than asked for was fetched, to know whether there is another page.
        let more = found.len() > filter.limit;
        found.truncate(filter.limit);
        let next = found.last().filter(|_| more).map(|(position, _)| *position);
        Ok(Page { items: found.into_iter().map(|(_, row)| row).collect(), next })
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let tenant = written(tenant.as_str());
        match scope {
            Some(scope) => self.questions.one(runs::ACTIVE_IN, &[&tenant, &key(scope)], rows::run_id).await,
            None => self.questions.one(runs::ACTIVE, &[&tenant], rows::run_id).await,
        }
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let sql = "SELECT status, count(*) FROM runs WHERE tenant = $1 GROUP BY status";
        let read =
            |row: &Row| rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)));
        let found = self.questions.list(sql, &[&written(tenant.as_str())], read).await?;
        let count = |status| found.iter().find(|(known, _)| *known == status).map_or(0, |(_, count)| *count);
        Ok(RunStatus::ALL.map(|status| (status, count(status))).to_vec())
    }

    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        self.questions.list(runs::FORKS, &[&written(run.as_str())], rows::run_id).await
    }

    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        let counted = self.questions.one(runs::DESCENDANTS, &[&written(root.as_str())], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        let after = integer(after.unwrap_or(0));
        let read = |row: &Row| rows::fields(row, |row| Ok((row.count("position")?, RunId::new(row.text("id")?))));
        self.questions.list(runs::UNFINISHED, &[&self.me(), &after, &bound(limit)], read).await
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        let read = |row: &Row| rows::fields(row, |row| Ok((RunId::new(row.text("id")?), row.time("wake_at")?)));
        self.questions.list(runs::DUE, &[&self.me(), &until.as_micros(), &bound(limit)], read).await
    }
}
