//! The runs in memory: by their names, and by the chains that they are lost with.

use std::sync::Arc;

use baton_model::RunId;
use baton_store::WriteChain;
use dashmap::DashMap;

use crate::journal::dependents::Dependents;
use crate::run::live::RunHandle;

#[derive(Default)]
pub(crate) struct LiveRuns {
    runs: DashMap<RunId, Arc<RunHandle>>,
    dependents: Dependents<RunHandle>,
}

impl LiveRuns {
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<RunHandle>> {
        self.runs.get(run).map(|handle| Arc::clone(&handle))
    }

    pub(crate) fn contains(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    pub(crate) fn iter(&self) -> dashmap::iter::Iter<'_, RunId, Arc<RunHandle>> {
        self.runs.iter()
    }

    /// In place of whoever had the name.
    pub(crate) fn insert(&self, run: &RunId, handle: &Arc<RunHandle>) {
        // Before anybody finds it: it may be lost from then on.
        self.dependents.add(run, handle);
        if let Some(before) = self.runs.insert(run.clone(), Arc::clone(handle)) {
            self.dependents.remove(run, &before);
        }
    }

    /// The same unless somebody has the name already: then that one stays.
    pub(crate) fn get_or_insert(&self, run: &RunId, handle: Arc<RunHandle>) -> Arc<RunHandle> {
        self.dependents.add(run, &handle);
        let there = Arc::clone(&self.runs.entry(run.clone()).or_insert_with(|| Arc::clone(&handle)));
        if !Arc::ptr_eq(&there, &handle) {
            self.dependents.remove(run, &handle);
        }
        there
    }

    pub(crate) fn remove(&self, run: &RunId) -> Option<Arc<RunHandle>> {
        let (_, handle) = self.runs.remove(run)?;
        self.dependents.remove(run, &handle);
        Some(handle)
    }

    /// The same if it is this one that has the name.
    pub(crate) fn remove_this(&self, run: &RunId, handle: &Arc<RunHandle>) {
        if self.runs.remove_if(run, |_, current| Arc::ptr_eq(current, handle)).is_some() {
            self.dependents.remove(run, handle);
        }
    }

    /// Who is lost with this chain.
    pub(crate) fn of(&self, chain: &Arc<WriteChain>) -> Vec<(RunId, Arc<RunHandle>)> {
        self.dependents.of(chain)
    }
}
