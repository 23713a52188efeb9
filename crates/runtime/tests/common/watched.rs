//! A store that is watched: how often a log is read, which is how often a run is brought into memory, and reads that
//! fail on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::{
    Commit, Delivery, Error, InterruptFilter, InterruptRow, Journal, MemoryStore, Observer, Page, Reader, Reply,
    RunFilter, RunRow, StoredRecord, Ticket, Webhook, WorkflowVersion,
};

pub struct Watched {
    memory: Arc<MemoryStore>,
    loads: AtomicUsize,
    blind: AtomicBool,
}

impl Watched {
    pub fn new(memory: Arc<MemoryStore>) -> Self {
        Self { memory, loads: AtomicUsize::new(0), blind: AtomicBool::new(false) }
    }

    /// How many logs have been read since the last call.
    pub fn loads(&self) -> usize {
        self.loads.swap(0, Ordering::AcqRel)
    }

    /// Whether reads of runs and their logs fail.
    pub fn blind(&self, blind: bool) {
        self.blind.store(blind, Ordering::Release);
    }

    fn see(&self) -> Result<(), Error> {
        if self.blind.load(Ordering::Acquire) {
            return Err(Error::Unavailable { reason: "blind".to_owned(), source: None });
        }
        Ok(())
    }
}

#[async_trait]
impl Journal for Watched {
    fn submit(&self, commit: Commit) -> Ticket {
        self.memory.submit(commit)
    }
    fn observe(&self, observer: Arc<dyn Observer>) {
        self.memory.observe(observer);
    }
    fn generation(&self) -> u64 {
        self.memory.generation()
    }
    async fn recover(&self) -> Result<u64, Error> {
        self.memory.recover().await
    }
    async fn close(&self) {
        self.memory.close().await;
    }
}

#[async_trait]
impl Reader for Watched {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.see()?;
        self.memory.run(run).await
    }
    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.see()?;
        self.loads.fetch_add(1, Ordering::AcqRel);
        self.memory.records(run, from, limit).await
    }
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        self.memory.runs(filter).await
    }
    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        self.memory.descendants(root).await
    }
    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        self.memory.active_run(tenant, scope).await
    }
    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        self.see()?;
        self.memory.unfinished(after, limit).await
    }
    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        self.see()?;
        self.memory.due(until, limit).await
    }
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        self.memory.blob(digest).await
    }
    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        self.memory.workflow(tenant, id).await
    }
    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        self.memory.workflows(tenant).await
    }
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        self.memory.interrupts(filter).await
    }
    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        self.memory.interrupt(run, node).await
    }
    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        self.memory.reply(key).await
    }
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        self.memory.webhook(tenant, id).await
    }
    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        self.memory.webhooks().await
    }
    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        self.memory.deliveries(now, limit).await
    }
    async fn ping(&self) -> Result<(), Error> {
        self.memory.ping().await
    }
}
