//! What can be typed: one file a command. Each takes its arguments and the context, and says how it ended.

mod agent;
mod completions;
mod config;
mod dev;
mod doctor;
mod examples;
mod interrupt;
mod memory;
mod new;
mod pack;
mod run;
mod runner;
mod runner_token;
mod serve;
mod storage;
mod test;
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
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 conflict, 6 waiting for an answer,
7 cancelled or timed out, 8 limit reached, 9 replay differs, 10 host unreachable";

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
    /// Start a development host in this folder, with demo workflows and hot reload
    #[command(after_help = examples::DEV)]
    Dev(dev::Args),
    /// Start a production host
    #[command(after_help = examples::SERVE)]
    Serve(serve::Args),
    /// Make a project: a workflow, an agent, a worker, a test and a configuration
    #[command(after_help = examples::NEW)]
    New(new::Args),
    /// Run the test cases of a project, without a host or a network
    #[command(after_help = examples::TEST)]
    Test(test::Args),
    /// Check, register and show workflows
    #[command(subcommand)]
    Workflow(workflow::Command),
    /// Start, watch, fork and control runs
    #[command(subcommand)]
    Run(run::Command),
    /// Show and answer the questions of runs
    #[command(subcommand)]
    Interrupt(interrupt::Command),
    /// List, show and run agents
    #[command(subcommand)]
    Agent(agent::Command),
    /// List, check and install agent packs
    #[command(subcommand)]
    Pack(pack::Command),
    /// Read and write memory
    #[command(subcommand)]
    Memory(memory::Command),
    /// Read and write the files that runs share
    #[command(subcommand)]
    Workspace(workspace::Command),
    /// Manage webhooks and undelivered events
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Make a program with tools a runner of a host
    #[command(after_help = examples::RUNNER)]
    Runner(runner::Args),
    /// Make, list and revoke tokens for runners
    #[command(subcommand)]
    RunnerToken(runner_token::TokenCommand),
    /// Show the configuration of `baton serve`
    #[command(subcommand)]
    Config(config::Command),
    /// Check disk, clock, storage and configuration, and suggest fixes
    Doctor(serve::Args),
    /// Check the stored data, or copy it between a folder and a database
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
            Self::New(args) => new::run(&args, context),
            Self::Test(args) => test::run(&args, context),
            Self::Workflow(command) => command.run(context).await,
            Self::Agent(command) => command.run(context).await,
            Self::Pack(command) => command.run(context),
            Self::Run(command) => command.run(context).await,
            Self::Interrupt(command) => command.run(context).await,
            Self::Memory(command) => command.run(context).await,
            Self::Workspace(command) => command.run(context).await,
            Self::Webhook(command) => command.run(context).await,
            Self::Runner(args) => runner::run(args, context).await,
            Self::RunnerToken(command) => command.run(context).await,
            Self::Config(command) => config::run(command, context),
            Self::Doctor(args) => doctor::run(args, context).await,
            Self::Storage(command) => command.run(context).await,
            Self::Completions(args) => completions::run(&args, Cli::command()),
            Self::Version => version::run(context),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
