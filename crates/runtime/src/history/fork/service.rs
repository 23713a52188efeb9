//! Who makes branches, and what it may use for that.

use std::sync::Arc;

use baton_store::Store;

use crate::Options;
use crate::clock::{Clock, Ids};
use crate::cluster::claims::Claims;
use crate::history::log::RunLog;
use crate::history::replay::Replays;
use crate::journal::storage::Storage;
use crate::quarantine::service::Quarantines;
use crate::run::commands::RunCommands;
use crate::run::load::RunLoader;
use crate::run::stepper::RunStepper;
use crate::services::agents::service::Agents;
use crate::services::timers::Timers;
use crate::services::tree_quotas::TreeQuotas;
use crate::services::workflows::PlanLoader;
use crate::steps::StepPool;
use crate::tasks::Tasks;

/// Makes branches.
pub(crate) struct Forks {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) plan_loader: Arc<PlanLoader>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) replays: Arc<Replays>,
    pub(crate) stepper: Arc<RunStepper>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) tree_quotas: Arc<TreeQuotas>,
}
