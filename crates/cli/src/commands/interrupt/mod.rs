mod list;
mod resolve;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what runs wait for
    List(list::Args),
    /// Show one question in full
    Show(show::Args),
    /// Answer a question
    Resolve(resolve::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::List(args) => list::run(args, context).await,
            Self::Show(args) => show::run(args, context).await,
            Self::Resolve(args) => resolve::run(args, context).await,
        }
    }
}
