//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;
use baton_store::codec::ledger_row;
use baton_store::{Change, Error, LedgerId, LedgerKind, LedgerReads, LedgerRow, Lens};
use rusqlite::Connection;

use crate::query::{bound, list, one};
use crate::store::SqliteStore;
use crate::{ledgers, lens, rows, runs};

#[async_trait]
impl LedgerReads for SqliteStore {
    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        let ledger = ledger.clone();
        let found = self.readers().read(move |c| ledgers::find(c, &ledger)).await?;
        Ok(found.map_or(0, |place| place.version))
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        let ledger = ledger.clone();
        self.readers().read(move |c| ledgers::base(c, &ledger)).await
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        let (ledger, lens) = (ledger.clone(), lens.clone());
        self.readers().read(move |c| lens::items(c, &ledger, &lens)).await
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        let (ledger, key, lens) = (ledger.clone(), key.to_owned(), lens.clone());
        self.readers().read(move |c| lens::item(c, &ledger, &key, &lens)).await
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        let (ledger, lens) = (ledger.clone(), lens.clone());
        self.readers().read(move |c| lens::count(c, &ledger, &lens)).await
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        let (ledger, key) = (ledger.clone(), key.map(str::to_owned));
        let query = move |c: &Connection| lens::changes(c, &ledger, key.as_deref(), before, bound(limit));
        self.readers().read(query).await
    }

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let tenant = tenant.clone();
        let sql = "SELECT scope, version, updated_at FROM ledgers
                   WHERE tenant = ?1 AND kind = ?2
                   AND (base IS NOT NULL OR EXISTS (SELECT 1 FROM changes WHERE changes.ledger = ledgers.ledger))
                   ORDER BY scope";
        self.readers()
            .read(move |c| list(c, sql, [tenant.as_str(), kind.as_str()], |row| rows::fields(row, ledger_row)))
            .await
    }

    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        let LedgerId { tenant, kind, scope } = ledger.clone();
        let query = move |c: &Connection| {
            let sql = match kind {
                LedgerKind::Memory => runs::MEMORY_FLOOR,
                LedgerKind::Workspace => runs::WORKSPACE_FLOOR,
            };
            let readers = one(c, sql, [tenant.as_str(), &scope], rows::maybe_count)?.flatten();
            let forks = [tenant.as_str(), kind.as_str(), &scope];
            let forked = one(c, runs::FORK_FLOOR, forks, rows::maybe_count)?.flatten();
            Ok([readers, forked].into_iter().flatten().min())
        };
        self.readers().read(query).await
    }
}
