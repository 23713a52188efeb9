mod cancel;
mod events;
mod list;
mod pause;
mod resume;
mod show;
mod start;
mod tree;
mod watch;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a run of a workflow
    Start(start::Args),
    /// List runs, newest first
    List(list::Args),
    /// Show where a run stands
    Show(show::Args),
    /// Print a run's events
    Events(events::Args),
    /// Watch a run as it happens
    Watch(watch::Args),
    /// Show a run and everything it started as a tree
    Tree(tree::Args),
    /// Cancel a run and its children
    Cancel(cancel::Args),
    /// Pause a run
    Pause(pause::Args),
    /// Resume a paused run
    Resume(resume::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Start(args) => start::run(args, context).await,
            Self::List(args) => list::run(args, context).await,
            Self::Show(args) => show::run(args, context).await,
            Self::Events(args) => events::run(args, context).await,
            Self::Watch(args) => watch::run(args, context).await,
            Self::Tree(args) => tree::run(args, context).await,
            Self::Cancel(args) => cancel::run(args, context).await,
            Self::Pause(args) => pause::run(args, context).await,
            Self::Resume(args) => resume::run(args, context).await,
        }
    }
}
