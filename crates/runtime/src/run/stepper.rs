//! Who steps runs, and what a step may use.

use std::sync::Arc;

use crate::Options;
use crate::clock::Clock;
use crate::health::HealthState;
use crate::history::checkpoints::queue::CheckpointQueue;
use crate::journal::storage::Storage;
use crate::ports::{EffectSink, Port};
use crate::quarantine::service::Quarantines;
use crate::quarantine::suspect_guard::SuspectGuard;
use crate::quarantine::trees::QuarantinedTrees;
use crate::run::eviction_queue::EvictionQueue;
use crate::run::load::RunLoader;
use crate::services::budgets::read::BudgetAccounts;
use crate::services::children::remote::RemoteActions;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::models::Calls;
use crate::services::observers::ObserverFeed;
use crate::services::timers::Timers;
use crate::services::tools::service::ToolCalls;
use crate::services::versioned::service::VersionedStores;
use crate::services::webhooks::Webhooks;
use crate::steps::StepPool;

/// Steps runs: decides, folds and queues under the run's lock.
pub(crate) struct RunStepper {
    pub(crate) checkpoint_queue: Arc<CheckpointQueue>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) remote_actions: Arc<RemoteActions>,
    pub(crate) options: Arc<Options>,
    pub(crate) quarantined: Arc<QuarantinedTrees>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) health_state: Arc<HealthState>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) budgets: Arc<BudgetAccounts>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) observers: Arc<ObserverFeed>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tools: Arc<ToolCalls>,
    pub(crate) trees: Arc<TreeSizes>,
    pub(crate) suspect_guard: Arc<SuspectGuard>,
    pub(crate) versioned: Arc<VersionedStores>,
    pub(crate) effect_sink: Port<dyn EffectSink>,
}
