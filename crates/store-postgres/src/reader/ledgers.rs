//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;
use baton_store::codec::ledger_row;
use baton_store::{Change, Error, LedgerId, LedgerKind, LedgerReads, LedgerRow, Lens};
use tokio_postgres::Row;

use crate::questions::bound;
use crate::text::{key, written};
use crate::{PostgresStore, lens, rows, runs};

#[async_trait]
impl LedgerReads for PostgresStore {
    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        self.lookups.ledger_version(ledger).await
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        let sql =
            "SELECT coalesce(base.long_scope, base.scope), forked.base_version FROM ledgers forked JOIN ledgers base
                   ON base.ledger = forked.base WHERE forked.ledger = $1";
        let read = |row: &Row| {
            rows::fields(row, |row| {
                Ok((LedgerId { scope: row.text("scope")?, ..ledger.clone() }, row.count("base_version")?))
            })
        };
        self.questions.one(sql, &[&rows::ledger_key(ledger)], read).await
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        lens::items(self, ledger, lens).await
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        lens::item(self, ledger, key, lens).await
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        lens::count(self, ledger, lens).await
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        lens::changes(self, ledger, key, before, bound(limit)).await
    }

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let sql = "SELECT coalesce(long_scope, scope), version, updated_at FROM ledgers
                   WHERE tenant = $1 AND kind = $2
                   AND (base IS NOT NULL OR EXISTS (SELECT 1 FROM changes WHERE changes.ledger = ledgers.ledger))
                   ORDER BY coalesce(long_scope, scope)";
        self.questions
            .list(sql, &[&written(tenant.as_str()), &kind.as_str()], |row| rows::fields(row, ledger_row))
            .await
    }

    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        let (tenant, scope) = (written(ledger.tenant.as_str()), written(&ledger.scope));
        let readers = match ledger.kind {
            LedgerKind::Memory => {
                self.questions
                    .one(runs::MEMORY_FLOOR, &[&tenant, &key(&ledger.scope), &scope], rows::maybe_count)
                    .await?
            }
            LedgerKind::Workspace => {
                self.questions.one(runs::WORKSPACE_FLOOR, &[&tenant, &scope], rows::maybe_count).await?
            }
        };
        let readers = readers.flatten();
        let ledger = rows::ledger_key(ledger);
        let forked = self.questions.one(runs::FORK_FLOOR, &[&ledger], rows::maybe_count).await?.flatten();
        Ok([readers, forked].into_iter().flatten().min())
    }
}
