use std::io::Write as _;

use clap_complete::Shell;

use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<Exit, Failure> {
    // The generator panics when its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "baton", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Ok)
}
