//! What is asked about runs.

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, TenantId, Timestamp};
use baton_store::codec::integer;
use baton_store::{ActiveTrees, Error, KeptTree, Page, RunFilter, RunPlace, RunReads, RunRow, StoredRecord};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::questions::{Question, bound};
use crate::text::{key, written};
use crate::{PostgresStore, log, rows, run_counts, run_list, runs};

#[async_trait]
impl RunReads for PostgresStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.lookups.run(run).await
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        let id = written(run.as_str());
        let values: [&(dyn ToSql + Sync); 3] = [&id, &integer(from), &bound(limit)];
        log::read(&self.questions, run, from, limit, Question { sql: &runs::RECORDS, values: &values }, true).await
    }

    async fn records_within(
        &self,
        run: &RunId,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredRecord>, Error> {
        let id = written(run.as_str());
        let values: [&(dyn ToSql + Sync); 4] = [&id, &integer(from), &bound(limit), &bound(bytes)];
        let whole = bytes == usize::MAX;
        let question = Question { sql: &runs::RECORDS_WITHIN, values: &values };
        log::read(&self.questions, run, from, limit, question, whole).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
        run_list::page(&self.questions, filter).await
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let tenant = written(tenant.as_str());
        match scope {
            Some(scope) => self.questions.one(runs::ACTIVE_IN, &[&tenant, &key(scope)], rows::run_id).await,
            None => self.questions.one(runs::ACTIVE, &[&tenant], rows::run_id).await,
        }
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        run_counts::read(&self.counted, &self.questions, tenant).await
    }

    async fn active_trees(&self, tenant: &TenantId) -> Result<ActiveTrees, Error> {
        let read =
            |row: &Row| rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)));
        let counts = self.questions.list(runs::ACTIVE_TREES, &[&written(tenant.as_str())], read).await?;
        let mut active = ActiveTrees::default();
        counts.into_iter().for_each(|(status, count)| active.add(status, count));
        Ok(active)
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Error> {
        // No tenant is empty, so the empty one comes before all.
        let after = after.map(|after| written(after.as_str())).unwrap_or_default();
        let read = |row: &Row| rows::fields(row, |row| row.text("tenant").map(TenantId::new));
        self.questions.list(runs::TENANTS, &[&after, &bound(limit)], read).await
    }

    async fn kept_trees(
        &self,
        tenant: &TenantId,
        before: Option<RunPlace>,
        limit: usize,
    ) -> Result<Vec<KeptTree>, Error> {
        let (at, position) =
            before.map_or((i64::MAX, i64::MAX), |place| (place.created_at.as_micros(), integer(place.position)));
        let read = |row: &Row| rows::fields(row, baton_store::codec::kept_tree);
        let values: [&(dyn ToSql + Sync); 4] = [&written(tenant.as_str()), &at, &position, &bound(limit)];
        self.questions.list(runs::KEPT_TREES, &values, read).await
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
