mod folder;
mod install;
mod list;
mod refused;
mod requirements;
mod trust;
pub(crate) mod verify;

use clap::Subcommand;

use super::examples;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the packs of a folder and the built-in pack
    List(list::Args),
    /// Check a pack (folder or .tgz)
    #[command(after_help = examples::PACK_VERIFY)]
    Verify(verify::Args),
    /// Install a .tgz into the folder of packs; restart the host to use it
    Install(install::Args),
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::List(args) => list::run(&args, context),
            Self::Verify(args) => verify::run(&args, context),
            Self::Install(args) => install::run(&args, context),
        }
    }
}
