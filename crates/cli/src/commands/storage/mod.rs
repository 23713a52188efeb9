//! Where everything is kept: moving it, and proving that it is whole.

mod accept;
mod check;
mod compact;
mod copy;
mod location;
mod messages;
mod read_only;
mod salvage;
mod verification;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy all data from a folder to a database, or back, and verify the copy
    Copy(copy::Args),
    /// Check all data: every checksum, index and blob; then replay every run
    Check(check::Args),
    /// Make the file of a stopped host as small as it can be
    Compact(compact::Args),
    /// Go on with a folder that has lost something: give up what is missing, rebuild indexes
    Accept(accept::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Copy(args) => copy::run(args, context).await,
            Self::Check(args) => check::run(args, context).await,
            Self::Compact(args) => compact::run(args, context).await,
            Self::Accept(args) => accept::run(args, context).await,
        }
    }
}
