mod annotate;
mod annotations;
mod control;
mod diff;
mod events;
mod export;
mod fork;
mod import;
mod list;
mod progress;
mod prune;
mod release;
mod show;
pub(crate) mod start;
mod tree;
mod verify;
mod verify_all;
mod watch;

use clap::Subcommand;

use super::examples;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a run of a workflow
    #[command(after_help = examples::RUN_START)]
    Start(start::Args),
    /// List runs, newest first
    #[command(after_help = examples::RUN_LIST)]
    List(list::Args),
    /// Show the state of a run
    Show(show::Args),
    /// Print a run's events
    #[command(after_help = examples::RUN_EVENTS)]
    Events(events::Args),
    /// Watch a run as it happens
    Watch(watch::Args),
    /// Show a run and everything it started as a tree
    Tree(tree::Args),
    /// Fork a run at any event: branch off from there, or replay it
    #[command(after_help = examples::RUN_FORK)]
    Fork(fork::Args),
    /// Check that the engine makes the same decisions from a run's log again
    Verify(verify::Args),
    /// Compare two runs
    Diff(diff::Args),
    /// Export an ended run and its children to a file
    Export(export::Args),
    /// Import a file that another host exported
    Import(import::Args),
    /// Cancel a run and its children
    Cancel(control::Args),
    /// Release a run from quarantine
    Release(release::Args),
    /// Rate, label, correct or flag a run
    Annotate(annotate::Args),
    /// List the annotations of a run
    Annotations(annotations::Args),
    /// Pause a run
    Pause(control::PauseArgs),
    /// Resume a paused run
    Resume(control::Args),
    /// Delete the memory of ended runs, and with --log their events
    Prune(prune::Args),
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
            Self::Fork(args) => fork::run(args, context).await,
            Self::Verify(args) => verify::run(args, context).await,
            Self::Diff(args) => diff::run(args, context).await,
            Self::Export(args) => export::run(args, context).await,
            Self::Import(args) => import::run(args, context).await,
            Self::Cancel(args) => control::cancel(args, context).await,
            Self::Release(args) => release::run(args, context).await,
            Self::Pause(args) => control::pause(args, context).await,
            Self::Resume(args) => control::resume(args, context).await,
            Self::Annotate(args) => annotate::run(args, context).await,
            Self::Annotations(args) => annotations::run(args, context).await,
            Self::Prune(args) => prune::run(args, context).await,
        }
    }
}
