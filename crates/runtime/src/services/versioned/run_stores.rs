//! What one run reads and writes.

use crate::services::versioned::store::VersionedStore;
use std::sync::Arc;

/// The two versioned stores a run reads and writes.
#[derive(Clone)]
pub(crate) struct RunStores {
    pub(crate) memory: Arc<VersionedStore>,
    pub(crate) workspace: Arc<VersionedStore>,
}

impl RunStores {
    pub(crate) fn versions(&self) -> baton_model::Versions {
        baton_model::Versions { memory: self.memory.version(), workspace: self.workspace.version() }
    }
}
