use std::path::PathBuf;

use serde_json::json;

use super::refused::refused;
use super::requirements::IgnoredRequirements;
use super::trust::Trust;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder with a pack.json, or a .tgz of it
    pack: PathBuf,
    #[command(flatten)]
    ignored: IgnoredRequirements,
    #[command(flatten)]
    trust: Trust,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let pack = match baton_agent::inspect(&args.pack, &args.trust.checks()?) {
        Ok(pack) => pack,
        Err(problems) => return Ok(refused(&problems, context)),
    };
    if !pack.problems.is_empty() {
        return Ok(refused(&pack.problems, context));
    }
    let unmet = match args.ignored.unmet(&pack, context) {
        Ok(unmet) => unmet,
        Err(problems) => return Ok(refused(&problems, context)),
    };
    let agents: Vec<&str> = pack.agents.iter().map(|agent| agent.card.agent_id.as_str()).collect();
    let (name, version) = (&pack.manifest.name, pack.manifest.version.to_string());
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({
            "ok": true, "name": name, "version": version, "agents": agents, "prompts": pack.prompts.len(),
            "signed": pack.provenance.key().is_some(), "signature": pack.provenance.word(),
            "signedBy": pack.provenance.key(), "unmet": unmet,
        }))?;
    } else {
        output.line(format_args!("{name} {version}: {} agents, {} prompts", agents.len(), pack.prompts.len()))?;
        agents.iter().try_for_each(|agent| output.line(format_args!("  {agent}")))?;
        Trust::print(&pack.provenance, context);
        IgnoredRequirements::print(&unmet, context);
    }
    Ok(Exit::Ok)
}
