mod install;
mod list;
pub(crate) mod verify;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_agent::{Checks, Pack, Problem, Provenance};
use baton_model::code;
use clap::Subcommand;

use crate::config::{CONFIG_FILE_ENV, Layered, checks};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::offered::offered_in_general;

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
fn folder(packs: &Path, tenant: Option<&str>) -> Result<PathBuf, Failure> {
    match tenant {
        None => Ok(packs.to_owned()),
        Some(tenant) => baton_agent::tenant_folder(packs, tenant).map_err(|problem| Failure::usage(problem.message)),
    }
}

/// What a pack may do without, by whoever says so.
#[derive(Debug, clap::Args)]
struct Waivers {
    /// Something the pack wants of its host and may do without; the host's `waive` must have it too
    #[arg(long, value_name = "KEY", env = "BATON_WAIVE", value_delimiter = ',')]
    waive: Vec<String>,
}

impl Waivers {
    fn keys(&self) -> BTreeSet<String> {
        self.waive.iter().map(|key| key.trim().to_owned()).collect()
    }

    /// What a pack wants and no host of this version has, though it may be used all the same; or why it may not.
    fn unmet(&self, pack: &Pack) -> Result<Vec<String>, Vec<Problem>> {
        let manifest = &pack.manifest;
        manifest.wishes(&manifest.name, &offered_in_general(), &self.keys()).map_err(|problem| vec![problem])
    }

    fn tell(unmet: &[String], context: &Context) {
        if !unmet.is_empty() {
            let keys = unmet.join(", ");
            context.output.note(format_args!("no host of this version offers {keys}: its agents show as degraded"));
        }
    }
}

/// Whose packs are taken for what they say they are: as the host is told, or as the command is.
#[derive(Debug, clap::Args)]
struct Trust {
    /// A key that may have signed the pack, as ID=KEY or ID=file:PATH; again for more [default: trusted_keys of the host]
    #[arg(long, value_name = "KEY")]
    trusted_key: Vec<String>,
    /// Refuse what none of these keys signed [default: require_signed of the host]
    #[arg(long)]
    require_signed: bool,
    /// The configuration of the host, for its trusted_keys and require_signed
    #[arg(long, value_name = "FILE", env = CONFIG_FILE_ENV)]
    config: Option<String>,
}

impl Trust {
    fn checks(&self) -> Result<Checks, Failure> {
        let wrong = |error: crate::config::Error| Failure::usage(error.to_string());
        let mut layered = Layered::defaults();
        if let Some(path) = self.config.as_ref().filter(|path| !path.is_empty()) {
            layered.file(Path::new(path)).map_err(wrong)?;
        }
        for key in ["trusted_keys", "require_signed"] {
            layered.env_below(key, |name| std::env::var(name).ok()).map_err(wrong)?;
        }
        layered.key_flags(&self.trusted_key).map_err(wrong)?;
        let (keys, required) = (layered.list("trusted_keys"), layered.bool("require_signed"));
        checks(&keys, required || self.require_signed).map_err(Failure::usage)
    }

    fn tell(provenance: &Provenance, context: &Context) {
        match (provenance.key(), provenance.note()) {
            (Some(key), _) => context.output.note(format_args!("signed with {key}")),
            (None, note) => context.output.note(note.unwrap_or_default()),
        }
    }
}

/// Says everything that is wrong with a pack.
fn refused(problems: &[Problem], context: &Context) -> Exit {
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
        if problems.iter().any(|problem| problem.code == code::PACK_PEER_DEPENDENCY_MISSING) {
            context.output.hint("--waive KEY, if its agents may do without; they then show as degraded");
        }
    }
    Exit::Failed
}
