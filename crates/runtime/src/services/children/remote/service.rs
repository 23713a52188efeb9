//! Who sees to children on other hosts.

use crate::services::children::remote::actions::RemoteActions;
use std::sync::Arc;

use baton_model::Secret;

use crate::Options;
use crate::clock::Clock;
use crate::journal::storage::Storage;
use crate::run::commands::RunCommands;
use crate::run::load::RunLoader;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::connections::ConnectionLog;
use crate::services::observers::ObserverFeed;
use crate::services::tools::service::ToolCalls;
use crate::tasks::Tasks;

/// Sees to children on other hosts.
pub(crate) struct RemoteChildren {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) remote_actions: Arc<RemoteActions>,
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) connections: Arc<ConnectionLog>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) observers: Arc<ObserverFeed>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) tools: Arc<ToolCalls>,
    pub(crate) trees: Arc<TreeSizes>,
}
