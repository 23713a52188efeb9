//! Bringing runs back into memory.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use baton_engine::{RunState, evolve};
use baton_model::{Event, RunId, code};
use baton_store::RunRow;
use tokio::sync::Mutex;

use crate::inner::Inner;
use crate::world::{Head, Slot, World};
use crate::{Error, Kind};

const PAGE: usize = 2000;
const STRIPES: usize = 64;

/// Loading is serialised per run (by stripe): between reading the log and publishing the head, nobody else may load,
/// change, commit and drop the same run, or the head would be stale.
pub(crate) struct LoadLocks([Mutex<()>; STRIPES]);

impl Default for LoadLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl LoadLocks {
    fn of(&self, run: &RunId) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
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
        let (state, row) = self.fold(run).await?.ok_or_else(Error::run_not_found)?;
        let committed = state.next_seq();
        let slot = Arc::new(Slot::new(Head::new(Arc::new(state), row, true), committed));
        Ok(Arc::clone(&world.slots.entry(run.clone()).or_insert(slot)))
    }

    /// The run as its durable log tells it.
    pub(crate) async fn fold(&self, run: &RunId) -> Result<Option<(RunState, RunRow)>, Error> {
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let mut state: Option<RunState> = None;
        let mut next = 0;
        loop {
            let page = self.store.records(run, next, PAGE).await?;
            let last_page = page.len() < PAGE;
            for stored in &page {
                let record = stored.decode(run)?;
                let folded = match state {
                    Some(state) => state,
                    None => RunState::new(run.clone(), self.pinned(&record.event).await?),
                };
                next = record.seq + 1;
                state = Some(evolve(folded, &record).map_err(|illegal| {
                    Error::new(Kind::Internal, code::INTERNAL_ERROR, "The run's log does not fold.").because(illegal)
                })?);
            }
            if last_page {
                return Ok(state.map(|state| (state, row)));
            }
        }
    }

    async fn pinned(&self, first: &Event) -> Result<Arc<baton_engine::Plan>, Error> {
        match first {
            Event::RunStarted(started) if let Some(digest) = &started.private.workflow => {
                self.plans.pinned(self.store.as_ref(), digest).await
            }
            _ => Err(Error::new(Kind::Internal, code::INTERNAL_ERROR, "A log does not say which workflow it runs.")),
        }
    }
}
