//! Who knows the agents, and puts together what one is told.

use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_model::Secret;
use baton_store::Store;

use crate::Options;
use crate::clock::Clock;
use crate::journal::storage::Storage;
use crate::services::agents::AgentRegistry;
use crate::services::conversations::Conversations;
use crate::services::models::Models;
use crate::services::versioned::service::VersionedStores;
use crate::steps::StepPool;

/// Knows the agents, and what one is told when it begins.
pub(crate) struct Agents {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) models: Models,
    pub(crate) options: Arc<Options>,
    pub(crate) agent_registry: Arc<ArcSwap<AgentRegistry>>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) versioned: Arc<VersionedStores>,
}
