//! A store that is watched: how often a log is read, which is how often a run is brought into memory; reads that fail
//! on demand, and reads of versioned stores that take their time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::{
    ActiveTrees, AnnotationReads, AnnotationRow, Change, Checkpoint, CheckpointChunk, CheckpointMark, CheckpointReads,
    Commit, CommitError, CommitReceipt, Committed, DeadLetter, DeadLetterPlace, DefinitionReads, Delivery, Error,
    HealthReads, InterruptFilter, InterruptReads, InterruptRow, Journal, KeptTree, LostPart, MemoryStore, Observer,
    Page, Quarantine, ReadView, Reply, RunFilter, RunPlace, RunReads, RunRow, RunnerReads, RunnerRow, SpendingRow,
    StepRow, StepState, StoredRecord, TokenRow, VersionedReads, VersionedStoreCommitted, VersionedStoreId,
    VersionedStoreKind, VersionedStoreRow, Webhook, WebhookLoad, WebhookReads, WorkflowVersion,
};
use parking_lot::Mutex;
use tokio::sync::watch;

pub struct Watched {
    memory: Arc<MemoryStore>,
    loads: AtomicUsize,
    blind: AtomicBool,
    /// Whether answers about versioned stores are kept back, and for how many rounds they have been.
    slow: watch::Sender<Option<u64>>,
    /// The same for logs.
    old_logs: watch::Sender<Option<u64>>,
    /// How many answers have been kept back so far.
    kept_back: watch::Sender<usize>,
    notes: Arc<Notes>,
    /// How often the two may still panic that a generation begins with.
    panics_in_recover: AtomicUsize,
    panics_in_unfinished: AtomicUsize,
}

/// Tells of commits, if need be in two parts: all records but the last, and the last one when it is let go.
#[derive(Default)]
struct Notes {
    observer: OnceLock<Arc<dyn Observer>>,
    rest: Mutex<Option<Vec<Committed>>>,
}

impl Observer for Notes {
    fn committed(&self, runs: &[Committed], ledgers: &[VersionedStoreCommitted]) {
        let observer = self.observer.get().unwrap();
        let Some(rest) = &mut *self.rest.lock() else { return observer.committed(runs, ledgers) };
        let but_last = |committed: &Committed| Committed { next_seq: committed.next_seq - 1, ..committed.clone() };
        observer.committed(&runs.iter().map(but_last).collect::<Vec<_>>(), ledgers);
        rest.extend(runs.to_vec());
    }
    fn lost(&self, parts: &[LostPart]) {
        self.observer.get().unwrap().lost(parts);
    }
    fn failed(&self, generation: u64, error: &CommitError) {
        self.observer.get().unwrap().failed(generation, error);
    }
}

impl Watched {
    pub fn new(memory: Arc<MemoryStore>) -> Self {
        Self {
            memory,
            loads: AtomicUsize::new(0),
            blind: AtomicBool::new(false),
            slow: watch::Sender::new(None),
            old_logs: watch::Sender::new(None),
            kept_back: watch::Sender::new(0),
            notes: Arc::default(),
            panics_in_recover: AtomicUsize::new(0),
            panics_in_unfinished: AtomicUsize::new(0),
        }
    }

    /// The next so many recoveries panic.
    pub fn panic_in_recover(&self, times: usize) {
        self.panics_in_recover.store(times, Ordering::Release);
    }

    /// So often, asking which runs are unfinished panics.
    pub fn panic_in_unfinished(&self, times: usize) {
        self.panics_in_unfinished.store(times, Ordering::Release);
    }

    /// From now on it is not told of the last record of a commit that it is on disk; taken back, it is.
    pub fn tell_in_parts(&self, in_parts: bool) {
        let rest = std::mem::replace(&mut *self.notes.rest.lock(), in_parts.then(Vec::new));
        if let Some(rest) = rest {
            self.notes.observer.get().unwrap().committed(&rest, &[]);
        }
    }

    /// From now on, what was read of a versioned store is handed over only once this is taken back.
    pub fn slow(&self, slow: bool) {
        self.slow.send_replace(slow.then_some(0));
    }

