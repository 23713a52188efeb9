//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;

use crate::{Change, Error, LedgerId, LedgerKind, LedgerRow, Lens};

/// Memory scopes and workspaces. Whatever a version names is on disk, and stays readable until somebody forgets it.
#[async_trait]
pub trait LedgerReads: Send + Sync {
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
}
