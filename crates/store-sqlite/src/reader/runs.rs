//! What is asked about runs.

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, TenantId, Timestamp};
use baton_store::codec::integer;
use baton_store::{Error, Page, RunFilter, RunReads, RunRow, StoredRecord};
use rusqlite::{Connection, params};

use crate::query::{bound, list, one};
use crate::store::SqliteStore;
use crate::{rows, runs};

#[async_trait]
impl RunReads for SqliteStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        let id = run.clone();
        self.readers().read(move |c| one(c, &runs::BY_ID, [id.as_str()], rows::stored)).await
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        let id = run.clone();
        let query = move |c: &Connection| {
            list(c, &runs::RECORDS, params![id.as_str(), integer(from), bound(limit)], rows::stored)
        };
        self.readers().read(query).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        let (sql, values) = runs::query(filter);
        let limit = filter.limit;
        let mut found =
            self.readers().read(move |c| list(c, &sql, rusqlite::params_from_iter(values), rows::run)).await?;
        // One more than asked for was fetched, to know whether there is another page.
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(position, _)| *position);
        Ok(Page { items: found.into_iter().map(|(_, row)| row).collect(), next })
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let (tenant, scope) = (tenant.clone(), scope.map(str::to_owned));
        let query = move |c: &Connection| one(c, runs::ACTIVE, params![tenant.as_str(), scope], rows::run_id);
        self.readers().read(query).await
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let tenant = tenant.clone();
        let query = move |c: &Connection| {
            let mut counts = list(c, runs::COUNTS, [tenant.as_str()], |row| {
                rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)))
            })?;
            let all = one(c, runs::TOTAL, [tenant.as_str()], rows::count)?.unwrap_or(0);
            let others: u64 = counts.iter().map(|(_, count)| count).sum();
            counts.push((RunStatus::Completed, all.saturating_sub(others)));
            Ok(counts)
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
