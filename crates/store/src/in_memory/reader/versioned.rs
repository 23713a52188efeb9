//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;

use super::super::store::MemoryStore;
use super::super::versioned::VersionedStore;
use crate::{Change, Error, ReadView, RunRow, VersionedReads, VersionedStoreId, VersionedStoreKind, VersionedStoreRow};

#[async_trait]
impl VersionedReads for MemoryStore {
    async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().ledgers.get(ledger).map_or(0, |ledger| ledger.version))
    }

    async fn versioned_base(&self, ledger: &VersionedStoreId) -> Result<Option<(VersionedStoreId, u64)>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().ledgers.get(ledger).and_then(|ledger| ledger.base.clone()))
    }

    async fn versioned_items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
        let _turn = self.turn().await;
        Ok(lens.view(self.disk.lock().changes(ledger)))
    }

    async fn versioned_item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        let _turn = self.turn().await;
        let lens = ReadView { limit: None, ..lens.clone() };
        let disk = self.disk.lock();
        Ok(lens.view(disk.changes(ledger).iter().filter(|change| change.key == key)).pop())
    }

    async fn versioned_count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
        let _turn = self.turn().await;
        let lens = ReadView { limit: None, ..lens.clone() };
        Ok(lens.view(self.disk.lock().changes(ledger)).len() as u64)
    }

    async fn versioned_changes(
        &self,
        ledger: &VersionedStoreId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let newest_first = disk.changes(ledger).iter().rev();
        let wanted = newest_first
            .filter(|change| key.is_none_or(|key| change.key == key))
            .filter(|change| before.is_none_or(|before| change.version < before));
        Ok(wanted.take(limit).cloned().collect())
    }

    async fn ledgers(&self, tenant: &TenantId, kind: VersionedStoreKind) -> Result<Vec<VersionedStoreRow>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let held = disk.ledgers.iter().filter(|(id, ledger)| {
            id.tenant == *tenant && id.kind == kind && (!ledger.changes.is_empty() || ledger.base.is_some())
        });
        let row = |(id, ledger): (&VersionedStoreId, &VersionedStore)| VersionedStoreRow {
            scope: id.scope.clone(),
            version: ledger.version,
            updated_at: ledger.updated_at,
        };
        Ok(held.map(row).collect())
    }

    async fn versioned_floor(&self, ledger: &VersionedStoreId) -> Result<Option<u64>, Error> {
        let _turn = self.turn().await;
        let reads = |row: &RunRow| {
            row.tenant == ledger.tenant
                && match ledger.kind {
                    VersionedStoreKind::Memory => row.memory_scope == ledger.scope,
                    VersionedStoreKind::Workspace => row.workspace_scope == ledger.scope,
                }
        };
        let disk = self.disk.lock();
        let readers = disk.runs.iter().filter(|log| log.row.pruned.is_none() && reads(&log.row));
        let known = readers.filter_map(|log| log.records.first()).map(|first| match ledger.kind {
            VersionedStoreKind::Memory => first.versions.memory,
            VersionedStoreKind::Workspace => first.versions.workspace,
        });
        let forked = disk.ledgers.values().filter_map(|other| other.base.as_ref());
        let looks_back = forked.filter(|(base, _)| base == ledger).map(|(_, version)| *version);
        Ok(known.chain(looks_back).min())
    }
}
