use std::path::PathBuf;

use baton_agent::Sources;
use baton_model::TenantId;
use serde_json::json;

use super::folder::PACKS;
use super::requirements::IgnoredRequirements;
use super::trust::Trust;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::offered::offered_in_general;
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of packs
    #[arg(long, value_name = "DIR", default_value = PACKS)]
    packs: PathBuf,
    /// Include the packs of this tenant [default: shared packs only]
    #[arg(long, value_name = "TENANT", default_value = "")]
    tenant: String,
    #[command(flatten)]
    ignored: IgnoredRequirements,
    #[command(flatten)]
    trust: Trust,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let sources = Sources {
        packs: args.packs.is_dir().then(|| args.packs.clone()),
        bundled: true,
        capabilities: offered_in_general(),
        ignored_requirements: args.ignored.keys(context),
        checks: args.trust.checks()?,
        ..Sources::default()
    };
    let registry = baton_agent::load(&sources);
    let packs = registry.packs(&TenantId::new(args.tenant.as_str()));
    let output = &context.output;
    if output.is_json() {
        let all: Vec<_> = packs
            .iter()
            .map(|pack| {
                json!({
                    "name": pack.name, "version": pack.version, "origin": pack.origin, "agents": pack.agents,
                    "prompts": pack.prompts, "signed": pack.provenance.key().is_some(),
                    "signature": pack.provenance.word(), "signedBy": pack.provenance.key(), "sha256": pack.sha256,
                })
            })
            .collect();
        let problems: Vec<String> = registry.problems().iter().map(ToString::to_string).collect();
        output.json(&json!({"packs": all, "problems": problems}))?;
        return Ok(Exit::Ok);
    }
    let mut rows = table(&["PACK", "VERSION", "AGENTS", "PROMPTS", "SIGNED", "FROM"]);
    for pack in packs {
        rows.add_row([
            pack.name.clone(),
            pack.version.clone(),
            pack.agents.len().to_string(),
            pack.prompts.to_string(),
            pack.provenance.key().unwrap_or(pack.provenance.word()).to_owned(),
            pack.origin.clone(),
        ]);
    }
    output.table(&rows)?;
    registry.problems().iter().for_each(|problem| output.note(format_args!("not usable: {problem}")));
    Ok(Exit::Ok)
}
