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
    /// List subscriptions, and how each of them does
    List(list::Args),
    /// Show one subscription and what it did not take
    Show(show::Args),
    /// Subscribe an address to events
    Add(add::Args),
    /// Send again what a subscription did not take
    Redeliver(redeliver::Args),
    /// Call a subscription again that failed
    Resume(resume::Args),
    /// Give a subscription a new secret
    RotateSecret(rotate::Args),
    /// End a subscription, with all that it did not take
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
