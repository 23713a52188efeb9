mod cat;
mod diff;
mod log;
mod ls;
mod put;
mod refused;
mod rm;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List files
    Ls(ls::Args),
    /// Print a file
    // Here a version is that of the file.
    #[command(disable_version_flag = true)]
    Cat(cat::Args),
    /// Write a file
    Put(put::Args),
    /// Delete a file
    Rm(rm::Args),
    /// List changes of files, newest first
    Log(log::Args),
    /// Compare two versions of a file
    Diff(diff::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Ls(args) => ls::run(args, context).await,
            Self::Cat(args) => cat::run(args, context).await,
            Self::Put(args) => put::run(args, context).await,
            Self::Rm(args) => rm::run(args, context).await,
            Self::Log(args) => log::run(args, context).await,
            Self::Diff(args) => diff::run(args, context).await,
        }
    }
}
