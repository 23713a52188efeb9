use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, RunStatus, RunSummary, TenantId, Timestamp, WebhookId, WorkflowId};

use super::disk::Log;
use super::ledger::Ledger;
use super::store::MemoryStore;
use crate::{
    AnnotationRow, Change, DeadLetter, Delivery, Error, InterruptFilter, InterruptRow, LedgerId, LedgerKind, LedgerRow,
    Lens, LetterPlace, Page, Quarantine, Reader, Reply, RunFilter, RunRow, StoredRecord, Usage, UsageClass, Webhook,
    WebhookLoad, WorkflowVersion,
};

#[async_trait]
impl Reader for MemoryStore {
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

    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().ledgers.get(ledger).map_or(0, |ledger| ledger.version))
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().ledgers.get(ledger).and_then(|ledger| ledger.base.clone()))
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        let _turn = self.turn().await;
        Ok(lens.view(self.disk.lock().changes(ledger)))
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        let _turn = self.turn().await;
        let lens = Lens { limit: None, ..lens.clone() };
        let disk = self.disk.lock();
        Ok(lens.view(disk.changes(ledger).iter().filter(|change| change.key == key)).pop())
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        let _turn = self.turn().await;
        let lens = Lens { limit: None, ..lens.clone() };
        Ok(lens.view(self.disk.lock().changes(ledger)).len() as u64)
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let newest_first = disk.changes(ledger).iter().rev();
        let wanted = newest_first
            .filter(|change| key.is_none_or(|key| change.key == key))
            .filter(|change| before.is_none_or(|before| change.version < before));
        Ok(wanted.take(limit).cloned().collect())
    }

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let held = disk.ledgers.iter().filter(|(id, ledger)| {
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
        let _turn = self.turn().await;
        let reads = |row: &RunRow| {
            row.tenant == ledger.tenant
                && match ledger.kind {
                    LedgerKind::Memory => row.memory_scope == ledger.scope,
                    LedgerKind::Workspace => row.workspace_scope == ledger.scope,
                }
        };
        let disk = self.disk.lock();
        let readers = disk.runs.iter().filter(|log| log.row.pruned.is_none() && reads(&log.row));
        let known = readers.filter_map(|log| log.records.first()).map(|first| match ledger.kind {
            LedgerKind::Memory => first.versions.memory,
            LedgerKind::Workspace => first.versions.workspace,
        });
        let forked = disk.ledgers.values().filter_map(|other| other.base.as_ref());
        let looks_back = forked.filter(|(base, _)| base == ledger).map(|(_, version)| *version);
        Ok(known.chain(looks_back).min())
    }

    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().blobs.get(digest).cloned())
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        let _turn = self.turn().await;
        let versions = (tenant.clone(), id.clone(), 0)..=(tenant.clone(), id.clone(), u32::MAX);
        Ok(self.disk.lock().workflows.range(versions).next_back().map(|(_, version)| version.clone()))
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        // Versions come in rising order, so the newest is the one that stays.
        let newest: BTreeMap<_, _> =
            disk.workflows.values().filter(|version| version.tenant == *tenant).map(|v| (&v.id, v)).collect();
        Ok(newest.into_values().cloned().collect())
    }

    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        let _turn = self.turn().await;
        let versions = (tenant.clone(), id.clone(), 0)..=(tenant.clone(), id.clone(), u32::MAX);
        Ok(self.disk.lock().workflows.range(versions).rev().map(|(_, version)| version.clone()).collect())
    }

    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let mut open: Vec<_> = disk
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

    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().interrupts.values().filter(|row| row.tenant == *tenant).count() as u64)
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().interrupts.get(&(run.clone(), node.clone())).cloned())
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().replies.get(key).cloned())
    }

    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let rows = disk.annotations.get(run).into_iter().flat_map(BTreeMap::values);
        Ok(rows.filter(|row| after.is_none_or(|after| row.id.as_str() > after)).take(limit).cloned().collect())
    }

    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().annotations.get(run).and_then(|rows| rows.get(id)).cloned())
    }

    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().annotations.get(run).map_or(0, |rows| rows.len() as u64))
    }

    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().quarantine.get(root).cloned())
    }

    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let later = disk.quarantine.values().filter(|row| after.as_ref().is_none_or(|after| row.root > *after));
        Ok(later.filter(|row| tenant.is_none_or(|tenant| row.tenant == *tenant)).take(limit).cloned().collect())
    }

    async fn count_quarantined(&self) -> Result<u64, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().quarantine.len() as u64)
    }

    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        Ok(disk.webhooks.get(id).filter(|webhook| webhook.tenant == *tenant).cloned())
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().webhooks.values().cloned().collect())
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let mine = |delivery: &&Delivery| self.is_mine(&disk, &delivery.run);
        let mut due: Vec<_> =
            disk.deliveries.values().filter(|delivery| delivery.due_at <= now).filter(mine).cloned().collect();
        due.sort_by_key(|delivery| delivery.due_at);
        due.truncate(limit);
        Ok(due)
    }

    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let wanted = |delivery: &&Delivery| delivery.webhook == *webhook && self.is_mine(&disk, &delivery.run);
        let mut found: Vec<_> = disk.deliveries.values().filter(wanted).cloned().collect();
        found.sort_by_key(|delivery| delivery.due_at);
        found.truncate(limit);
        Ok(found)
    }

    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().deliveries.get(&(webhook.clone(), run.clone(), seq)).cloned())
    }

    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let later = disk.webhooks.values().filter(|webhook| after.is_none_or(|after| webhook.id > *after));
        Ok(later.filter(|webhook| webhook.tenant == *tenant).take(limit).cloned().collect())
    }

    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().webhook_loads(tenant, only))
    }

    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&LetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        let _turn = self.turn().await;
        let mut found = self.disk.lock().letters_of(webhook);
        found.retain(|letter| before.is_none_or(|before| letter.place() < *before));
        found.truncate(limit);
        Ok(found)
    }

    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().dead_letters.get(&(webhook.clone(), run.clone(), seq)).cloned())
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().dead_letters.values().map(|letter| letter.at).min())
    }

    async fn usage(&self) -> Result<Usage, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let class = |class, count: usize, bytes: usize| UsageClass { class, bytes: bytes as u64, count: count as u64 };
        let records = || disk.runs.iter().flat_map(|log| &log.records);
        let changes = |kind: LedgerKind| {
            disk.ledgers.iter().filter(move |(id, _)| id.kind == kind).flat_map(|(_, ledger)| &ledger.changes)
        };
        let size = |change: &Change| change.key.len() + change.item.as_ref().map_or(0, |item| item.content.len());
        let of_kind = |name, kind| class(name, changes(kind).count(), changes(kind).map(size).sum());
        let classes = vec![
            class("records", records().count(), records().map(|record| record.body.len()).sum()),
            of_kind("memory", LedgerKind::Memory),
            of_kind("workspace", LedgerKind::Workspace),
            class("blobs", disk.blobs.len(), disk.blobs.values().map(Vec::len).sum()),
        ];
        Ok(Usage { kind: "memory", bytes: Some(classes.iter().map(|class| class.bytes).sum()), classes })
    }

    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().probes.get(&self.epoch_now()).copied())
    }

    async fn ping(&self) -> Result<(), Error> {
        let _turn = self.turn().await;
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
