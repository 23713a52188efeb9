//! What is asked about runs.

use async_trait::async_trait;
use baton_model::{RunId, RunStatus, TenantId, Timestamp};

use crate::{ActiveTrees, Error, KeptTree, Page, RunFilter, RunPlace, RunRow, StoredRecord};

/// Runs and their logs. A run that is read here has every record that its row counts: both became durable together.
#[async_trait]
pub trait RunReads: Send + Sync {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error>;
    /// Records with `seq >= from`, in order, at most `limit`.
    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error>;
    /// The same, and no more than weigh `bytes` together: what is over that is not even read. The first always comes,
    /// however heavy it is. A page that ends early says nothing of the log's end.
    async fn records_within(
        &self,
        run: &RunId,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredRecord>, Error>;
    /// Newest first. Costs at most about as much as looking at [`crate::run_list::LOOKED_AT`] runs, whatever is asked and
    /// however many there are; then the page is short and says where to go on.
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error>;
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
    /// How many trees of a tenant have not ended, by their top-level runs.
    async fn active_trees(&self, tenant: &TenantId) -> Result<ActiveTrees, Error>;
    /// Tenants that have runs, in order, after this one.
    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Error>;
    /// Top-level runs of a tenant whose log is there, newest first, after this place.
    async fn kept_trees(
        &self,
        tenant: &TenantId,
        before: Option<RunPlace>,
        limit: usize,
    ) -> Result<Vec<KeptTree>, Error>;
    /// The runs that were forked from this one.
    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error>;
    /// How many runs descend from this top-level run.
    async fn descendants(&self, root: &RunId) -> Result<u64, Error>;
    /// Runs whose row says `busy`: what a restart must pick up. On a shared store only what this session owns. Oldest first, positions greater than `after` in
    /// creation order (`None` = from the start).
    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error>;
    /// Runs whose `wake_at` is not later than `until`, earliest first. On a shared store only what this session owns.
    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error>;
}
