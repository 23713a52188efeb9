//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;

use super::super::ledger::Ledger;
use super::super::store::MemoryStore;
use crate::{Change, Error, LedgerId, LedgerKind, LedgerReads, LedgerRow, Lens, RunRow};

#[async_trait]
impl LedgerReads for MemoryStore {
    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().ledgers.get(ledger).map_or(0, |ledger| ledger.version))
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().ledgers.get(ledger).and_then(|ledger| ledger.base.clone()))
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        let _turn = self.turn().await;
        Ok(lens.view(self.disk.lock().changes(ledger)))
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        let _turn = self.turn().await;
        let lens = Lens { limit: None, ..lens.clone() };
        let disk = self.disk.lock();
        Ok(lens.view(disk.changes(ledger).iter().filter(|change| change.key == key)).pop())
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        let _turn = self.turn().await;
        let lens = Lens { limit: None, ..lens.clone() };
        Ok(lens.view(self.disk.lock().changes(ledger)).len() as u64)
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
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

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let held = disk.ledgers.iter().filter(|(id, ledger)| {
            id.tenant == *tenant && id.kind == kind && (!ledger.changes.is_empty() || ledger.base.is_some())
        });
        let row = |(id, ledger): (&LedgerId, &Ledger)| LedgerRow {
            scope: id.scope.clone(),
            version: ledger.version,
            updated_at: ledger.updated_at,
        };
        Ok(held.map(row).collect())
    }

    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        let _turn = self.turn().await;
        let reads = |row: &RunRow| {
            row.tenant == ledger.tenant
                && match ledger.kind {
                    LedgerKind::Memory => row.memory_scope == ledger.scope,
                    LedgerKind::Workspace => row.workspace_scope == ledger.scope,
                }
        };
        let disk = self.disk.lock();
        let readers = disk.runs.iter().filter(|log| log.row.pruned.is_none() && reads(&log.row));
        let known = readers.filter_map(|log| log.records.first()).map(|first| match ledger.kind {
            LedgerKind::Memory => first.versions.memory,
            LedgerKind::Workspace => first.versions.workspace,
        });
        let forked = disk.ledgers.values().filter_map(|other| other.base.as_ref());
        let looks_back = forked.filter(|(base, _)| base == ledger).map(|(_, version)| *version);
        Ok(known.chain(looks_back).min())
    }
}
