//! Runs that leave for another host, or come from one.

use std::sync::Arc;

use baton_model::Secret;
use baton_store::Store;

use crate::Options;
use crate::clock::Clock;
use crate::cluster::claims::Claims;
use crate::history::log::RunLog;
use crate::history::transfer::Importing;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::services::versioned::service::VersionedStores;
use crate::services::workflows::Plans;
use crate::steps::StepPool;
use crate::tasks::Tasks;
use crate::watch::Watch;

/// Exports and imports runs.
pub(crate) struct Transfers {
    pub(crate) importing: Importing,
    pub(crate) log: Arc<RunLog>,
    pub(crate) options: Arc<Options>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) loading_stores: Arc<LoadLocks>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) registering: Arc<tokio::sync::Mutex<()>>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) versioned: Arc<VersionedStores>,
}
