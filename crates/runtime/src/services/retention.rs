//! Dropping what nobody needs any more. A pruned run stays in the lists and says what is missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunId, TenantId, Timestamp, code};
use baton_store::{Commit, CommitError, Pruned, RunFilter, RunRow, Store, VersionedStoreId, Write};

use crate::clock::Clock;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::run::start_barrier::Starts;
use crate::services::versioned::service::VersionedStores;
use crate::{Error, ErrorKind, PrunedTree};

/// Prunes runs that have ended.
pub(crate) struct Retention {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) loading: Arc<LoadLocks>,
    pub(crate) starting: Arc<Starts>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl Retention {
    pub(crate) async fn prune(&self, tenant: &TenantId, run: &RunId, log: bool) -> Result<PrunedTree, Error> {
        let tree = self.ended_tree(tenant, run).await?;
        if log {
            self.check_no_forks(&tree).await?;
        }
        let live = self.storage.live()?;
        let at = self.clock.now();
        let scopes: BTreeSet<&str> = tree.iter().map(|row| row.memory_scope.as_str()).collect();
        let memories = scopes.iter().map(|scope| VersionedStoreId::memory(tenant, *scope));
        let mut ledgers = Vec::new();
        // A branch has a workspace of its own.
        let own_files: BTreeSet<&str> = tree.iter().map(|row| row.workspace_scope.as_str()).collect();
        let files = own_files.iter().filter(|scope| **scope != DEFAULT_WORKSPACE);
        let workspaces = files.chain([&DEFAULT_WORKSPACE]).map(|scope| VersionedStoreId::workspace(tenant, *scope));
        for ledger in memories.chain(workspaces) {
            let version = self.store.versioned_head(&ledger).await?;
            ledgers.push((ledger, version));
        }
        // Whoever has begun by now is queued before the marks, and so in the store once they are; whoever begins later
        // looks back no further than the versions read above.
        self.starting.queued(tenant).await;
        live.outbox.flush(self.store.as_ref(), live.generation);
        let unmarked = tree.iter().filter(|row| row.pruned.is_none_or(|pruned| log && !pruned.log));
        let marks: Vec<Write> =
            unmarked.map(|row| Write::Prune { run: row.id.clone(), pruned: Pruned { at, log } }).collect();
        let runs = marks.len();
        match self.store.submit(Commit::alone(live.generation, marks)).await {
            // Somebody was faster.
            Err(CommitError::LogNeeded { fork, .. }) => return Err(log_is_needed(&fork)),
            submitted => submitted?,
        }
        for row in &tree {
            self.drop_pruned(&live, &row.id).await;
        }
        // Only now does the store know that these runs look back no more.
        let ids: BTreeSet<&str> = tree.iter().map(|row| row.id.as_str()).collect();
        let mut writes = Vec::new();
        let mut held = Vec::new();
        for (ledger, version) in ledgers {
            let version = self.older_than_starts(&ledger, version).await?;
            // A scope that bears the name of a run of this tree is the tree's own, unless others were told to use it.
            let own = ids.contains(ledger.scope.as_str());
            writes.push(match self.store.versioned_floor(&ledger).await? {
                None if own => {
                    // Whoever else has it in memory lets it go first, and looks anew.
                    let in_memory = self.versioned.ledger(&live, ledger.clone()).await?;
                    held.push(self.versioned.hold(&live, &in_memory).await?);
                    Write::DropVersionedStore(ledger)
                }
                floor => Write::ForgetHistory { below: floor.map_or(version, |floor| floor.min(version)), ledger },
            });
        }
        self.store.submit(Commit::new(live.generation, writes)).await?;
        Ok(PrunedTree { runs, log })
    }

    /// The part of a versioned store's history that no start under way looks back to. Other hosts' starts are not waited for, but
    /// none of them lasts longer than two leases: a host that is slower is not alone with its session any more.
    async fn older_than_starts(&self, ledger: &VersionedStoreId, version: u64) -> Result<u64, Error> {
        let Some(shared) = self.storage.shared() else { return Ok(version) };
        let young = 2 * shared.lease().as_micros() as i64;
        let since = Timestamp::from_micros(self.clock.now().as_micros().saturating_sub(young));
        let mut before = None;
        loop {
            let page = self.store.versioned_changes(ledger, None, before, PAGE).await?;
            let Some(last) = page.last() else { return Ok(0) };
            if let Some(old) = page.iter().find(|change| change.at < since) {
                return Ok(old.version.min(version));
            }
            before = Some(last.version);
        }
    }

    /// A fork's log begins with its source's, so that one has to stay.
    async fn check_no_forks(&self, tree: &[RunRow]) -> Result<(), Error> {
        for row in tree {
            for fork in self.store.forks(&row.id).await? {
                let kept =
                    self.store.run(&fork).await?.is_some_and(|fork| !fork.pruned.is_some_and(|pruned| pruned.log));
                if kept {
                    return Err(log_is_needed(&fork));
                }
            }
        }
        Ok(())
    }

    /// The run and everything below it, all of it ended.
    async fn ended_tree(&self, tenant: &TenantId, run: &RunId) -> Result<Vec<RunRow>, Error> {
        let root = self.store.run(run).await?.filter(|row| row.tenant == *tenant).ok_or_else(Error::run_not_found)?;
        if let Some(top) = &root.root {
            let message = format!("This run belongs to the tree of {top}. Prune that one.");
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("rootRunId", top.as_str()));
        }
        let mut tree = vec![root];
        let mut cursor = None;
        loop {
            let filter = RunFilter {
                tenant: Some(tenant.clone()),
                root: Some(run.clone()),
                cursor,
                limit: PAGE,
                ..RunFilter::default()
            };
            let page = self.store.runs(&filter).await?;
            tree.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        match tree.iter().find(|row| !row.status.is_terminal()) {
            None => Ok(tree),
            Some(row) => {
                let message = format!("The run {} has not ended. Wait for it, or cancel it first.", row.id);
                Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("runId", row.id.as_str()))
            }
        }
    }

    /// What is in memory of a pruned run must not answer for what is gone from the disk.
    pub(crate) async fn drop_pruned(&self, live: &crate::journal::generation::Generation, run: &RunId) {
        // Whoever is reading it from before the mark finishes first, and what it read goes too.
        let _loading = self.loading.lock(run).await;
        if let Some((_, handle)) = live.runs.remove(run)
            && let Some(mut head) = handle.head().await
        {
            head.gone = true;
            head.ledgers.memory.lock().index = None;
        }
    }
}

const PAGE: usize = 1000;

fn log_is_needed(fork: &RunId) -> Error {
    let message = format!("The run {fork} was forked from this one and shares its log. Prune that first.");
    Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("forkRunId", fork.as_str())
}
