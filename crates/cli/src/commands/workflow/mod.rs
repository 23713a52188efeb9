mod graph;
mod list;
mod register;
mod show;
mod validate;
mod versions;

use clap::Subcommand;

use super::examples;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check workflow files without a host
    #[command(after_help = examples::WORKFLOW_VALIDATE)]
    Validate(validate::Args),
    /// Register workflow files with the host
    Register(register::Args),
    /// List registered workflows
    List,
    /// Print a workflow's definition
    // Whose version is asked for is the workflow's, not the program's.
    #[command(disable_version_flag = true)]
    Show(show::Args),
    /// List every version of a workflow
    Versions(versions::Args),
    /// Draw a workflow
    Graph(graph::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Validate(args) => validate::run(&args, context),
            Self::Register(args) => register::run(args, context).await,
            Self::List => list::run(context).await,
            Self::Show(args) => show::run(args, context).await,
            Self::Versions(args) => versions::run(args, context).await,
            Self::Graph(args) => graph::run(args, context).await,
        }
    }
}
