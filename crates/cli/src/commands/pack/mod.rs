mod folder;
mod install;
mod list;
mod refused;
mod requirements;
mod trust;
pub(crate) mod verify;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the packs of a folder, and the one that comes along
    List(list::Args),
    /// Check a pack, a folder or a .tgz
    Verify(verify::Args),
    /// Unpack a .tgz into the folder of packs; a host sees it when it is started again
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
