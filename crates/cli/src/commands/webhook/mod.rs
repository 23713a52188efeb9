//! Subscriptions to events: who is told, how that goes, and what was not taken.

mod add;
mod list;
mod print_secret;
mod redeliver;
mod resume;
mod rm;
mod rotate;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List webhooks and their state
    List(list::Args),
    /// Show a webhook and its undelivered events
    Show(show::Args),
    /// Send events to an address
    Add(add::Args),
    /// Send undelivered events again
    Redeliver(redeliver::Args),
    /// Turn a failed webhook on again
    Resume(resume::Args),
    /// Replace the secret of a webhook
    RotateSecret(rotate::Args),
    /// Delete a webhook and its undelivered events
    Rm(rm::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::List(args) => list::run(args, context).await,
            Self::Show(args) => show::run(args, context).await,
            Self::Add(args) => add::run(args, context).await,
            Self::Redeliver(args) => redeliver::run(args, context).await,
            Self::Resume(args) => resume::run(args, context).await,
            Self::RotateSecret(args) => rotate::run(args, context).await,
            Self::Rm(args) => rm::run(args, context).await,
        }
    }
}
