use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, RunStatus, TenantId, Timestamp, WebhookId, WorkflowId};

use crate::{
    Change, Commit, DeadLetter, Delivery, Error, InterruptFilter, InterruptRow, LedgerId, LedgerKind, LedgerRow, Lens,
    LetterPlace, Observer, Page, Quarantine, Reply, RunFilter, RunRow, Shared, StoredRecord, Ticket, Usage, Webhook,
    WebhookLoad, WorkflowVersion, Write,
};

/// The write side.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Queues a commit and returns at once. When the ticket resolves to `Ok`, everything in it survives power loss;
    /// commits become durable in the order they were queued. Never blocks and may be called under a lock.
    fn submit(&self, commit: Commit) -> Ticket;

    /// Installs the observer. Called once, before the first submit.
    fn observe(&self, observer: Arc<dyn Observer>);

    /// The generation commits must carry now. It starts at 1.
    fn generation(&self) -> u64;

    /// After a failure: proves that the disk takes writes again and opens the next generation, which it returns.
    /// With no failure pending, returns the current one.
    async fn recover(&self) -> Result<u64, Error>;

    /// Waits until everything queued so far is durable, then stops accepting work. On a shared store, ends the session.
    async fn close(&self);

    /// What several hosts on this store need of it. `None`: it has a single owner.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}

/// The read side: committed state only. `tenant` is part of the query wherever a caller's credential is involved, so
/// a foreign id looks exactly like an unknown one.
#[async_trait]
pub trait Reader: Send + Sync {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error>;
    /// Records with `seq >= from`, in order, at most `limit`.
    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error>;
    /// Newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error>;
    /// The run of this tenant and scope that has not ended, if any.
    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error>;
    /// How many runs of this tenant there are of each status; those of which there are none may be left out.
    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let mut counts = Vec::new();
        for status in RunStatus::ALL {
            let mut filter = RunFilter { tenant: Some(tenant.clone()), status: vec![status], ..RunFilter::default() };
            filter.limit = 10_000;
            let mut count = 0;
            loop {
                let page = self.runs(&filter).await?;
                count += page.items.len() as u64;
                filter.cursor = page.next;
                if filter.cursor.is_none() {
                    break;
                }
            }
            counts.push((status, count));
        }
        Ok(counts)
    }
    /// The runs that were forked from this one.
    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error>;
    /// How many runs descend from this top-level run.
    async fn descendants(&self, root: &RunId) -> Result<u64, Error>;
    /// Runs whose row says `busy`: what a restart must pick up. On a shared store only what this session owns. Oldest first, positions greater than `after` in
    /// creation order (`None` = from the start).
    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error>;
    /// Runs whose `wake_at` is not later than `until`, earliest first. On a shared store only what this session owns.
    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error>;

    /// How far a ledger has been written; 0 if nobody ever wrote to it.
    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error>;
    /// The ledger that this one was forked from, and up to which version it sees that one.
    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error>;
    /// What a lens shows of a ledger's own changes, newest first; see [`crate::Lens::view`].
    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error>;
    /// What a lens shows of one key. Its limit does not matter.
    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error>;
    /// How many items a lens shows. Its limit does not matter.
    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error>;
    /// The changes themselves, deletions included, of one key or of all, newest first: versions smaller than `before`
    /// (`None` = from the newest), at most `limit`.
    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error>;
    /// The ledgers of one kind that hold anything, be it a deletion that is not forgotten yet; by scope.
    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error>;
    /// The lowest version that somebody may still look back to: what the first record of a run knows that is not
    /// pruned, or where another ledger was forked off. `None` when nobody reads this ledger.
    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error>;

    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error>;
    /// The newest version of a workflow in this tenant.
    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error>;
    /// The newest version of every workflow of this tenant, by id.
    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error>;

    /// Every version of a workflow that this tenant itself registered, newest first.
    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        Ok(self.workflow(tenant, id).await?.into_iter().collect())
    }

    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error>;
    /// How many questions of this tenant are open.
    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let filter = InterruptFilter { tenant: Some(tenant.clone()), limit: usize::MAX, ..InterruptFilter::default() };
        Ok(self.interrupts(&filter).await?.len() as u64)
    }
    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error>;
    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error>;

    /// What is said of a tree that nobody may step.
    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error>;
    /// Trees that nobody may step, of one tenant or of all, by root: ids greater than `after` (`None` = from the start).
    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error>;
    /// How many trees of all tenants nobody may step.
    async fn count_quarantined(&self) -> Result<u64, Error>;

    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error>;
    /// All subscriptions of all tenants: the runtime keeps them in memory.
    async fn webhooks(&self) -> Result<Vec<Webhook>, Error>;
    /// Deliveries due at `now`, earliest first. On a shared store only those of runs that this session owns.
    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error>;
    /// What waits for one subscriber, due or not, earliest first. On a shared store only of runs that this session owns.
    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error>;
    /// What waits of one event for one subscriber, whoever owns its run.
    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error>;

    /// Subscriptions of a tenant, by id: those after `after` (`None` = from the start).
    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error>;
    /// How much there is of each subscriber of a tenant, or of one of them; by id.
    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error>;
    /// A subscriber's dead letters, newest first: those before this place (`None` = from the newest).
    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&LetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error>;
    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error>;
    /// Since when the oldest dead letter of all is there.
    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error>;

    /// How much there is, by class. Cheap and bounded, however much that is: an estimate will do.
    async fn usage(&self) -> Result<Usage, Error> {
        Ok(Usage::default())
    }

    /// The number of the last [`crate::Write::Probe`]; on a shared store, of this session.
    async fn last_probe(&self) -> Result<Option<u64>, Error>;

    /// A cheap end-to-end check that reads work.
    async fn ping(&self) -> Result<(), Error>;
}

#[async_trait]
pub trait Store: Journal + Reader + 'static {
    /// Whether writes get through, all the way: a small one is queued behind the others, becomes durable and is read back.
    /// Should it fail, that is a failed commit like any other.
    async fn probe(&self) -> Result<(), Error> {
        let failed = |reason: String| Error::Unavailable { reason, source: None };
        let number = self.last_probe().await?.unwrap_or(0).wrapping_add(1);
        let commit = Commit::new(self.generation(), vec![Write::Probe { number }]);
        self.submit(commit).await.map_err(|error| failed(error.to_string()))?;
        match self.last_probe().await? {
            // Somebody may have come after us.
            Some(found) if found >= number => Ok(()),
            found => Err(failed(format!("a probe was written as {number} and read back as {found:?}"))),
        }
    }
}
impl<T: Journal + Reader + 'static> Store for T {}
