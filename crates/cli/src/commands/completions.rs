use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    // The generator panics when its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "baton", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Ok)
}
