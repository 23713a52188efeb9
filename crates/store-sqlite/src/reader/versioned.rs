//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;
use baton_store::codec::versioned_row;
use baton_store::{Change, Error, ReadView, VersionedReads, VersionedStoreId, VersionedStoreKind, VersionedStoreRow};
use rusqlite::Connection;

use crate::query::{bound, list, one};
use crate::store::SqliteStore;
use crate::{read_view, rows, runs, versioned};

#[async_trait]
impl VersionedReads for SqliteStore {
    async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error> {
        let ledger = ledger.clone();
        let found = self.readers().read(move |c| versioned::find_whole(c, &ledger)).await?;
        Ok(found.map_or(0, |place| place.version))
    }

    async fn versioned_base(&self, ledger: &VersionedStoreId) -> Result<Option<(VersionedStoreId, u64)>, Error> {
        let ledger = ledger.clone();
        self.readers().read(move |c| versioned::base(c, &ledger)).await
    }

    async fn versioned_items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
        let (ledger, lens) = (ledger.clone(), lens.clone());
        self.readers().read(move |c| read_view::items(c, &ledger, &lens)).await
    }

    async fn versioned_item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        let (ledger, key, lens) = (ledger.clone(), key.to_owned(), lens.clone());
        self.readers().read(move |c| read_view::item(c, &ledger, &key, &lens)).await
    }

    async fn versioned_count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
        let (ledger, lens) = (ledger.clone(), lens.clone());
        self.readers().read(move |c| read_view::count(c, &ledger, &lens)).await
    }

    async fn versioned_changes(
        &self,
        ledger: &VersionedStoreId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        let (ledger, key) = (ledger.clone(), key.map(str::to_owned));
        let query = move |c: &Connection| read_view::changes(c, &ledger, key.as_deref(), before, bound(limit));
        self.readers().read(query).await
    }

    async fn ledgers(&self, tenant: &TenantId, kind: VersionedStoreKind) -> Result<Vec<VersionedStoreRow>, Error> {
        let tenant = tenant.clone();
        let sql = "SELECT scope, version, updated_at FROM ledgers
                   WHERE tenant = ?1 AND kind = ?2
                   AND (base IS NOT NULL OR EXISTS (SELECT 1 FROM changes WHERE changes.ledger = ledgers.ledger))
                   ORDER BY scope";
        self.readers()
            .read(move |c| list(c, sql, [tenant.as_str(), kind.as_str()], |row| rows::fields(row, versioned_row)))
            .await
    }

    async fn versioned_floor(&self, ledger: &VersionedStoreId) -> Result<Option<u64>, Error> {
        let VersionedStoreId { tenant, kind, scope } = ledger.clone();
        let query = move |c: &Connection| {
            let sql = match kind {
                VersionedStoreKind::Memory => runs::MEMORY_FLOOR,
                VersionedStoreKind::Workspace => runs::WORKSPACE_FLOOR,
            };
            let readers = one(c, sql, [tenant.as_str(), &scope], rows::maybe_count)?.flatten();
            let forks = [tenant.as_str(), kind.as_str(), &scope];
            let forked = one(c, runs::FORK_FLOOR, forks, rows::maybe_count)?.flatten();
            Ok([readers, forked].into_iter().flatten().min())
        };
        self.readers().read(query).await
    }
}
