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
    /// Fork a run at any event: go another way from there, or replay it
    Fork(fork::Args),
    /// Go through a run's log again and see whether every decision comes out the same
    Verify(verify::Args),
    /// What two runs did differently
    Diff(diff::Args),
    /// Write an ended run, with its tree and history, to a file for another host
    Export(export::Args),
    /// Take in a file that another host exported
    Import(import::Args),
    /// Cancel a run and its children
    Cancel(control::Args),
    /// Let a run in quarantine try again
    Release(release::Args),
    /// Say something about a run: rate it, name it, correct it, flag it
    Annotate(annotate::Args),
    /// What was said about a run
    Annotations(annotations::Args),
    /// Pause a run
    Pause(control::PauseArgs),
    /// Resume a paused run
    Resume(control::Args),
    /// Drop what ended runs remember, and with --log their events
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
