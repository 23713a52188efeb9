//! What is asked about runs.

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, RunSummary, TenantId, Timestamp};

use super::super::disk::Log;
use super::super::store::MemoryStore;
use crate::{Error, Page, RunFilter, RunReads, RunRow, StoredRecord};

#[async_trait]
impl RunReads for MemoryStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().log(run).map(|log| log.row.clone()))
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let records = disk.log(run).map(|log| {
            // By number, not by place: a log that was pruned does not start at 0.
            let start = log.records.partition_point(|record| record.seq < from);
            log.records[start..].iter().take(limit).cloned().collect()
        });
        Ok(records.unwrap_or_default())
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let newest_first = disk.runs.iter().enumerate().rev().map(|(place, log)| (place as u64 + 1, log));
        let mut found = newest_first.filter(|(position, log)| {
            filter.cursor.is_none_or(|cursor| *position < cursor) && matches(filter, &log.row)
        });
        let page: Vec<_> = found.by_ref().take(filter.limit).collect();
        let more = found.next().is_some();
        let next = page.last().filter(|_| more).map(|(position, _)| *position);
        Ok(Page { items: page.into_iter().map(|(_, log)| log.row.clone()).collect(), next })
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let active = disk
            .runs
            .iter()
            .map(|log| &log.row)
            .find(|row| row.tenant == *tenant && row.scope.as_deref() == scope && !row.status.is_terminal());
        Ok(active.map(|row| row.id.clone()))
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let count = |status: RunStatus| {
            disk.runs.iter().filter(|log| log.row.tenant == *tenant && log.row.status == status).count() as u64
        };
        Ok(RunStatus::ALL.map(|status| (status, count(status))).to_vec())
    }

    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let forked = |log: &&Log| log.row.origin.as_ref().is_some_and(|origin| origin.source == *run);
        Ok(disk.runs.iter().filter(forked).map(|log| log.row.id.clone()).collect())
    }

    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        Ok(disk.runs.iter().filter(|log| log.row.root.as_ref() == Some(root)).count() as u64)
    }

    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let me = self.epoch_now();
        let unfinished = (1u64..)
            .zip(&disk.runs)
            .filter(|(position, log)| *position > after.unwrap_or(0) && log.row.busy && log.owner == me);
        Ok(unfinished.take(limit).map(|(position, log)| (position, log.row.id.clone())).collect())
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let mut due: Vec<_> = disk
            .runs
            .iter()
            .filter(|log| log.owner == self.epoch_now())
            .filter_map(|log| Some((log.row.id.clone(), log.row.wake_at.filter(|at| *at <= until)?)))
            .collect();
        due.sort_by_key(|(_, at)| *at);
        due.truncate(limit);
        Ok(due)
    }
}

fn matches(filter: &RunFilter, row: &RunRow) -> bool {
    filter.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant)
        && (filter.status.is_empty() || filter.status.contains(&row.status))
        && filter.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
        && filter.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
        && filter.parent.as_ref().is_none_or(|parent| row.parent.as_ref() == Some(parent))
        && filter.root.as_ref().is_none_or(|root| row.root.as_ref() == Some(root))
        && filter.id_prefix.as_ref().is_none_or(|prefix| row.id.as_str().starts_with(prefix))
        && filter.created_from.is_none_or(|from| row.created_at >= from)
        && filter.created_until.is_none_or(|until| row.created_at <= until)
        && filter.updated_from.is_none_or(|from| row.updated_at >= from)
        && filter.updated_until.is_none_or(|until| row.updated_at <= until)
        && (filter.ids.is_empty() || filter.ids.contains(&row.id))
        && !(filter.top_level && row.parent.is_some())
        && filter
            .text_prefix
            .as_ref()
            .is_none_or(|prefix| row.id.as_str().starts_with(prefix) || row.workflow.as_str().starts_with(prefix))
        && says(filter, row)
}

/// Whether a run's summary is as asked. One that has none is neither diverged nor over its budget.
fn says(filter: &RunFilter, row: &RunRow) -> bool {
    if filter.diverged.is_none() && filter.over_budget.is_none() && filter.cost_usd_from.is_none() {
        return true;
    }
    let text = row.summary.as_deref().unwrap_or("{}");
    let summary: RunSummary = serde_json::from_str(text).unwrap_or_default();
    let cost = summary.usage.and_then(|usage| usage.cost_usd);
    filter.diverged.is_none_or(|diverged| summary.diverged == diverged)
        && filter.over_budget.is_none_or(|over| summary.over_budget == over)
        && filter.cost_usd_from.is_none_or(|from| cost.is_some_and(|cost| cost >= from))
}
