//! How many runs descend from one run, and how deep they nest. Counted in memory while a tree grows; the store knows
//! where to begin.

use std::sync::Arc;

use baton_model::{Fault, RunId, code};
use baton_store::Store;
use dashmap::DashMap;

use crate::{Error, Options};

/// Counts the runs of trees that grow.
pub(crate) struct TreeSizes {
    descendants: DashMap<RunId, u64>,
    store: Arc<dyn Store>,
    options: Arc<Options>,
}

impl TreeSizes {
    pub(crate) fn new(store: Arc<dyn Store>, options: Arc<Options>) -> Self {
        Self { descendants: DashMap::new(), store, options }
    }

    /// Whether a tree may become this deep; from here on it is known how many runs it has.
    pub(crate) async fn room_in_tree(&self, depth: u32, root: &RunId) -> Result<Result<(), Fault>, Error> {
        if let Err(fault) = self.check_depth(depth) {
            return Ok(Err(fault));
        }
        if !self.descendants.contains_key(root) {
            let known = self.store.descendants(root).await?;
            self.descendants.entry(root.clone()).or_insert(known);
        }
        Ok(Ok(()))
    }

    pub(crate) fn check_depth(&self, depth: u32) -> Result<(), Fault> {
        let most = self.options.limits.max_nesting_depth;
        if depth <= most {
            return Ok(());
        }
        let message = format!("Runs may nest at most {most} deep.");
        Err(Fault::new(code::NESTING_LIMIT_EXCEEDED, message).with("limit", most))
    }

    /// Counts one more descendant of this tree, or refuses it.
    pub(crate) fn grow_tree(&self, root: &RunId) -> Result<(), Fault> {
        let most = self.options.limits.max_children_per_tree;
        let mut count = self.descendants.entry(root.clone()).or_insert(0);
        if *count >= most {
            let message = format!("At most {most} runs may descend from one run.");
            return Err(Fault::new(code::NESTING_LIMIT_EXCEEDED, message).with("limit", most));
        }
        *count += 1;
        Ok(())
    }

    /// How many runs are below this one, if it is the top of a tree that is growing.
    pub(crate) fn descendants(&self, root: &RunId) -> u64 {
        self.descendants.get(root).map_or(0, |count| *count)
    }

    /// The tree is over, or is counted anew the next time.
    pub(crate) fn forget(&self, root: &RunId) {
        self.descendants.remove(root);
    }

    pub(crate) fn clear(&self) {
        self.descendants.clear();
    }
}
