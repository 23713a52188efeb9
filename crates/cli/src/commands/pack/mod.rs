mod install;
mod list;
pub(crate) mod verify;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where packs lie when nobody says.
const PACKS: &str = "packs";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the packs of a folder, and the one that comes along
    List(list::Args),
    /// Check a pack, a folder or a .tgz
    Verify(verify::Args),
    /// Unpack a .tgz into the folder of packs; a host sees it when it is started again
    Install(install::Args),
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::List(args) => list::run(&args, context),
            Self::Verify(args) => verify::run(&args, context),
            Self::Install(args) => install::run(&args, context),
        }
    }
}

/// The folder of packs of one tenant, or of all.
fn folder(packs: &Path, tenant: Option<&str>) -> PathBuf {
    tenant.map_or_else(|| packs.to_owned(), |tenant| packs.join(format!("@{tenant}")))
}

/// Says everything that is wrong with a pack.
fn refused(problems: &[baton_agent::Problem], context: &Context) -> Exit {
    if context.output.is_json() {
        let all: Vec<_> = problems
            .iter()
            .map(
                |problem| serde_json::json!({"code": problem.code, "place": problem.place, "message": problem.message}),
            )
            .collect();
        // Nobody can be told when stdout is gone.
        let _ = context.output.json(&serde_json::json!({"ok": false, "problems": all}));
    } else {
        problems.iter().for_each(|problem| context.output.error(&problem.to_string()));
    }
    Exit::Failed
}
