//! Bringing runs back into memory.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use baton_engine::{Command, RunState};
use baton_model::{RunId, RunStatus, code};
use baton_store::RunRow;
use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::history::fork::is_replay;
use crate::inner::Inner;
use crate::quarantine::{Cause, may_be_loaded, root_of};
use crate::run::world::{Generation, LiveRun, RunHandle};
use crate::{Error, Kind};

/// Loading is serialised per run or ledger: between reading the log and publishing the head, nobody else may load,
/// change, commit and drop the same one, or the head would be stale. One lock for each, made when it is wanted: whoever
/// waits long for one run keeps nobody from another.
#[derive(Default)]
pub(crate) struct LoadLocks {
    /// By the hash of the name. Two of one hash wait for each other, which is only slow.
    locks: DashMap<u64, Arc<Mutex<()>>>,
}

pub(crate) struct LoadGuard<'a> {
    locks: &'a LoadLocks,
    key: u64,
    held: Option<OwnedMutexGuard<()>>,
}

impl LoadLocks {
    pub(crate) fn key(what: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) async fn lock(&self, what: &impl Hash) -> LoadGuard<'_> {
        self.lock_key(Self::key(what)).await
    }

    /// For whoever takes several: smaller keys first.
    pub(crate) async fn lock_key(&self, key: u64) -> LoadGuard<'_> {
        let lock = Arc::clone(&self.locks.entry(key).or_default());
        // Made before the wait: whoever gives up waiting tidies up as well.
        let mut guard = LoadGuard { locks: self, key, held: None };
        guard.held = Some(lock.lock_owned().await);
        guard
    }
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        self.held = None;
        // The map's own is the last: nobody holds it or waits for it.
        self.locks.locks.remove_if(&self.key, |_, lock| Arc::strong_count(lock) == 1);
    }
}

impl Inner {
    /// The run's slot, loading it if it is not in memory.
    pub(crate) async fn slot(&self, world: &Generation, run: &RunId) -> Result<Arc<RunHandle>, Error> {
        if let Some(slot) = world.slots.get(run) {
            return Ok(Arc::clone(&slot));
        }
        let _alone = self.singly(world, run).await?;
        self.slot_if(world, run, false).await
    }

    /// The same, for a command; the caller holds back other suspects. A run in quarantine is loaded only to be cancelled.
    pub(crate) async fn slot_for(
        &self,
        world: &Generation,
        run: &RunId,
        command: &Command,
    ) -> Result<Arc<RunHandle>, Error> {
        self.slot_if(world, run, matches!(command, Command::Cancel { .. })).await
    }

    async fn slot_if(
        &self,
        world: &Generation,
        run: &RunId,
        even_in_quarantine: bool,
    ) -> Result<Arc<RunHandle>, Error> {
        if let Some(slot) = world.slots.get(run) {
            return Ok(Arc::clone(&slot));
        }
        // Boxed: most steps find their run in memory, and need no room for this.
        Box::pin(self.load_slot(world, run, even_in_quarantine)).await
    }

    async fn load_slot(
        &self,
        world: &Generation,
        run: &RunId,
        even_in_quarantine: bool,
    ) -> Result<Arc<RunHandle>, Error> {
        let _loading = self.loading.lock(run).await;
        if let Some(slot) = world.slots.get(run) {
            return Ok(Arc::clone(&slot));
        }
        let _driven_here = self.drive_here(run).await?;
        if let Some(row) = self.store.run(run).await?
            && !row.status.is_terminal()
            && let Some(quarantine) = self.quarantine_of(root_of(&row)).await?
        {
            // One that is being cancelled goes on to its end.
            let wanted = even_in_quarantine || row.status == RunStatus::Cancelling;
            if !wanted || !may_be_loaded(&quarantine) {
                return Err(Error::quarantined(&quarantine));
            }
        }
        let (state, row) = self.fold_to_step(world, run).await?.ok_or_else(Error::run_not_found)?;
        if self.is_leaving(&row) {
            return Err(Error::unavailable("This run is on its way to another host. Try again."));
        }
        if is_replay(&row) && !row.status.is_terminal() {
            let message = "A replay takes no commands; it ends by itself.";
            let running = baton_model::RunStatus::Running.to_string();
            return Err(Error::new(Kind::Conflict, code::RUN_CONFLICT, message).with("runStatus", running));
        }
        let committed = state.next_seq();
        let head = self.head_of(world, state, row).await?;
        let slot = Arc::new(RunHandle::new(head, committed));
        Ok(Arc::clone(&world.slots.entry(run.clone()).or_insert(slot)))
    }

    /// Folds a run that is to go on. One that does not fold will not the next time either, and is left alone then.
    /// A head for what was read off the disk.
    pub(crate) async fn head_of(&self, world: &Generation, state: RunState, row: RunRow) -> Result<LiveRun, Error> {
        let ledgers = self.ledgers_of(world, &row).await?;
        let account = self.account_of(world, &state, &row).await?;
        Ok(LiveRun { account, ..LiveRun::new(Arc::new(state), row, ledgers, true) })
    }

    async fn fold_to_step(&self, world: &Generation, run: &RunId) -> Result<Option<(RunState, RunRow)>, Error> {
        let folded = self.fold_singly(run).await;
        if let Err(error) = &folded
            && matches!(error.kind, Kind::Internal | Kind::Invalid)
            && let Some(row) = self.store.run(run).await?
        {
            let detail = error.source.as_ref().map_or_else(|| error.message.clone(), ToString::to_string);
            self.broke(world, &row, Cause::DoesNotFold, &detail);
        }
        folded
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_run_waits_for_itself_only_and_nothing_is_left_behind() {
        let locks = LoadLocks::default();
        let first = locks.lock(&"a").now_or_never().unwrap();
        assert!(locks.lock(&"a").now_or_never().is_none());
        for other in 0..1000 {
            assert!(locks.lock(&format!("run {other}")).now_or_never().is_some());
        }
        drop(first);
        assert!(locks.lock(&"a").now_or_never().is_some());
        assert!(locks.locks.is_empty());
    }
}