    /// Hands over what is kept back now; what is read after that is kept back again.
    pub fn next_round(&self) {
        self.slow.send_modify(|round| *round = round.map(|round| round + 1));
    }

    /// The same as [`Self::slow`] for logs: what was read of them is old by the time it arrives.
    pub fn slow_logs(&self, slow: bool) {
        self.old_logs.send_replace(slow.then_some(0));
    }

    /// Waits until this many answers have been kept back, counted from the beginning.
    pub async fn keeps_back(&self, count: usize) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.kept_back.subscribe().wait_for(|now| *now == count).await;
    }

    async fn late<T>(&self, slow: &watch::Sender<Option<u64>>, answer: T) -> T {
        let round = *slow.borrow();
        if round.is_some() {
            self.kept_back.send_modify(|count| *count += 1);
            let _ = slow.subscribe().wait_for(|now| *now != round).await;
        }
        answer
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

fn may_panic(left: &AtomicUsize) {
    let less = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
    assert!(less.is_err(), "a defect");
}

#[async_trait]
impl Journal for Watched {
    fn submit(&self, commit: Commit) -> CommitReceipt {
        self.memory.submit(commit)
    }
    fn observe(&self, observer: Arc<dyn Observer>) {
        assert!(self.notes.observer.set(observer).is_ok(), "installed once");
        self.memory.observe(Arc::clone(&self.notes) as _);
    }
    fn generation(&self) -> u64 {
        self.memory.generation()
    }
    async fn recover(&self) -> Result<u64, Error> {
        may_panic(&self.panics_in_recover);
        self.memory.recover().await
    }
    async fn close(&self) {
        self.memory.close().await;
    }
}

#[async_trait]
impl RunReads for Watched {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.see()?;
        self.memory.run(run).await
    }
    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.see()?;
        self.loads.fetch_add(1, Ordering::AcqRel);
        self.late(&self.old_logs, self.memory.records(run, from, limit).await).await
    }
    async fn records_within(
        &self,
        run: &RunId,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredRecord>, Error> {
        self.see()?;
        self.loads.fetch_add(1, Ordering::AcqRel);
        self.late(&self.old_logs, self.memory.records_within(run, from, limit, bytes).await).await
    }
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
        self.memory.runs(filter).await
    }
    async fn active_trees(&self, tenant: &TenantId) -> Result<ActiveTrees, Error> {
        self.memory.active_trees(tenant).await
    }
    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Error> {
        self.memory.tenants(after, limit).await
    }
    async fn kept_trees(
        &self,
        tenant: &TenantId,
        before: Option<RunPlace>,
        limit: usize,
    ) -> Result<Vec<KeptTree>, Error> {
        self.memory.kept_trees(tenant, before, limit).await
    }
    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        self.memory.descendants(root).await
    }
    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        self.memory.forks(run).await
    }
    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        self.memory.active_run(tenant, scope).await
    }
    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        self.see()?;
        may_panic(&self.panics_in_unfinished);
        self.memory.unfinished(after, limit).await
    }
    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        self.see()?;
        self.memory.due(until, limit).await
    }
}

#[async_trait]
impl VersionedReads for Watched {
    async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error> {
        self.see()?;
        self.late(&self.slow, self.memory.versioned_head(ledger).await).await
    }
    async fn versioned_base(&self, ledger: &VersionedStoreId) -> Result<Option<(VersionedStoreId, u64)>, Error> {
        self.memory.versioned_base(ledger).await
    }
    async fn versioned_items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
        self.see()?;
        self.late(&self.slow, self.memory.versioned_items(ledger, lens).await).await
    }
    async fn versioned_item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        self.see()?;
        self.late(&self.slow, self.memory.versioned_item(ledger, key, lens).await).await
    }
    async fn versioned_count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
        self.see()?;
        self.late(&self.slow, self.memory.versioned_count(ledger, lens).await).await
    }
    async fn versioned_changes(
        &self,
        ledger: &VersionedStoreId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        self.memory.versioned_changes(ledger, key, before, limit).await
    }
    async fn ledgers(&self, tenant: &TenantId, kind: VersionedStoreKind) -> Result<Vec<VersionedStoreRow>, Error> {
        self.memory.ledgers(tenant, kind).await
    }
    async fn versioned_floor(&self, ledger: &VersionedStoreId) -> Result<Option<u64>, Error> {
        self.late(&self.slow, self.memory.versioned_floor(ledger).await).await
    }
}

