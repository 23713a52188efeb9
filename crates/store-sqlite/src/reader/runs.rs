//! What is asked about runs.

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, TenantId, Timestamp};
use baton_store::codec::integer;
use baton_store::{ActiveTrees, Error, KeptTree, Page, RunFilter, RunPlace, RunReads, RunRow, StoredRecord};
use rusqlite::{Connection, params};

use crate::query::{bound, list, one};
use crate::store::SqliteStore;
use crate::{log, rows, run_list, runs};

fn wrong_row(run: &RunId) -> rusqlite::Error {
    rows::damaged(Error::Corrupt { reason: format!("the index of runs leads from {run} to another run") })
}

#[async_trait]
impl RunReads for SqliteStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        let id = run.clone();
        let query = move |c: &Connection| {
            let found: Option<RunRow> = one(c, &runs::BY_ID, [id.as_str()], rows::stored)?;
            // An index may lead to another row.
            match found {
                Some(row) if row.id != id => Err(wrong_row(&id)),
                found => Ok(found),
            }
        };
        self.readers().read(query).await
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.records_within(run, from, limit, usize::MAX).await
    }

    async fn records_within(
        &self,
        run: &RunId,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredRecord>, Error> {
        let id = run.clone();
        self.readers().read(move |c| log::records(c, &id, from, limit, bytes)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
        let filter = filter.clone();
        self.readers().read(move |c| run_list::page(c, &filter)).await
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let (tenant, scope) = (tenant.clone(), scope.map(str::to_owned));
        let query = move |c: &Connection| one(c, runs::ACTIVE, params![tenant.as_str(), scope], rows::run_id);
        self.readers().read(query).await
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let tenant = tenant.clone();
        let query = move |c: &Connection| {
            list(c, runs::COUNTS, [tenant.as_str()], |row| {
                rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)))
            })
        };
        self.readers().read(query).await
    }

    async fn active_trees(&self, tenant: &TenantId) -> Result<ActiveTrees, Error> {
        let tenant = tenant.clone();
        let query = move |c: &Connection| {
            let counts: Vec<(RunStatus, u64)> = list(c, runs::ACTIVE_TREES, [tenant.as_str()], |row| {
                rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)))
            })?;
            let mut active = ActiveTrees::default();
            counts.into_iter().for_each(|(status, count)| active.add(status, count));
            Ok(active)
        };
        self.readers().read(query).await
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Error> {
        // No tenant is empty, so the empty one comes before all.
        let after = after.map_or(String::new(), ToString::to_string);
        let query = move |c: &Connection| {
            list(c, runs::TENANTS, params![after, bound(limit)], |row| {
                rows::fields(row, |row| row.text("tenant").map(TenantId::new))
            })
        };
        self.readers().read(query).await
    }

    async fn kept_trees(
        &self,
        tenant: &TenantId,
        before: Option<RunPlace>,
        limit: usize,
    ) -> Result<Vec<KeptTree>, Error> {
        let tenant = tenant.clone();
        let (at, run) =
            before.map_or((i64::MAX, i64::MAX), |place| (place.created_at.as_micros(), integer(place.position)));
        let query = move |c: &Connection| {
            list(c, runs::KEPT_TREES, params![tenant.as_str(), at, run, bound(limit)], |row| {
                rows::fields(row, baton_store::codec::kept_tree)
            })
        };
        self.readers().read(query).await
    }

    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        let run = run.clone();
        let query = move |c: &Connection| list(c, runs::FORKS, [run.as_str()], rows::run_id);
        self.readers().read(query).await
    }

    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        let root = root.clone();
        let query = move |c: &Connection| one(c, runs::DESCENDANTS, params![root.as_str()], rows::count);
        Ok(self.readers().read(query).await?.unwrap_or(0))
    }

    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        let after = integer(after.unwrap_or(0));
        let query = move |c: &Connection| {
            list(c, runs::UNFINISHED, params![after, bound(limit)], |row| {
                rows::fields(row, |row| Ok((row.count("run")?, RunId::new(row.text("id")?))))
            })
        };
        self.readers().read(query).await
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        let query = move |c: &Connection| {
            list(c, runs::DUE, params![until.as_micros(), bound(limit)], |row| {
                rows::fields(row, |row| Ok((RunId::new(row.text("id")?), row.time("wake_at")?)))
            })
        };
        self.readers().read(query).await
    }
}
