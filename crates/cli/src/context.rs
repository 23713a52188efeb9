use std::path::Path;

use baton_client::Client;

use crate::dev_file::{DEV_DATA, DevFile};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;

/// Flags every command takes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Print data as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Address of the host [default: the `baton dev` host of this folder, or http://127.0.0.1:7717]
    #[arg(long, global = true, env = "BATON_URL", value_name = "URL")]
    url: Option<String>,
    /// API key
    #[arg(long, global = true, env = "BATON_API_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// Turn colour off (NO_COLOR works too)
    #[arg(long, global = true)]
    no_color: bool,
    /// Print only data and errors
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// What a command needs from its surroundings.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) target: Target,
}

impl Context {
    pub(crate) fn new(globals: Globals) -> Self {
        let output = Output::new(globals.json, globals.quiet, globals.no_color);
        let present = |text: Option<String>| text.filter(|text| !text.is_empty());
        let target = Target::resolve(present(globals.url), present(globals.key), DevFile::read(Path::new(DEV_DATA)));
        Self { output, target }
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.target.client()
    }
}
