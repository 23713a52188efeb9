//! Where everything is kept: moving it, and proving that it is whole.

mod check;
mod copy;
mod location;
mod messages;
mod read_only;
mod verification;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy all data from a folder to a database, or back, and verify the copy
    Copy(copy::Args),
    /// Check all data: count rows, find gaps, replay every run
    Check(check::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Copy(args) => copy::run(args, context).await,
            Self::Check(args) => check::run(args, context).await,
        }
    }
}
