//! Dropping what nobody needs any more. A pruned run stays in the lists and says what is missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunId, TenantId, Timestamp, code};
use baton_store::{CommitError, Pruned, RunFilter, RunRow, Store, VersionedStoreId, Write};

use crate::clock::Clock;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
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

/// How many trees share the work of one pass.
const TREES_AT_ONCE: usize = 64;
/// How many records one commit drops, if it is not those of a single run. Others write meanwhile.
const RECORDS_AT_ONCE: u64 = 4096;

/// A run and everything below it, which goes first: a top that is still there is found again.
type Tree = Vec<RunRow>;

impl Retention {
    pub(crate) async fn prune(&self, tenant: &TenantId, run: &RunId, log: bool) -> Result<PrunedTree, Error> {
        let tree = self.prunable(tenant, run, log).await?;
        let mut pruned = self.prune_trees(tenant, &[tree], log).await?;
        Ok(pruned.pop().unwrap_or(PrunedTree { runs: 0, log }))
    }

    /// Prunes many, and says of each what came of it. What is done stays done if it is cut short.
    pub(crate) async fn prune_many(
        &self,
        tenant: &TenantId,
        runs: &[RunId],
        log: bool,
    ) -> Result<Vec<(RunId, Result<PrunedTree, Error>)>, Error> {
        let mut told = Vec::with_capacity(runs.len());
        for some in runs.chunks(TREES_AT_ONCE) {
            let (mut ids, mut trees) = (Vec::new(), Vec::new());
            for run in some {
                match self.prunable(tenant, run, log).await {
                    Ok(tree) => {
                        ids.push(run.clone());
                        trees.push(tree);
                    }
                    Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
                    Err(error) => told.push((run.clone(), Err(error))),
                }
            }
            match self.prune_trees(tenant, &trees, log).await {
                Ok(pruned) => told.extend(ids.into_iter().zip(pruned.into_iter().map(Ok))),
                Err(error) if error.kind == ErrorKind::Conflict => {
                    // Somebody forked one of them just now. The others need not stay for it.
                    for (id, tree) in ids.into_iter().zip(trees) {
                        let alone = self.prune_trees(tenant, std::slice::from_ref(&tree), log).await;
                        told.push((id, alone.map(|mut pruned| pruned.pop().unwrap_or(PrunedTree { runs: 0, log }))));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(told)
    }

    /// A tree that may be pruned, or why it may not.
    pub(crate) async fn prunable(&self, tenant: &TenantId, run: &RunId, log: bool) -> Result<Tree, Error> {
        let tree = self.ended_tree(tenant, run).await?;
        if log {
            self.check_no_forks(&tree).await?;
        }
        Ok(tree)
    }

    async fn prune_trees(&self, tenant: &TenantId, trees: &[Tree], log: bool) -> Result<Vec<PrunedTree>, Error> {
        let live = self.storage.live()?;
        let at = self.clock.now();
        let rows = || trees.iter().flatten();
        let ledgers = self.written_stores(tenant, rows()).await?;
        // Whoever has begun by now is queued before the marks, and so in the store once they are; whoever begins later
        // looks back no further than the versions read above.
        self.starting.queued(tenant).await;
        live.outbox.flush(self.store.as_ref(), live.generation);
        let is_unmarked = |row: &&RunRow| row.pruned.is_none_or(|pruned| log && !pruned.log);
        let (mut marks, mut records) = (Vec::new(), 0);
        for row in rows().filter(is_unmarked) {
            if !marks.is_empty() && records + row.next_seq > RECORDS_AT_ONCE {
                self.mark(&live, tenant, std::mem::take(&mut marks)).await?;
                records = 0;
            }
            records += row.next_seq;
            marks.push(Write::Prune { run: row.id.clone(), pruned: Pruned { at, log } });
        }
        if !marks.is_empty() {
            self.mark(&live, tenant, marks).await?;
        }
        for row in rows() {
            self.drop_pruned(&live, &row.id).await;
        }
        // Only now does the store know that these runs look back no more.
        let ids: BTreeSet<&str> = rows().map(|row| row.id.as_str()).collect();
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
        if !writes.is_empty() {
            self.storage.write(live.generation, Lane::Of(tenant), writes).await?;
        }
        Ok(trees.iter().map(|tree| PrunedTree { runs: tree.iter().filter(is_unmarked).count(), log }).collect())
    }

    async fn mark(&self, live: &Generation, tenant: &TenantId, marks: Vec<Write>) -> Result<(), Error> {
        match self.storage.write(live.generation, Lane::Of(tenant), marks).await {
            // Somebody was faster.
            Err(CommitError::LogNeeded { fork, .. }) => Err(log_is_needed(&fork)),
            submitted => Ok(submitted?),
        }
    }

    /// The memory scopes and workspaces that these runs see and anybody ever wrote to, and how far they are written. Of the
    /// others there is nothing to forget.
    async fn written_stores<'a>(
        &self,
        tenant: &TenantId,
        rows: impl Iterator<Item = &'a RunRow> + Clone,
    ) -> Result<Vec<(VersionedStoreId, u64)>, Error> {
        let forked = rows.clone().any(|row| row.origin.is_some());
        let memories: BTreeSet<&str> = rows.clone().map(|row| row.memory_scope.as_str()).collect();
        // A branch has a workspace of its own.
        let mut files: BTreeSet<&str> = rows.map(|row| row.workspace_scope.as_str()).collect();
        files.insert(DEFAULT_WORKSPACE);
        let memories = memories.into_iter().map(|scope| VersionedStoreId::memory(tenant, scope));
        let files = files.into_iter().map(|scope| VersionedStoreId::workspace(tenant, scope));
        let mut written = Vec::new();
        for ledger in memories.chain(files) {
            let version = self.store.versioned_head(&ledger).await?;
            // One that was forked off before anything was written holds on to the other all the same.
            if version > 0 || (forked && self.store.versioned_base(&ledger).await?.is_some()) {
                written.push((ledger, version));
            }
        }
        Ok(written)
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
            None => {
                tree.reverse();
                Ok(tree)
            }
            Some(row) => {
                let message = format!("The run {} has not ended. Wait for it, or cancel it first.", row.id);
                Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("runId", row.id.as_str()))
            }
        }
    }

    /// What is in memory of a pruned run must not answer for what is gone from the disk.
    pub(crate) async fn drop_pruned(&self, live: &Generation, run: &RunId) {
        // Whoever is reading it from before the mark finishes first, and what it read goes too.
        let _loading = self.loading.lock(run).await;
        if let Some(handle) = live.runs.remove(run)
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
