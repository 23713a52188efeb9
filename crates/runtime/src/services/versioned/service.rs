//! Who reads and writes memory, workspaces and conversations.

use std::sync::Arc;

use baton_model::Secret;
use baton_store::Store;

use crate::Options;
use crate::clock::Clock;
use crate::cluster::claims::Claims;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::tasks::Tasks;

/// Reads and writes memory, workspaces and conversations.
pub(crate) struct VersionedStores {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) loading_stores: Arc<LoadLocks>,
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}
