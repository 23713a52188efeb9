mod list;
mod resolve;
mod show;

use clap::Subcommand;

use super::examples;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List open questions
    List(list::Args),
    /// Show a question in full
    Show(show::Args),
    /// Answer a question
    #[command(after_help = examples::INTERRUPT_RESOLVE)]
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
