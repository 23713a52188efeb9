//! Whether a generation has ended, and because of what.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::RunId;
use baton_store::CommitError;

use crate::Error;

#[derive(Default)]
pub(crate) struct Ending {
    dead: AtomicBool,
    by: OnceLock<CommitError>,
}

impl Ending {
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// A commit failed: nothing that was derived since the last one will become durable.
    pub(crate) fn end(&self, error: &CommitError) {
        let _ = self.by.set(error.clone());
        self.dead.store(true, Ordering::Release);
    }

    /// Why this run will not become durable, if the generation ended because of what it wrote.
    pub(crate) fn refused(&self, run: &RunId) -> Option<Error> {
        let error = self.by.get()?;
        matches!(error, CommitError::Refused { run: Some(named), .. } if named == run).then(|| error.clone().into())
    }
}
