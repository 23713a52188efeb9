//! Bringing runs back into memory.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use baton_model::{RunId, code};
use tokio::sync::Mutex;

use crate::fork::is_replay;
use crate::inner::Inner;
use crate::world::{Head, Slot, World};
use crate::{Error, Kind};

const STRIPES: usize = 64;

/// Loading is serialised per run or ledger (by stripe): between reading the log and publishing the head, nobody else may
/// load, change, commit and drop the same one, or the head would be stale.
pub(crate) struct LoadLocks([Mutex<()>; STRIPES]);

impl Default for LoadLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl LoadLocks {
    pub(crate) fn of(&self, what: &impl Hash) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        &self.0[(hasher.finish() % STRIPES as u64) as usize]
    }
}

impl Inner {
    /// The run's slot, loading it if it is not in memory.
    pub(crate) async fn slot(&self, world: &World, run: &RunId) -> Result<Arc<Slot>, Error> {
        if let Some(slot) = world.slots.get(run) {
            return Ok(Arc::clone(&slot));
        }
        let _loading = self.loading.of(run).lock().await;
        if let Some(slot) = world.slots.get(run) {
            return Ok(Arc::clone(&slot));
        }
        let _driven_here = self.drive_here(run).await?;
        let (state, row) = self.fold(run).await?.ok_or_else(Error::run_not_found)?;
        if self.is_leaving(&row) {
            return Err(Error::unavailable("This run is on its way to another host. Try again."));
        }
        let committed = state.next_seq();
        if is_replay(&row) && !row.status.is_terminal() {
            let message = "A replay takes no commands; it ends by itself.";
            let running = baton_model::RunStatus::Running.to_string();
            return Err(Error::new(Kind::Conflict, code::RUN_CONFLICT, message).with("runStatus", running));
        }
        let ledgers = self.ledgers_of(world, &row).await?;
        let account = self.account_of(world, &state, &row).await?;
        let head = Head { account, ..Head::new(Arc::new(state), row, ledgers, true) };
        let slot = Arc::new(Slot::new(head, committed));
        Ok(Arc::clone(&world.slots.entry(run.clone()).or_insert(slot)))
    }
}
