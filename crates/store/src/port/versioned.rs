//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;

use crate::{Change, Error, ReadView, VersionedStoreId, VersionedStoreKind, VersionedStoreRow};

/// Memory scopes and workspaces. Whatever a version names is on disk, and stays readable until somebody forgets it.
#[async_trait]
pub trait VersionedReads: Send + Sync {
    /// How far a versioned store has been written; 0 if nobody ever wrote to it.
    async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error>;
    /// The versioned store that this one was forked from, and up to which version it sees that one.
    async fn versioned_base(&self, ledger: &VersionedStoreId) -> Result<Option<(VersionedStoreId, u64)>, Error>;
    /// What a view shows of a versioned store's own changes, newest first; see [`crate::ReadView::view`].
    async fn versioned_items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error>;
    /// What a view shows of one key. Its limit does not matter.
    async fn versioned_item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error>;
    /// How many items a view shows. Its limit does not matter.
    async fn versioned_count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error>;
    /// The changes themselves, deletions included, of one key or of all, newest first: versions smaller than `before`
    /// (`None` = from the newest), at most `limit`.
    async fn versioned_changes(
        &self,
        ledger: &VersionedStoreId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error>;
    /// The versioned stores of one kind that hold anything, be it a deletion that is not forgotten yet; by scope.
    async fn ledgers(&self, tenant: &TenantId, kind: VersionedStoreKind) -> Result<Vec<VersionedStoreRow>, Error>;
    /// The lowest version that somebody may still look back to: what the first record of a run knows that is not
    /// pruned, or where another versioned store was forked off. `None` when nobody reads this versioned store.
    async fn versioned_floor(&self, ledger: &VersionedStoreId) -> Result<Option<u64>, Error>;
}
