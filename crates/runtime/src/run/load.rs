//! Bringing runs back into memory.

use std::sync::Arc;

use baton_engine::{Command, RunState};
use baton_model::{RunId, RunStatus, TenantId, code};
use baton_store::{RunRow, Store, WriteChain};

use crate::cluster::ownership::Ownership;
use crate::history::log::{Loaded, RunLog};
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::quarantine::service::Quarantines;
use crate::quarantine::suspect_guard::SuspectGuard;
use crate::quarantine::trees::{Cause, may_be_loaded};
use crate::run::live::{LiveRun, RunHandle};
use crate::run::tree::{is_replay, root_of};
use crate::services::budgets::read::BudgetAccounts;
use crate::services::budgets::spending::LiveSpending;
use crate::services::versioned::service::VersionedStores;
use crate::{Error, ErrorKind};

/// Brings runs into memory.
pub(crate) struct RunLoader {
    pub(crate) loading: Arc<LoadLocks>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) budgets: Arc<BudgetAccounts>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) ownership: Arc<Ownership>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) suspect_guard: Arc<SuspectGuard>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl RunLoader {
    /// The run's handle, loading it if it is not in memory.
    pub(crate) async fn handle(&self, live: &Generation, run: &RunId) -> Result<Arc<RunHandle>, Error> {
        if let Some(handle) = live.run(run) {
            return Ok(handle);
        }
        let _alone = self.suspect_guard.singly(live, run).await?;
        self.handle_if(live, run, false).await
    }

    /// The same, for a command; the caller holds back other suspects. A run in quarantine is loaded only to be cancelled.
    pub(crate) async fn handle_for(
        &self,
        live: &Generation,
        run: &RunId,
        command: &Command,
    ) -> Result<Arc<RunHandle>, Error> {
        self.handle_if(live, run, matches!(command, Command::Cancel { .. })).await
    }

    async fn handle_if(
        &self,
        live: &Generation,
        run: &RunId,
        even_in_quarantine: bool,
    ) -> Result<Arc<RunHandle>, Error> {
        if let Some(handle) = live.run(run) {
            return Ok(handle);
        }
        // Boxed: most steps find their run in memory, and need no room for this.
        Box::pin(self.load_handle(live, run, even_in_quarantine)).await
    }

    async fn load_handle(
        &self,
        live: &Generation,
        run: &RunId,
        even_in_quarantine: bool,
    ) -> Result<Arc<RunHandle>, Error> {
        let _loading = self.loading.lock(run).await;
        if let Some(handle) = live.run(run) {
            return Ok(handle);
        }
        if let Some(lost) = live.runs.get(run) {
            // One that has nothing on its way takes nothing of its tree along: others go on as they are.
            let at_rest = lost.head_now().is_some_and(|head| head.queued <= lost.committed());
            if !at_rest || lost.chain.is_broken() {
                live.give_up(&lost);
            }
            self.chain_of(live, &lost.root, &lost.tenant).await?;
            lost.chain.tell();
            live.drop_run(run, &lost);
        }
        let _driven_here = self.ownership.drive_here(run).await?;
        let row = self.store.run(run).await?.ok_or_else(Error::run_not_found)?;
        let chain = match self.chain_of(live, root_of(&row), &row.tenant).await {
            // Nothing of this generation is written any more. Whoever only looks at the run need not wait for the next.
            Err(_) if live.is_dead() => live.chain(root_of(&row)),
            chain => chain?,
        };
        if !row.status.is_terminal()
            && let Some(quarantine) = self.quarantine.quarantine_of(root_of(&row)).await?
        {
            // One that is being cancelled goes on to its end.
            let wanted = even_in_quarantine || row.status == RunStatus::Cancelling;
            if !wanted || !may_be_loaded(&quarantine) {
                return Err(Error::quarantined(&quarantine));
            }
        }
        let Loaded { state, row, checkpointed } =
            self.fold_to_step(live, run).await?.ok_or_else(Error::run_not_found)?;
        if self.ownership.is_leaving(&row) {
            return Err(Error::unavailable("This run is on its way to another host. Try again."));
        }
        if is_replay(&row) && !row.status.is_terminal() {
            let message = "A replay takes no commands; it ends by itself.";
            let running = baton_model::RunStatus::Running.to_string();
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("runStatus", running));
        }
        let committed = state.next_seq();
        let head = LiveRun { checkpointed, ..self.head_of(live, chain, state, row).await? };
        let handle = Arc::new(RunHandle::new(head, committed));
        Ok(live.runs.get_or_insert(run, handle))
    }

    /// What the writes of a tree are links of from here on. If an older chain of it is broken, what was written of that is
    /// on disk or dropped by the time this is answered: whoever reads the tree next reads what it goes on from.
    async fn chain_of(&self, live: &Generation, root: &RunId, tenant: &TenantId) -> Result<Arc<WriteChain>, Error> {
        let chain = live.chain(root);
        if live.is_unsettled(root) {
            self.storage.write(live.generation, Lane::Of(tenant), Vec::new()).await?;
            live.settled(root, &chain);
        }
        Ok(chain)
    }

    /// A live run for what was read off the disk. `chain` is from before anything was read: should it break meanwhile, what
    /// was read counts no more.
    pub(crate) async fn head_of(
        &self,
        live: &Generation,
        chain: Arc<WriteChain>,
        state: RunState,
        row: RunRow,
    ) -> Result<LiveRun, Error> {
        let ledgers = self.versioned.stores_of(live, &row).await?;
        let account = self.budgets.account_of(live, &chain, &state, &row).await?;
        let spending = match account {
            Some(_) => self.budgets.own_spending(live, &row).await?,
            None => LiveSpending::default(),
        };
        Ok(LiveRun { account, spending, ..LiveRun::new(chain, Arc::new(state), row, ledgers, true) })
    }

    /// Folds a run that is to go on. One that does not fold will not the next time either, and is left alone then.
    async fn fold_to_step(&self, live: &Generation, run: &RunId) -> Result<Option<Loaded>, Error> {
        let folded = self.log.fold_singly(run).await;
        if let Err(error) = &folded
            && (matches!(error.kind, ErrorKind::Internal | ErrorKind::Invalid) || error.is_damage())
            && let Ok(Some(row)) = self.store.run(run).await
        {
            let detail = error.source.as_ref().map_or_else(|| error.message.clone(), ToString::to_string);
            match error.details.get("sequence") {
                // A record is not what was written, and will not be the next time either.
                Some(_) if error.is_damage() => self.quarantine.quarantine(&row, Cause::StorageDamaged, &detail),
                // What it is made of, such as its definition.
                None if error.is_damage() => self.quarantine.broke(live, &row, Cause::StorageDamaged, &detail),
                _ => self.quarantine.broke(live, &row, Cause::DoesNotFold, &detail),
            }
        }
        folded
    }
}
