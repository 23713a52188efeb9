//! Making a file that was judged this host's own. What is small is one commit; what is large goes definition by
//! definition, versioned store by versioned store and run by run, each of them whole, so that a crash leaves nothing half told and the
//! same file can be taken in again.

use baton_model::{RunId, TenantId, code};
use baton_store::reads::*;
use baton_store::{Chains, Commit, RunRow, StoredRecord, WorkflowVersion, Write};

use super::Imported;
use super::staged::{Staged, StagedDefinition};
use crate::history::transfer::service::Transfers;
use crate::history::transfer::settle_stores::StoreWork;
use crate::journal::lane::Lane;
use crate::services::workflows::register::REGISTERING;
use crate::{Error, ErrorKind};

/// Records that are compared at a time.
const PAGE: usize = 500;
/// A commit is closed once it is this large: others wait for it.
const ONE_COMMIT: usize = 16 * 1024 * 1024;
/// What a row weighs beside its texts.
const ROW_BYTES: usize = 200;

/// Writes on their way, with the versioned stores they change.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    ledgers: Vec<StoreWork>,
    bytes: usize,
}

impl Transfers {
    pub(super) async fn settle(&self, staged: &Staged) -> Result<Imported, Error> {
        // Versions of workflows have no twins, and two imports do not meet.
        let _one_at_a_time = self.registering.lock().await;
        self.claims.alone(REGISTERING, Lane::Of(&staged.tenant), self.settle_alone(staged)).await
    }

    async fn settle_alone(&self, staged: &Staged) -> Result<Imported, Error> {
        let mut missing = Vec::new();
        for (run, _) in &staged.runs {
            match self.store.run(run).await? {
                None => missing.push(run),
                Some(here) => self.check_same(staged, &here).await?,
            }
        }
        let imported = Imported {
            run_id: staged.run.clone(),
            holds: staged.holds,
            new_runs: missing.len() as u64,
            already_here: missing.is_empty(),
        };
        if missing.is_empty() {
            return Ok(imported);
        }
        // Everything is compared before anything is written.
        let mut work = Vec::new();
        for ledger in &staged.ledgers {
            work.extend(self.store_work(staged, ledger).await?);
        }
        let mut batch = Batch { writes: self.definition_writes(staged).await?, ..Batch::default() };
        for mut ledger in work {
            batch.bytes += ledger.load(staged).await?;
            batch.writes.extend(ledger.take_writes());
            batch.ledgers.push(ledger);
            self.commit_if_full(&staged.tenant, &mut batch).await?;
        }
        for run in missing {
            batch.bytes += load_run(staged, run, &mut batch.writes).await?;
            self.commit_if_full(&staged.tenant, &mut batch).await?;
        }
        self.commit_batch(&staged.tenant, batch).await?;
        Ok(imported)
    }