#[async_trait]
impl DefinitionReads for Watched {
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        self.memory.blob(digest).await
    }
    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        self.memory.workflow(tenant, id).await
    }
    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        self.memory.workflows(tenant).await
    }
}

#[async_trait]
impl InterruptReads for Watched {
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        self.memory.interrupts(filter).await
    }
    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        self.memory.interrupt(run, node).await
    }
    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        self.memory.reply(key).await
    }
}

#[async_trait]
impl AnnotationReads for Watched {
    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        self.memory.annotations(run, after, limit).await
    }
    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        self.memory.annotation(run, id).await
    }
    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        self.memory.count_annotations(run).await
    }
    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        self.memory.quarantine(root).await
    }
    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        self.memory.quarantined(tenant, after, limit).await
    }
    async fn count_quarantined(&self) -> Result<u64, Error> {
        self.memory.count_quarantined().await
    }
}

#[async_trait]
impl CheckpointReads for Watched {
    async fn checkpoint(&self, run: &RunId, key: &str, from: u64, until: u64) -> Result<Option<Checkpoint>, Error> {
        self.memory.checkpoint(run, key, from, until).await
    }
    async fn checkpoint_chunks(&self, run: &RunId, names: &[String]) -> Result<Vec<CheckpointChunk>, Error> {
        self.memory.checkpoint_chunks(run, names).await
    }
    async fn checkpoint_marks(&self, run: &RunId) -> Result<Vec<CheckpointMark>, Error> {
        self.memory.checkpoint_marks(run).await
    }
    async fn run_spending(&self, run: &RunId) -> Result<Option<SpendingRow>, Error> {
        self.memory.run_spending(run).await
    }
    async fn spending(&self, root: &RunId, after: Option<&RunId>, limit: usize) -> Result<Vec<SpendingRow>, Error> {
        self.memory.spending(root, after, limit).await
    }
}

#[async_trait]
impl RunnerReads for Watched {
    async fn tokens(&self, limit: usize) -> Result<Vec<TokenRow>, Error> {
        self.memory.tokens(limit).await
    }
    async fn token(&self, hash: &str) -> Result<Option<TokenRow>, Error> {
        self.memory.token(hash).await
    }
    async fn runners(&self, limit: usize) -> Result<Vec<RunnerRow>, Error> {
        self.memory.runners(limit).await
    }
    async fn step(&self, key: &str) -> Result<Option<StepRow>, Error> {
        self.memory.step(key).await
    }
    async fn steps_of(
        &self,
        owner: &str,
        state: StepState,
        after: Option<(Timestamp, &str)>,
        limit: usize,
    ) -> Result<Vec<StepRow>, Error> {
        self.memory.steps_of(owner, state, after, limit).await
    }
}

#[async_trait]
impl WebhookReads for Watched {
    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        self.memory.delivery(webhook, run, seq).await
    }
    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        self.memory.webhooks_of(tenant, after, limit).await
    }
    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        self.memory.webhook_loads(tenant, only).await
    }
    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&DeadLetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        self.memory.dead_letters(webhook, before, limit).await
    }
    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        self.memory.dead_letter(webhook, run, seq).await
    }
    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        self.memory.oldest_dead_letter().await
    }
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        self.memory.webhook(tenant, id).await
    }
    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        self.memory.webhooks().await
    }
    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        self.memory.deliveries_of(webhook, limit).await
    }
    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        self.memory.deliveries(now, limit).await
    }
}

#[async_trait]
impl HealthReads for Watched {
    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        self.memory.last_probe().await
    }
    async fn ping(&self) -> Result<(), Error> {
        self.memory.ping().await
    }
}
