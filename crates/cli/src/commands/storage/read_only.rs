//! A store that can only be looked at: nothing in it wants to be done, and nothing can be written.

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::{
    ActiveTrees, AnnotationReads, AnnotationRow, Change, CheckpointReads, Commit, CommitReceipt, DeadLetter,
    DeadLetterPlace, DefinitionReads, Delivery, Error, HealthReads, InterruptFilter, InterruptReads, InterruptRow,
    Journal, KeptTree, Observer, Page, Quarantine, ReadView, Reply, RunFilter, RunPlace, RunReads, RunRow, RunnerReads,
    RunnerRow, StepRow, StepState, Store, StoredRecord, TokenRow, VersionedReads, VersionedStoreId, VersionedStoreKind,
    VersionedStoreRow, Webhook, WebhookLoad, WebhookReads, WorkflowVersion,
};

pub(super) struct ReadOnlyStore(pub(super) Arc<dyn Store>);

#[async_trait]
impl Journal for ReadOnlyStore {
    fn submit(&self, _: Commit) -> CommitReceipt {
        // Whoever would resolve it is gone already.
        CommitReceipt::new().1
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
    async fn records_within(
        &self,
        run: &RunId,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredRecord>, Error> {
        self.0.records_within(run, from, limit, bytes).await
    }
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
        self.0.runs(filter).await
    }
    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        self.0.active_run(tenant, scope).await
    }
    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        self.0.forks(run).await
    }
    async fn active_trees(&self, tenant: &TenantId) -> Result<ActiveTrees, Error> {
        self.0.active_trees(tenant).await
    }
    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Error> {
        self.0.tenants(after, limit).await
    }
    async fn kept_trees(
        &self,
        tenant: &TenantId,
        before: Option<RunPlace>,
        limit: usize,
    ) -> Result<Vec<KeptTree>, Error> {
        self.0.kept_trees(tenant, before, limit).await
    }
    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        self.0.descendants(root).await
    }
}

#[async_trait]
impl VersionedReads for ReadOnlyStore {
    async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error> {
        self.0.versioned_head(ledger).await
    }
    async fn versioned_base(&self, ledger: &VersionedStoreId) -> Result<Option<(VersionedStoreId, u64)>, Error> {
        self.0.versioned_base(ledger).await
    }
    async fn versioned_items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
        self.0.versioned_items(ledger, lens).await
    }
    async fn versioned_item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        self.0.versioned_item(ledger, key, lens).await
    }
    async fn versioned_count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
        self.0.versioned_count(ledger, lens).await
    }
    async fn versioned_changes(
        &self,
        ledger: &VersionedStoreId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        self.0.versioned_changes(ledger, key, before, limit).await
    }
    async fn ledgers(&self, tenant: &TenantId, kind: VersionedStoreKind) -> Result<Vec<VersionedStoreRow>, Error> {
        self.0.ledgers(tenant, kind).await
    }
    async fn versioned_floor(&self, ledger: &VersionedStoreId) -> Result<Option<u64>, Error> {
        self.0.versioned_floor(ledger).await
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
impl InterruptReads for ReadOnlyStore {
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
impl AnnotationReads for ReadOnlyStore {
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

/// Checkpoints are no part of what is said about a log.
impl CheckpointReads for ReadOnlyStore {}

#[async_trait]
impl RunnerReads for ReadOnlyStore {
    async fn tokens(&self, limit: usize) -> Result<Vec<TokenRow>, Error> {
        self.0.tokens(limit).await
    }
    async fn token(&self, hash: &str) -> Result<Option<TokenRow>, Error> {
        self.0.token(hash).await
    }
    async fn runners(&self, limit: usize) -> Result<Vec<RunnerRow>, Error> {
        self.0.runners(limit).await
    }
    async fn step(&self, key: &str) -> Result<Option<StepRow>, Error> {
        self.0.step(key).await
    }
    async fn steps_of(
        &self,
        owner: &str,
        state: StepState,
        after: Option<(Timestamp, &str)>,
        limit: usize,
    ) -> Result<Vec<StepRow>, Error> {
        self.0.steps_of(owner, state, after, limit).await
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
        before: Option<&DeadLetterPlace>,
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
