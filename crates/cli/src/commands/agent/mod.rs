mod list;
mod refused;
mod run;
mod show;
mod tools;

use clap::Subcommand;

use super::pack;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the agents of a host
    List,
    /// Show what an agent is for and what it may do
    Show(show::Args),
    /// Let an agent work on a task
    Run(run::Args),
    /// List the tools that agents may be allowed
    Tools(tools::Args),
    /// Check the agents of a pack, a folder or a .tgz, without a host
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
