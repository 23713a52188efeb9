use std::path::PathBuf;

use serde_json::json;

use super::folder::{PACKS, folder};
use super::refused::refused;
use super::requirements::IgnoredRequirements;
use super::trust::Trust;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pack file (.tgz)
    file: PathBuf,
    /// Folder of packs
    #[arg(long, value_name = "DIR", default_value = PACKS)]
    packs: PathBuf,
    /// Install for this tenant only [default: for all tenants]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    #[command(flatten)]
    ignored: IgnoredRequirements,
    #[command(flatten)]
    trust: Trust,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let into = folder(&args.packs, args.tenant.as_deref())?;
    let packed = std::fs::read(&args.file)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", args.file.display())))?;
    let checks = args.trust.checks()?;
    let wanted = baton_agent::inspect_archive(&packed, &checks).and_then(|pack| args.ignored.unmet(&pack, context));
    let unmet = match wanted {
        Ok(unmet) => unmet,
        Err(problems) => return Ok(refused(&problems, context)),
    };
    let installed = match baton_agent::install(&packed, &into, &checks) {
        Ok(installed) => installed,
        Err(problems) => return Ok(refused(&problems, context)),
    };
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({
            "name": installed.name, "version": installed.version, "sha256": installed.sha256,
            "folder": installed.folder, "unchanged": installed.unchanged, "unmet": unmet,
            "signature": installed.provenance.word(), "signedBy": installed.provenance.key(),
        }))?;
        return Ok(Exit::Ok);
    }
    output.line(installed.folder.display())?;
    Trust::print(&installed.provenance, context);
    IgnoredRequirements::print(&unmet, context);
    if installed.unchanged {
        output.note(format_args!("{} {} was already installed", installed.name, installed.version));
    } else {
        output.note("restart the host to use it");
        output.hint(format_args!("baton serve --packs {}", args.packs.display()));
    }
    Ok(Exit::Ok)
}
