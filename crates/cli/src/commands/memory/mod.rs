mod delete;
mod export;
mod get;
mod list;
mod put;
mod scope;
mod scopes;

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List memory scopes
    Scopes,
    /// List the entries of a scope or a run, newest first
    List(list::Args),
    /// Show one entry in full
    Get(get::Args),
    /// Write an entry
    Put(put::Args),
    /// Delete an entry
    Delete(delete::Args),
    /// Print a whole scope as JSON lines, newest first
    Export(export::Args),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Scopes => scopes::run(context).await,
            Self::List(args) => list::run(args, context).await,
            Self::Get(args) => get::run(args, context).await,
            Self::Put(args) => put::run(args, context).await,
            Self::Delete(args) => delete::run(args, context).await,
            Self::Export(args) => export::run(args, context).await,
        }
    }
}
