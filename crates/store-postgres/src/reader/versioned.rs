//! What is asked about memory scopes and workspaces.

use async_trait::async_trait;
use baton_model::TenantId;
use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_store::codec::versioned_row;
use baton_store::{Change, Error, ReadView, VersionedReads, VersionedStoreId, VersionedStoreKind, VersionedStoreRow};
use tokio_postgres::Row;

use crate::questions::bound;
use crate::text::{key, written};
use crate::{PostgresStore, read_view, rows, runs};

#[async_trait]
impl VersionedReads for PostgresStore {
    async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error> {
        self.lookups.versioned_head(ledger).await
    }

    async fn versioned_base(&self, ledger: &VersionedStoreId) -> Result<Option<(VersionedStoreId, u64)>, Error> {
        let sql =
            "SELECT coalesce(base.long_scope, base.scope), forked.base_version FROM ledgers forked JOIN ledgers base
                   ON base.ledger = forked.base WHERE forked.ledger = $1";
        let read = |row: &Row| {
            rows::fields(row, |row| {
                Ok((VersionedStoreId { scope: row.text("scope")?, ..ledger.clone() }, row.count("base_version")?))
            })
        };
        self.questions.one(sql, &[&rows::versioned_key(ledger)], read).await
    }

    async fn versioned_items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
        read_view::items(self, ledger, lens).await
    }

    async fn versioned_item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        read_view::item(self, ledger, key, lens).await
    }

    async fn versioned_count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
        read_view::count(self, ledger, lens).await
    }

    async fn versioned_changes(
        &self,
        ledger: &VersionedStoreId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        read_view::changes(self, ledger, key, before, bound(limit)).await
    }

    async fn ledgers(&self, tenant: &TenantId, kind: VersionedStoreKind) -> Result<Vec<VersionedStoreRow>, Error> {
        let sql = "SELECT coalesce(long_scope, scope), version, updated_at FROM ledgers
                   WHERE tenant = $1 AND kind = $2
                   AND (base IS NOT NULL OR EXISTS (SELECT 1 FROM changes WHERE changes.ledger = ledgers.ledger))
                   ORDER BY coalesce(long_scope, scope)";
        self.questions
            .list(sql, &[&written(tenant.as_str()), &kind.as_str()], |row| rows::fields(row, versioned_row))
            .await
    }

    async fn versioned_floor(&self, ledger: &VersionedStoreId) -> Result<Option<u64>, Error> {
        let (tenant, scope) = (written(ledger.tenant.as_str()), written(&ledger.scope));
        let readers = match ledger.kind {
            VersionedStoreKind::Memory => {
                self.questions
                    .one(runs::MEMORY_FLOOR, &[&tenant, &key(&ledger.scope), &scope], rows::maybe_count)
                    .await?
            }
            VersionedStoreKind::Workspace => {
                let named = if ledger.scope == DEFAULT_WORKSPACE { "" } else { &*scope };
                self.questions.one(runs::WORKSPACE_FLOOR, &[&tenant, &named], rows::maybe_count).await?
            }
        };
        let readers = readers.flatten();
        let ledger = rows::versioned_key(ledger);
        let forked = self.questions.one(runs::FORK_FLOOR, &[&ledger], rows::maybe_count).await?.flatten();
        Ok([readers, forked].into_iter().flatten().min())
    }
}