    /// A run that is here already is this very run, or the file is refused.
    async fn check_same(&self, staged: &Staged, here: &RunRow) -> Result<(), Error> {
        let other = || {
            let message =
                format!("The run {} exists already and is not the one in the file. Nothing was imported.", here.id);
            Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("runId", here.id.as_str())
        };
        let there = staged.store.run(&here.id).await?.ok_or_else(other)?;
        if here.pruned.is_some() && here.tenant == staged.tenant {
            let message =
                format!("The run {} was pruned here, so it cannot be compared. Nothing was imported.", here.id);
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("runId", here.id.as_str()));
        }
        // Where it comes from it may share the tenant's workspace.
        let shares = staged.workspace(&here.workspace_scope) == there.workspace_scope;
        // What lists say of it is no part of what it is.
        // Nor are checksums, which older hosts and older files do not have: the records are compared themselves.
        let there = RunRow {
            workspace_scope: here.workspace_scope.clone(),
            summary: here.summary.clone(),
            chain: here.chain,
            ..there
        };
        if !shares || there != *here {
            return Err(other());
        }
        let mut next = here.origin.as_ref().map_or(0, |origin| origin.seq);
        while next < here.next_seq {
            let ours = self.store.records(&here.id, next, PAGE).await?;
            let theirs = staged.store.records(&here.id, next, PAGE).await?;
            if ours.is_empty() || ours.len() != theirs.len() {
                return Err(other());
            }
            for (our, their) in ours.iter().zip(&theirs) {
                // Of what was said in other words, the staged one has this build's.
                let plain = |record: &StoredRecord| StoredRecord { sum: None, ..record.clone() };
                let (our, their) = (plain(our), plain(their));
                if our != their && their != StoredRecord::encode(&here.id, &our.decode(&here.id)?) {
                    return Err(other());
                }
            }
            next += ours.len() as u64;
        }
        Ok(())
    }

    /// Definitions and agents, and workflows of those names where there are none: a branch starts its children by name.
    async fn definition_writes(&self, staged: &Staged) -> Result<Vec<Write>, Error> {
        let mut writes = Vec::new();
        let mut versions: Vec<WorkflowVersion> = Vec::new();
        for StagedDefinition { digest, workflow, name } in &staged.definitions {
            let bytes = staged.store.blob(digest).await?.ok_or_else(Error::run_not_found)?;
            writes.push(Write::PutBlob { digest: digest.clone(), bytes });
            if self.plans.newest(self.store.as_ref(), &staged.tenant, workflow).await?.is_some() {
                continue;
            }
            let before = versions.iter().filter(|version| version.id == *workflow).count();
            versions.push(WorkflowVersion {
                tenant: staged.tenant.clone(),
                id: workflow.clone(),
                version: u32::try_from(before + 1).unwrap_or(u32::MAX),
                digest: digest.clone(),
                name: name.clone(),
                created_at: self.clock.now(),
            });
        }
        for digest in &staged.agents {
            let bytes = staged.store.blob(digest).await?.ok_or_else(Error::run_not_found)?;
            writes.push(Write::PutBlob { digest: digest.clone(), bytes });
        }
        writes.extend(versions.into_iter().map(Write::PutWorkflow));
        Ok(writes)
    }

    async fn commit_if_full(&self, tenant: &TenantId, batch: &mut Batch) -> Result<(), Error> {
        if batch.bytes < ONE_COMMIT { Ok(()) } else { self.commit_batch(tenant, std::mem::take(batch)).await }
    }

    async fn commit_batch(&self, tenant: &TenantId, batch: Batch) -> Result<(), Error> {
        let Batch { writes, ledgers, .. } = batch;
        if writes.is_empty() {
            return Ok(());
        }
        let live = self.storage.live()?;
        // Should it be refused, nobody goes on with the stores in memory that count on it.
        let links = ledgers.iter().filter_map(StoreWork::chain).collect();
        let commit = Commit::of_parts(live.generation, [(writes, Chains { links, ..Chains::default() })]);
        // Before anything in memory counts on it.
        commit.check_size().map_err(|error| {
            let message = "The file holds a run, or a memory, that is too long to be imported.";
            Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message).because(error)
        })?;
        let _nobody_loads = self.keep_unloaded(&live, &ledgers).await?;
        let ticket = {
            // Held until the commit is queued: whoever writes next comes after it.
            let mut heads = crate::history::transfer::settle_stores::lock_all(&ledgers)?;
            heads.iter_mut().for_each(crate::history::transfer::settle_stores::LockedStore::grow);
            live.outbox.flush(self.store.as_ref(), live.generation);
            self.storage.submit(Lane::Of(tenant), commit)
        };
        Ok(ticket.await?)
    }
}

/// The writes of a run, all of it. Returns what they weigh.
async fn load_run(staged: &Staged, run: &RunId, writes: &mut Vec<Write>) -> Result<usize, Error> {
    let row = staged.store.run(run).await?.ok_or_else(Error::run_not_found)?;
    let expected = row.origin.as_ref().map_or(0, |origin| origin.seq);
    let records = staged.store.records(run, expected, usize::MAX).await?;
    let weigh = |record: &baton_store::StoredRecord| {
        ROW_BYTES + record.body.len() + record.private.as_ref().map_or(0, String::len)
    };
    let said = staged.store.annotations(run, None, usize::MAX).await?;
    let bytes = ROW_BYTES + records.iter().map(weigh).sum::<usize>();
    let bytes = bytes + said.iter().map(|row| ROW_BYTES + row.body.len()).sum::<usize>();
    writes.push(Write::CreateRun(row.clone()));
    writes.push(Write::Append { row, expected, records });
    writes.extend(said.into_iter().map(Write::Annotate));
    Ok(bytes)
}
