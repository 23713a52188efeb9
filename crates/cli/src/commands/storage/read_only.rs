//! A store that can only be looked at: nothing in it wants to be done, and nothing can be written.

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::{
    AnnotationRow, Change, Commit, DeadLetter, DefinitionReads, Delivery, Error, HealthReads, InterruptFilter,
    InterruptRow, Journal, LedgerId, LedgerKind, LedgerReads, LedgerRow, Lens, LetterPlace, Observer, Page, Quarantine,
    QuestionReads, RemarkReads, Reply, RunFilter, RunReads, RunRow, Store, StoredRecord, Ticket, Webhook, WebhookLoad,
    WebhookReads, WorkflowVersion,
};

pub(super) struct ReadOnlyStore(pub(super) Arc<dyn Store>);

#[async_trait]
impl Journal for ReadOnlyStore {
    fn submit(&self, _: Commit) -> Ticket {
        // Whoever would resolve it is gone already.
        Ticket::new().1
    }
    fn observe(&self, _: Arc<dyn Observer>) {}
    fn generation(&self) -> u64 {
        1
    }
    async fn recover(&self) -> Result<u64, Error> {
        Ok(1)
    }
    async fn close(&self) {}
}

#[async_trait]
impl RunReads for ReadOnlyStore {
    async fn unfinished(&self, _: Option<u64>, _: usize) -> Result<Vec<(u64, RunId)>, Error> {
        Ok(Vec::new())
    }
    async fn due(&self, _: Timestamp, _: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        Ok(Vec::new())
    }
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.0.run(run).await
    }
    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.0.records(run, from, limit).await
    }
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        self.0.runs(filter).await
    }
    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        self.0.active_run(tenant, scope).await
    }
    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        self.0.forks(run).await
    }
    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        self.0.descendants(root).await
    }
}

#[async_trait]
impl LedgerReads for ReadOnlyStore {
    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        self.0.ledger_version(ledger).await
    }
    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        self.0.ledger_base(ledger).await
    }
    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        self.0.ledger_items(ledger, lens).await
    }
    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        self.0.ledger_item(ledger, key, lens).await
    }
    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        self.0.ledger_count(ledger, lens).await
    }
    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        self.0.ledger_changes(ledger, key, before, limit).await
    }
    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        self.0.ledgers(tenant, kind).await
    }
    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        self.0.ledger_floor(ledger).await
    }
}

#[async_trait]
impl DefinitionReads for ReadOnlyStore {
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        self.0.blob(digest).await
    }
    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        self.0.workflow(tenant, id).await
    }
    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        self.0.workflows(tenant).await
    }
}

#[async_trait]
impl QuestionReads for ReadOnlyStore {
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        self.0.interrupts(filter).await
    }
    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        self.0.interrupt(run, node).await
    }
    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        self.0.reply(key).await
    }
}

#[async_trait]
impl RemarkReads for ReadOnlyStore {
    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        self.0.annotations(run, after, limit).await
    }
    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        self.0.annotation(run, id).await
    }
    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        self.0.count_annotations(run).await
    }
    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        self.0.quarantine(root).await
    }
    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        self.0.quarantined(tenant, after, limit).await
    }
    async fn count_quarantined(&self) -> Result<u64, Error> {
        self.0.count_quarantined().await
    }
}

#[async_trait]
impl WebhookReads for ReadOnlyStore {
    async fn deliveries_of(&self, _: &WebhookId, _: usize) -> Result<Vec<Delivery>, Error> {
        Ok(Vec::new())
    }
    async fn deliveries(&self, _: Timestamp, _: usize) -> Result<Vec<Delivery>, Error> {
        Ok(Vec::new())
    }
    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        Ok(Vec::new())
    }
    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        self.0.delivery(webhook, run, seq).await
    }
    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        self.0.webhooks_of(tenant, after, limit).await
    }
    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        self.0.webhook_loads(tenant, only).await
    }
    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&LetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        self.0.dead_letters(webhook, before, limit).await
    }
    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        self.0.dead_letter(webhook, run, seq).await
    }
    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        Ok(None)
    }
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        self.0.webhook(tenant, id).await
    }
}

#[async_trait]
impl HealthReads for ReadOnlyStore {
    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        self.0.last_probe().await
    }
    async fn ping(&self) -> Result<(), Error> {
        self.0.ping().await
    }
}
