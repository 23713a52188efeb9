mod list;
mod refused;
mod run;
mod show;
mod tools;

use clap::Subcommand;

use super::{examples, pack};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the agents of a host
    List,
    /// Show an agent: purpose, model, tools
    Show(show::Args),
    /// Run an agent on a task
    #[command(after_help = examples::AGENT_RUN)]
    Run(run::Args),
    /// List the tools that agents can use
    Tools(tools::Args),
    /// Check the agents of a pack (folder or .tgz) without a host
    Validate(pack::verify::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::List => list::run(context).await,
            Self::Show(args) => show::run(args, context).await,
            Self::Run(args) => run::run(args, context).await,
            Self::Tools(args) => tools::run(args, context).await,
            Self::Validate(args) => pack::verify::run(&args, context),
        }
    }
}
