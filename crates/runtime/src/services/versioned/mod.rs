//! Memory and workspace: what runs leave behind and find again.
//!
//! A versioned store is append-only and has one lock, so writes of siblings follow each other; a write is queued together with
//! the record that tells of it, so neither can be durable without the other. The run's lock is taken first, a
//! versioned store's second, the outbox's last.
//!
//! ```text
//!  node asks (engine::wanted) ──► prepare: reads the store, no lock ──► consult: run lock ► versioned store lock ► outbox
//!  caller writes ─────────────────────────────────────────────────────► publish:            versioned store lock ► outbox
//! ```

pub(crate) mod memory;
pub(crate) mod prepared;
pub(crate) mod read;
pub(crate) mod run_stores;
pub(crate) mod scope;
pub(crate) mod service;
pub(crate) mod store;
pub(crate) mod workspace;
pub(crate) mod write_rights;

pub(crate) use memory::check_tags;
pub(crate) use read::latest;
pub(crate) use scope::check_scope;
pub(crate) use store::{OpenStores, VersionedStore, VersionedStoreHead};
pub(crate) use workspace::{FileWrite, check_path};

use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{TenantId, redact};
use baton_store::{Chains, Change, ReadView, RunRow, VersionedStoreId, Write};

use crate::Error;
use crate::journal::generation::Generation;
use crate::services::versioned::run_stores::RunStores;
use crate::services::versioned::service::VersionedStores;
use crate::services::versioned::store::Index;

impl VersionedStores {
    /// The versioned store in memory, loading where it stands if nobody holds it.
    pub(crate) async fn ledger(&self, live: &Generation, id: VersionedStoreId) -> Result<Arc<VersionedStore>, Error> {
        if let Some(ledger) = live.ledgers.get(&id) {
            self.follow(&ledger).await?;
            return Ok(ledger);
        }
        // One at a time: between reading the version and publishing it, nobody may write, commit and let go.
        let _loading = self.loading_stores.lock(&id).await;
        if let Some(ledger) = live.ledgers.get(&id) {
            self.follow(&ledger).await?;
            return Ok(ledger);
        }
        let version = self.store.versioned_head(&id).await?;
        Ok(live.ledgers.adopt(id, version))
    }

    pub(crate) async fn workspace(&self, live: &Generation, tenant: &TenantId) -> Result<Arc<VersionedStore>, Error> {
        self.ledger(live, VersionedStoreId::workspace(tenant, DEFAULT_WORKSPACE)).await
    }

    /// The versioned stores of a run that has started.
    pub(crate) async fn stores_of(&self, live: &Generation, row: &RunRow) -> Result<RunStores, Error> {
        let memory = self.ledger(live, VersionedStoreId::memory(&row.tenant, &row.memory_scope)).await?;
        let workspace = self.ledger(live, VersionedStoreId::workspace(&row.tenant, &row.workspace_scope)).await?;
        Ok(RunStores { memory, workspace })
    }

    /// Makes sure the next write finds what it has to know.
    pub(crate) async fn load_index(&self, ledger: &VersionedStore) -> Result<(), Error> {
        loop {
            let version = {
                let head = ledger.lock();
                if head.index.is_some() {
                    return Ok(());
                }
                ledger.committed()
            };
            let lens = ReadView { bare: true, ..ReadView::at(version, self.clock.now()) };
            let mut index = match ledger.id.kind {
                baton_store::VersionedStoreKind::Memory => {
                    Index::Memory { entries: self.count(&ledger.id, &lens).await? }
                }
                baton_store::VersionedStoreKind::Workspace => {
                    let files = self.items(&ledger.id, &lens).await?;
                    let files = files.iter().filter_map(Change::file_meta);
                    Index::Workspace { files: files.map(|meta| (meta.path, (meta.version, meta.etag))).collect() }
                }
            };
            let mut head = ledger.lock();
            if ledger.committed() != version {
                // What reached the disk meanwhile is neither in what was read nor in what is pending.
                continue;
            }
            head.after(version).for_each(|change| index.add(change));
            head.index = Some(index);
            return Ok(());
        }
    }

    /// Expired entries take no room: before a scope is called full it is counted anew.
    pub(crate) async fn recount_if_full(&self, ledger: &VersionedStore) -> Result<(), Error> {
        {
            let mut head = ledger.lock();
            if self.looks_full(&head) {
                head.index = None;
            }
        }
        self.load_index(ledger).await
    }

    /// Queues a change from outside any run and waits until it is durable. `make` sees the versioned store under its lock, with
    /// its index loaded, and says what changes (and what else must be durable with it), or why nothing does.
    pub(crate) async fn publish<T: Send + 'static>(
        self: &Arc<Self>,
        id: VersionedStoreId,
        make: impl FnOnce(&Self, &mut VersionedStoreHead) -> Result<(Option<Change>, Vec<Write>, T), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.tasks
            .see_through(self, |room| async move {
                let live = room.storage.live()?;
                let ledger = room.ledger(&live, id).await?;
                live.keep(&ledger);
                let _held = room.hold(&live, &ledger).await?;
                room.recount_if_full(&ledger).await?;
                let (outcome, version) = {
                    let mut head = ledger.lock();
                    let outcome = make(&room, &mut head).map(|(change, writes, outcome)| {
                        if let Some(change) = change {
                            queue(&live, &ledger, &mut head, change, writes);
                        }
                        outcome
                    });
                    (outcome, head.version)
                };
                live.outbox.flush(room.store.as_ref(), live.generation);
                // A refusal, too, may only speak of what can no longer be lost.
                ledger.durable(&live.ending, version).await?;
                outcome
            })
            .await
    }

    /// Takes an entry away for good. Of several callers that want the same one gone, one is told that it did it.
    pub(crate) async fn forget_entry(&self, id: VersionedStoreId, key: &str) -> Result<bool, Error> {
        let live = self.storage.live()?;
        let ledger = self.ledger(&live, id).await?;
        let _held = self.hold(&live, &ledger).await?;
        let (there, version) = loop {
            let version = ledger.version();
            let there = self.view_one(&ledger, key, &latest(self.clock.now())).await?.is_some();
            let mut head = ledger.lock();
            if there && !head.untouched_since(version, key) {
                continue;
            }
            if there {
                let change = head.forget(key, None, self.clock.now());
                queue(&live, &ledger, &mut head, change, Vec::new());
            }
            break (there, head.version);
        };
        live.outbox.flush(self.store.as_ref(), live.generation);
        ledger.durable(&live.ending, version).await?;
        Ok(there)
    }

    /// The text as it may be stored.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        redact(text, &self.secrets)
    }
}

/// Queues a change from outside any run with what must be durable with it.
fn queue(
    live: &Generation,
    ledger: &VersionedStore,
    head: &mut VersionedStoreHead,
    change: Change,
    mut with: Vec<Write>,
) {
    with.push(Write::Change { ledger: ledger.id.clone(), change: change.clone() });
    live.outbox.push(&ledger.id.tenant, with, Chains::link(Arc::clone(&ledger.chain)));
    ledger.queued(head, change);
}
