//! Memory and workspaces that several hosts write to. Reading needs nothing: a versioned store follows what is committed. Writing
//! needs the versioned store's claim, and a claim once taken is kept, so a host that writes alone asks once. Whoever else wants
//! to write asks for it by message; it is let go after what was written is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::Request as NodeRequestKind;
use baton_model::TenantId;
use baton_store::{CommitReceipt, VersionedStoreId, VersionedStoreKind, Write};
use tokio::sync::OwnedRwLockReadGuard;

use crate::Error;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::services::versioned::VersionedStore;
use crate::services::versioned::run_stores::RunStores;
use crate::services::versioned::service::VersionedStores;

/// How many unused claims are let go in one commit: enough that thousands take a few commits, and few enough that a
/// commit stays small.
const RELEASED_AT_ONCE: usize = 256;

/// The right to write to a versioned store, for as long as this is held.
pub(crate) type Hold = Option<OwnedRwLockReadGuard<()>>;

fn claim_name(ledger: &VersionedStoreId) -> String {
    format!("ledger:{}/{}/{}", ledger.tenant, ledger.kind.as_str(), ledger.scope)
}

impl VersionedStores {
    /// Brings a versioned store up to what others have committed, unless only this host writes to it.
    pub(crate) async fn follow(&self, ledger: &VersionedStore) -> Result<(), Error> {
        if !ledger.is_ours() {
            let version = self.store.versioned_head(&ledger.id).await?;
            ledger.catch_up(version);
        }
        Ok(())
    }

    /// The right to write what a node wants written; nothing for one that only looks.
    pub(crate) async fn hold_for(
        &self,
        live: &Generation,
        ledgers: &RunStores,
        action: &NodeRequestKind,
    ) -> Result<Hold, Error> {
        match action {
            NodeRequestKind::Remember(_) | NodeRequestKind::Forget { .. } | NodeRequestKind::Probe(_) => {
                self.hold(live, &ledgers.memory).await
            }
            NodeRequestKind::WriteFile { .. } => self.hold(live, &ledgers.workspace).await,
            _ => Ok(None),
        }
    }

    /// The right to write to a versioned store. Waits until whoever has it lets go.
    pub(crate) async fn hold(&self, live: &Generation, ledger: &Arc<VersionedStore>) -> Result<Hold, Error> {
        if self.storage.shared().is_none() {
            return Ok(None);
        }
        let held = Arc::clone(&ledger.gate).read_owned().await;
        if ledger.is_ours() {
            return Ok(Some(held));
        }
        drop(held);
        // It may take a while, and nobody who waits for what is done already should wait for that.
        live.outbox.flush(self.store.as_ref(), live.generation);
        let only_me = Arc::clone(&ledger.gate).write_owned().await;
        if !ledger.is_ours() {
            self.claims.take_claim_from(&claim_name(&ledger.id), Some(&ledger.id)).await?;
            // Nobody else writes from here on; what they have written is on disk.
            let version = self.store.versioned_head(&ledger.id).await?;
            live.claimed.insert(ledger.id.clone());
            ledger.catch_up(version);
            ledger.take();
        }
        // Not let go in between: whoever has come to ask for it would be served first, for ever.
        Ok(Some(only_me.downgrade()))
    }

    pub(crate) async fn let_go_named(&self, tenant: &str, kind: &str, scope: String) -> Result<(), Error> {
        let Some(kind) = VersionedStoreKind::parse(kind) else { return Ok(()) };
        let id = VersionedStoreId { tenant: TenantId::new(tenant), kind, scope };
        self.let_go(&id).await
    }

    /// Lets a versioned store's claim go once whoever is writing has done so, and what was written is durable.
    async fn let_go(&self, id: &VersionedStoreId) -> Result<(), Error> {
        let live = self.storage.live()?;
        let ledger = self.ledger(&live, id.clone()).await?;
        let _nobody_writes = ledger.gate.write().await;
        ledger.give_up();
        live.claimed.remove(id);
        live.outbox.flush(self.store.as_ref(), live.generation);
        let release = vec![Write::ReleaseClaim { name: claim_name(id) }];
        // Waited for with the gate shut: a claim that is asked for again must not be the one on its way out.
        Ok(self.storage.write(live.generation, Lane::Of(&id.tenant), release).await?)
    }

    /// Lets go what nobody here uses any more, many in one commit.
    pub(crate) async fn sweep_claims(&self) {
        let live = self.storage.current();
        let mut unused: Vec<VersionedStoreId> =
            live.claimed.iter().filter(|id| live.ledgers.get(id).is_none()).map(|id| id.clone()).collect();
        unused.sort_unstable();
        for some in unused.chunks(RELEASED_AT_ONCE) {
            if let Err(error) = self.let_go_unused(some).await {
                tracing::debug!(%error, "claims could not be let go");
                return;
            }
        }
    }

    async fn let_go_unused(&self, ids: &[VersionedStoreId]) -> Result<(), Error> {
        let live = self.storage.live()?;
        // Held until the commit is durable, as for one of them.
        let mut shut = Vec::new();
        let mut release: BTreeMap<&TenantId, Vec<Write>> = BTreeMap::new();
        for id in ids {
            let ledger = self.ledger(&live, id.clone()).await?;
            // Not waited for: whoever is at this one may want another of them, and it is in use then.
            let Ok(nobody_writes) = Arc::clone(&ledger.gate).try_write_owned() else { continue };
            if ledger.is_ours() {
                continue;
            }
            live.claimed.remove(id);
            release.entry(&id.tenant).or_default().push(Write::ReleaseClaim { name: claim_name(id) });
            shut.push((ledger, nobody_writes));
        }
        if release.is_empty() {
            return Ok(());
        }
        live.outbox.flush(self.store.as_ref(), live.generation);
        let submit = |(tenant, release)| self.storage.write(live.generation, Lane::Of(tenant), release);
        let released: Vec<CommitReceipt> = release.into_iter().map(submit).collect();
        for receipt in released {
            receipt.await?;
        }
        Ok(())
    }
}
