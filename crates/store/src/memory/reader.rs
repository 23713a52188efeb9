use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};

use super::MemoryStore;
use super::disk::Log;
use super::ledger::Ledger;
use crate::{
    Change, Delivery, Error, InterruptFilter, InterruptRow, LedgerId, LedgerKind, LedgerRow, Lens, Page, Reader, Reply,
    RunFilter, RunRow, StoredRecord, Webhook, WorkflowVersion,
};

#[async_trait]
impl Reader for MemoryStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        Ok(self.state.lock().disk.log(run).map(|log| log.row.clone()))
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        let state = self.state.lock();
        let records = state.disk.log(run).map(|log| {
            // By number, not by place: a log that was pruned does not start at 0.
            let start = log.records.partition_point(|record| record.seq < from);
            log.records[start..].iter().take(limit).cloned().collect()
        });
        Ok(records.unwrap_or_default())
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        let state = self.state.lock();
        let newest_first = state.disk.runs.iter().enumerate().rev().map(|(place, log)| (place as u64 + 1, log));
        let mut found = newest_first.filter(|(position, log)| {
            filter.cursor.is_none_or(|cursor| *position < cursor) && matches(filter, &log.row)
        });
        let page: Vec<_> = found.by_ref().take(filter.limit).collect();
        let more = found.next().is_some();
        let next = page.last().filter(|_| more).map(|(position, _)| *position);
        Ok(Page { items: page.into_iter().map(|(_, log)| log.row.clone()).collect(), next })
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let state = self.state.lock();
        let active = state
            .disk
            .runs
            .iter()
            .map(|log| &log.row)
            .find(|row| row.tenant == *tenant && row.scope.as_deref() == scope && !row.status.is_terminal());
        Ok(active.map(|row| row.id.clone()))
    }

    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        let state = self.state.lock();
        let forked = |log: &&Log| log.row.origin.as_ref().is_some_and(|origin| origin.source == *run);
        Ok(state.disk.runs.iter().filter(forked).map(|log| log.row.id.clone()).collect())
    }

    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        let state = self.state.lock();
        Ok(state.disk.runs.iter().filter(|log| log.row.root.as_ref() == Some(root)).count() as u64)
    }

    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        let state = self.state.lock();
        let unfinished =
            (1u64..).zip(&state.disk.runs).filter(|(position, log)| *position > after.unwrap_or(0) && log.row.busy);
        Ok(unfinished.take(limit).map(|(position, log)| (position, log.row.id.clone())).collect())
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        let state = self.state.lock();
        let mut due: Vec<_> = state
            .disk
            .runs
            .iter()
            .filter_map(|log| Some((log.row.id.clone(), log.row.wake_at.filter(|at| *at <= until)?)))
            .collect();
        due.sort_by_key(|(_, at)| *at);
        due.truncate(limit);
        Ok(due)
    }

    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        Ok(self.state.lock().disk.ledgers.get(ledger).map_or(0, |ledger| ledger.version))
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        Ok(self.state.lock().disk.ledgers.get(ledger).and_then(|ledger| ledger.base.clone()))
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        Ok(lens.view(self.state.lock().disk.changes(ledger)))
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        let lens = Lens { limit: None, ..lens.clone() };
        let state = self.state.lock();
        Ok(lens.view(state.disk.changes(ledger).iter().filter(|change| change.key == key)).pop())
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        let lens = Lens { limit: None, ..lens.clone() };
        Ok(lens.view(self.state.lock().disk.changes(ledger)).len() as u64)
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        let state = self.state.lock();
        let newest_first = state.disk.changes(ledger).iter().rev();
        let wanted = newest_first
            .filter(|change| key.is_none_or(|key| change.key == key))
            .filter(|change| before.is_none_or(|before| change.version < before));
        Ok(wanted.take(limit).cloned().collect())
    }

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let state = self.state.lock();
        let held = state.disk.ledgers.iter().filter(|(id, ledger)| {
            id.tenant == *tenant && id.kind == kind && (!ledger.changes.is_empty() || ledger.base.is_some())
        });
        let row = |(id, ledger): (&LedgerId, &Ledger)| LedgerRow {
            scope: id.scope.clone(),
            version: ledger.version,
            updated_at: ledger.updated_at,
        };
        Ok(held.map(row).collect())
    }

    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        let reads = |row: &RunRow| {
            row.tenant == ledger.tenant
                && match ledger.kind {
                    LedgerKind::Memory => row.memory_scope == ledger.scope,
                    LedgerKind::Workspace => row.workspace_scope == ledger.scope,
                }
        };
        let state = self.state.lock();
        let readers = state.disk.runs.iter().filter(|log| log.row.pruned.is_none() && reads(&log.row));
        let known = readers.filter_map(|log| log.records.first()).map(|first| match ledger.kind {
            LedgerKind::Memory => first.versions.memory,
            LedgerKind::Workspace => first.versions.workspace,
        });
        let forked = state.disk.ledgers.values().filter_map(|other| other.base.as_ref());
        let looks_back = forked.filter(|(base, _)| base == ledger).map(|(_, version)| *version);
        Ok(known.chain(looks_back).min())
    }

    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.state.lock().disk.blobs.get(digest).cloned())
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        let versions = (tenant.clone(), id.clone(), 0)..=(tenant.clone(), id.clone(), u32::MAX);
        Ok(self.state.lock().disk.workflows.range(versions).next_back().map(|(_, version)| version.clone()))
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let state = self.state.lock();
        // Versions come in rising order, so the newest is the one that stays.
        let newest: BTreeMap<_, _> =
            state.disk.workflows.values().filter(|version| version.tenant == *tenant).map(|v| (&v.id, v)).collect();
        Ok(newest.into_values().cloned().collect())
    }

    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        let state = self.state.lock();
        let mut open: Vec<_> = state
            .disk
            .interrupts
            .values()
            .filter(|row| filter.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant))
            .filter(|row| filter.run.as_ref().is_none_or(|run| row.run == *run))
            .filter(|row| filter.kind.as_ref().is_none_or(|kind| row.kind == *kind))
            .cloned()
            .collect();
        open.sort_by_key(|row| row.requested_at);
        open.truncate(filter.limit);
        Ok(open)
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        Ok(self.state.lock().disk.interrupts.get(&(run.clone(), node.clone())).cloned())
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        Ok(self.state.lock().disk.replies.get(key).cloned())
    }

    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let state = self.state.lock();
        Ok(state.disk.webhooks.get(id).filter(|webhook| webhook.tenant == *tenant).cloned())
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        Ok(self.state.lock().disk.webhooks.values().cloned().collect())
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let state = self.state.lock();
        let mut due: Vec<_> =
            state.disk.deliveries.values().filter(|delivery| delivery.due_at <= now).cloned().collect();
        due.sort_by_key(|delivery| delivery.due_at);
        due.truncate(limit);
        Ok(due)
    }

    async fn ping(&self) -> Result<(), Error> {
        Ok(())
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
}
