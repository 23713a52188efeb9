//! What can be typed: one file a command. Each takes its arguments and the context, and says how it ended.

mod agent;
mod completions;
mod config;
mod dev;
mod doctor;
mod interrupt;
mod memory;
mod pack;
mod run;
mod serve;
mod storage;
mod version;
mod webhook;
mod workflow;
mod workspace;

use clap::{CommandFactory as _, Parser, Subcommand};

pub(crate) use version::VERSION;

use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::failure::Failure;

const EXIT_CODES: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 conflict, 6 waiting for a human,
7 cancelled or timed out, 8 a bound was reached, 9 replay diverged, 10 host unreachable";

/// Durable workflows and teams of agents in one binary
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a host for this folder: no configuration, demo workflows, hot reload
    Dev(dev::Args),
    /// Start a host for production
    Serve(serve::Args),
    /// Check, register and look at workflows
    #[command(subcommand)]
    Workflow(workflow::Command),
    /// Start runs, look at them, steer them
    #[command(subcommand)]
    Run(run::Command),
    /// See and answer what runs wait for
    #[command(subcommand)]
    Interrupt(interrupt::Command),
    /// Agents: who there is, and calling one
    #[command(subcommand)]
    Agent(agent::Command),
    /// Packs that agents come in
    #[command(subcommand)]
    Pack(pack::Command),
    /// What runs and people remember beyond a run
    #[command(subcommand)]
    Memory(memory::Command),
    /// Files that all runs share
    #[command(subcommand)]
    Workspace(workspace::Command),
    /// Subscriptions to events, and what they did not take
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Look at the configuration `serve` would use
    #[command(subcommand)]
    Config(config::Command),
    /// Check disk, clock, storage and configuration, and say how to fix what is wrong
    Doctor(serve::Args),
    /// Move everything between a folder and a database, and prove that it is whole
    #[command(subcommand)]
    Storage(storage::Command),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the version
    Version,
}

impl Command {
    /// Whether this process is a host, not a client of one.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Self::Dev(_) | Self::Serve(_))
    }

    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Dev(args) => dev::run(args, context).await,
            Self::Serve(args) => serve::run(args, context).await,
            Self::Workflow(command) => command.run(context).await,
            Self::Agent(command) => command.run(context).await,
            Self::Pack(command) => command.run(context),
            Self::Run(command) => command.run(context).await,
            Self::Interrupt(command) => command.run(context).await,
            Self::Memory(command) => command.run(context).await,
            Self::Workspace(command) => command.run(context).await,
            Self::Webhook(command) => command.run(context).await,
            Self::Config(command) => config::run(command, context),
            Self::Doctor(args) => doctor::run(args, context).await,
            Self::Storage(command) => command.run(context).await,
            Self::Completions(args) => completions::run(&args, Cli::command()),
            Self::Version => version::run(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
