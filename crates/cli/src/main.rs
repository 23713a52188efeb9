//! `baton`: the host and everything a person types to use it.

mod age;
mod commands;
mod config;
mod confirm;
mod context;
mod definition;
mod demos;
mod dev_file;
mod diff;
mod duration;
mod exit;
mod failure;
mod follow;
mod graph;
mod hosting;
mod input;
mod output;
mod private_file;
mod render;
mod run_ref;
mod target;
mod terminal;
mod tree;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::commands::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// How long threads may take to end once everything is done. Whoever hangs beyond that, hangs for good.
const LEAVING: Duration = Duration::from_secs(2);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // rustls asks for the process-wide provider the first time an HTTP client is built. It can only fail to be
    // installed when there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    let context = Context::new(cli.globals);
    let exit = runtime(cli.command.is_host())
        .map_err(|error| Failure::new(Exit::Failed, format!("worker threads cannot be started: {error}")))
        .and_then(|runtime| {
            let ended = runtime.block_on(cli.command.run(&context));
            runtime.shutdown_timeout(LEAVING);
            ended
        })
        .unwrap_or_else(|failure| {
            failure.print(&context.output);
            failure.exit
        });
    exit.into()
}

/// A host uses every core; a client command needs one thread and should start at once.
fn runtime(host: bool) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder =
        if host { tokio::runtime::Builder::new_multi_thread() } else { tokio::runtime::Builder::new_current_thread() };
    builder.enable_all().build()
}
