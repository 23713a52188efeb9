//! What is asked about runs.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, TenantId, Timestamp};

use super::super::disk::Log;
use super::super::store::MemoryStore;
use crate::{
    ActiveTrees, Error, KeptTree, LogCheck, LogEnds, Page, RunFilter, RunPlace, RunReads, RunRow, StoredRecord,
};

#[async_trait]
impl RunReads for MemoryStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().log(run).map(|log| log.row.clone()))
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
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let Some(log) = disk.log(run) else { return Ok(Vec::new()) };
        let ends = LogEnds::of(&log.row);
        let sum = |seq| {
            let place = log.records.partition_point(|record| record.seq < seq);
            log.records.get(place).filter(|record| record.seq == seq).and_then(|record| record.sum)
        };
        let before = LogCheck::needs(&ends, from).and_then(sum);
        let mut check = LogCheck::new(run, ends, from, before);
        // By number, not by place: a log that was pruned does not start at 0.
        let start = log.records.partition_point(|record| record.seq < from);
        let mut found: Vec<StoredRecord> = Vec::new();
        let mut left = bytes;
        for record in log.records[start..].iter().take(limit) {
            match left.checked_sub(record.weight()) {
                Some(rest) => left = rest,
                None if found.is_empty() => left = 0,
                None => return Ok(self.counted(found)),
            }
            check.take(record)?;
            found.push(record.clone());
        }
        if found.len() < limit {
            check.end()?;
        }
        Ok(self.counted(found))
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let placed = (1..).zip(&disk.runs).map(|(position, log)| {
            let place = RunPlace { created_at: log.row.created_at, position };
            (place, &log.row)
        });
        let mut found: Vec<(RunPlace, &RunRow)> = placed
            .filter(|(place, row)| filter.cursor.is_none_or(|cursor| *place < cursor) && filter.matches(row))
            .collect();
        found.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        let more = found.len() > filter.limit;
        found.truncate(filter.limit);
        let next = found.last().filter(|_| more).map(|(place, _)| *place);
        Ok(Page { items: found.into_iter().map(|(_, row)| row.clone()).collect(), next })
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

    async fn active_trees(&self, tenant: &TenantId) -> Result<ActiveTrees, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let mut active = ActiveTrees::default();
        for log in disk.runs.iter().filter(|log| log.row.tenant == *tenant && log.row.root.is_none()) {
            active.add(log.row.status, 1);
        }
        Ok(active)
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let all: BTreeSet<&TenantId> = disk.runs.iter().map(|log| &log.row.tenant).collect();
        let later = all.into_iter().filter(|tenant| after.is_none_or(|after| *tenant > after));
        Ok(later.take(limit).cloned().collect())
    }

    async fn kept_trees(
        &self,
        tenant: &TenantId,
        before: Option<RunPlace>,
        limit: usize,
    ) -> Result<Vec<KeptTree>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let mut kept: Vec<KeptTree> = (1..)
            .zip(&disk.runs)
            .map(|(position, log)| (RunPlace { created_at: log.row.created_at, position }, &log.row))
            .filter(|(_, row)| row.tenant == *tenant && row.root.is_none() && row.pruned.is_none_or(|gone| !gone.log))
            .filter(|(place, _)| before.is_none_or(|before| *place < before))
            .map(|(place, row)| {
                let below = || disk.runs.iter().filter(|log| log.row.root.as_ref() == Some(&row.id));
                KeptTree {
                    place,
                    id: row.id.clone(),
                    workflow: row.workflow.clone(),
                    status: row.status,
                    updated_at: row.updated_at,
                    runs: 1 + below().count() as u64,
                    records: row.next_seq + below().map(|log| log.row.next_seq).sum::<u64>(),
                }
            })
            .collect();
        kept.sort_by_key(|tree| std::cmp::Reverse(tree.place));
        kept.truncate(limit);
        Ok(kept)
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

impl MemoryStore {
    fn counted(&self, records: Vec<StoredRecord>) -> Vec<StoredRecord> {
        let weight: usize = records.iter().map(StoredRecord::weight).sum();
        self.record_bytes_read.fetch_add(weight as u64, Ordering::AcqRel);
        records
    }
}
