//! The store, and the generation of live runs that writes to it. When a commit fails, the generation ends and the next
//! one begins from what is durable; see [`super::outage`].

use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_model::{RunId, Timestamp};
use baton_store::{RunFilter, RunRow, Shared, Store};

use crate::Error;
use crate::journal::generation::Generation;
use crate::journal::written::WrittenBytes;

/// How many runs of a tree are read at a time.
const PAGE: usize = 500;

/// The store and the current generation.
pub(crate) struct Storage {
    pub(super) store: Arc<dyn Store>,
    live: ArcSwap<Generation>,
    pub(crate) written: Arc<WrittenBytes>,
}

impl Storage {
    pub(crate) fn new(store: Arc<dyn Store>, began: Timestamp) -> Self {
        let written = Arc::<WrittenBytes>::default();
        let first = Generation::new(store.generation(), store.shared().is_some(), began, Arc::clone(&written));
        Self { store, live: ArcSwap::from_pointee(first), written }
    }

    /// The current generation, unless the disk is in trouble.
    pub(crate) fn live(&self) -> Result<Arc<Generation>, Error> {
        let live = self.live.load_full();
        if live.is_dead() {
            return Err(Error::unavailable(match self.shared() {
                None => "Storage cannot be written right now. Reads still work; try again shortly.",
                Some(_) => "The database cannot be written to right now. Try again shortly.",
            }));
        }
        Ok(live)
    }

    /// The current generation, even if it has ended.
    pub(crate) fn current(&self) -> Arc<Generation> {
        self.live.load_full()
    }

    /// The next generation begins.
    pub(crate) fn begin(&self, generation: u64, at: Timestamp) {
        let next = Generation::new(generation, self.shared().is_some(), at, Arc::clone(&self.written));
        self.live.store(Arc::new(next));
    }

    /// What only a store has that several hosts share.
    pub(crate) fn shared(&self) -> Option<&dyn Shared> {
        self.store.shared()
    }

    /// Hands everything that was pushed to the writer.
    pub(crate) fn flush(&self, live: &Generation) {
        live.outbox.flush(self.store.as_ref(), live.generation);
    }

    /// The runs of a tree, its top last.
    pub(crate) async fn runs_of_tree(&self, root: &RunId) -> Result<Vec<RunRow>, Error> {
        let mut rows = Vec::new();
        let mut filter = RunFilter { root: Some(root.clone()), limit: PAGE, ..RunFilter::default() };
        loop {
            let page = self.store.runs(&filter).await?;
            rows.extend(page.items);
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        rows.extend(self.store.run(root).await?);
        Ok(rows)
    }

    /// The row of a run, or of its tree if it is not durable.
    pub(crate) async fn row_or_root(&self, run: &RunId, root: &RunId) -> Result<Option<RunRow>, Error> {
        match self.store.run(run).await? {
            Some(row) => Ok(Some(row)),
            None => Ok(self.store.run(root).await?),
        }
    }
}
