//! Who asks models, and what it may use for that.

use crate::services::models::calls::Calls;
use crate::services::models::providers::Models;
use crate::services::models::turns::ModelTurns;
use std::sync::Arc;

use baton_model::Secret;

use crate::Options;
use crate::clock::Clock;
use crate::journal::storage::Storage;
use crate::run::commands::RunCommands;
use crate::run::load::RunLoader;
use crate::services::connections::ConnectionLog;
use crate::services::runners::calls::RunnerCalls;
use crate::services::timers::Timers;
use crate::services::tools::service::ToolCalls;
use crate::tasks::Tasks;

/// Makes the model and tool calls that runs want.
pub(crate) struct ModelCalls {
    pub(crate) calls: Arc<Calls>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) models: Models,
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) connections: Arc<ConnectionLog>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) tools: Arc<ToolCalls>,
    pub(crate) runner_calls: Arc<RunnerCalls>,
    pub(crate) turns: ModelTurns,
}
