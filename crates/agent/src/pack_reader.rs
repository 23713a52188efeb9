//! Reading one pack: its signature, its manifest and everything in it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use baton_model::{Digest, code};

use crate::archive::{self, MAX_ARCHIVE_BYTES};
use crate::card::{self, PackAgent};
use crate::files::{Files, Inside};
use crate::manifest::AgentManifest;
use crate::pack::{Contents, MANIFEST, PackManifest};
use crate::problem::Problem;
use crate::prompts::{PromptTemplate, TemplateSource};
use crate::signature::{self, Checks, Provenance};

/// A pack, read.
#[derive(Clone, Debug)]
pub struct Pack {
    pub manifest: PackManifest,
    pub agents: Vec<PackAgent>,
    pub prompts: Vec<Arc<PromptTemplate>>,
    /// Agents of it that cannot be used.
    pub problems: Vec<Problem>,
    pub provenance: Provenance,
}

/// Reads one pack, a folder or an archive, and says everything that is wrong with it.
pub fn inspect(path: &Path, checks: &Checks) -> Result<Pack, Vec<Problem>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((files, _)) = open(path, name) else {
        let message = "There is no pack here. A pack is a folder with a pack.json, or a .tgz of one.";
        return Err(vec![Problem::new(code::INVALID_MANIFEST, path.display().to_string(), message)]);
    };
    files.and_then(|files| read_pack(&files, checks))
}

pub(crate) type Opened = (Result<Files, Vec<Problem>>, Option<Digest>);

/// A folder or an archive; any other file that lies around is no pack.
pub(crate) fn open(path: &Path, name: &str) -> Option<Opened> {
    if path.is_dir() {
        return Some((Ok(Files::Folder(path.to_owned())), None));
    }
    if !path.is_file() || !(name.ends_with(".tgz") || name.ends_with(".tar.gz")) {
        return None;
    }
    let wrong = |message: String| vec![Problem::new(code::PACK_INTEGRITY_FAILURE, "archive", message)];
    let mut packed = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_ARCHIVE_BYTES + 1).read_to_end(&mut packed));
    if let Err(error) = read {
        return Some((Err(wrong(format!("The archive cannot be read: {error}."))), None));
    }
    let contents = archive::read(&packed).map_err(|error| wrong(format!("The archive is not taken: {error}.")));
    Some((contents.map(Files::Memory), Some(Digest::of_bytes(&packed))))
}

/// Reads one pack: signature, manifest, and everything in it.
pub(crate) fn read_pack(files: &Files, checks: &Checks) -> Result<Pack, Vec<Problem>> {
    let wrong = |message: String| vec![Problem::new(code::INVALID_MANIFEST, MANIFEST, message)];
    let inside = Inside::read(MANIFEST).map_err(|why| wrong(format!("`{MANIFEST}` {why}.")))?;
    let bytes = files.bytes(&inside).map_err(|why| wrong(format!("`{MANIFEST}` {why}. A pack has it at its root.")))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong(format!("`{MANIFEST}` is not UTF-8.")))?;
    let manifest = PackManifest::read(text)?;
    let provenance = signature::check(&manifest, &bytes, files, checks).map_err(|problem| vec![problem])?;
    let mut pack = Pack { agents: Vec::new(), prompts: Vec::new(), problems: Vec::new(), provenance, manifest };
    match pack.manifest.contents.clone() {
        Contents::Agents(agents) => read_agents(&agents, &mut pack, files),
        Contents::Prompts(prompts) => pack.prompts = read_prompts(&prompts, &pack.manifest)?,
    }
    if pack.agents.is_empty() && pack.prompts.is_empty() {
        return Err(pack.problems);
    }
    Ok(pack)
}

/// A manifest that fails takes nobody with it.
fn read_agents(agents: &[serde_json::Value], pack: &mut Pack, files: &Files) {
    for (index, value) in agents.iter().enumerate() {
        let at = format!("{MANIFEST}#/agents/{index}");
        let read = AgentManifest::read(value, &at, &pack.manifest.name)
            .and_then(|manifest| card::agent(manifest, &at, &pack.manifest, files));
        match read {
            Err(found) => pack.problems.extend(found),
            Ok(agent) if pack.agents.iter().any(|other| other.card.agent_id == agent.card.agent_id) => {
                let message = format!("`{}` is in this pack twice; rename or remove one.", agent.card.agent_id);
                pack.problems.push(Problem::new(code::INVALID_MANIFEST, format!("{at}/agentId"), message));
            }
            Ok(agent) => pack.agents.push(agent),
        }
    }
}

/// A prompt pack is taken whole or not at all.
fn read_prompts(prompts: &[serde_json::Value], pack: &PackManifest) -> Result<Vec<Arc<PromptTemplate>>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut templates: Vec<Arc<PromptTemplate>> = Vec::new();
    for (index, value) in prompts.iter().enumerate() {
        let at = format!("{MANIFEST}#/prompts/{index}");
        let template = match PromptTemplate::read(value, &at) {
            Ok(template) => template,
            Err(found) => {
                problems.extend(found);
                continue;
            }
        };
        let mut problem = |message| problems.push(Problem::new(code::PROMPT_TEMPLATE_INVALID, at.clone(), message));
        for name in template.undeclared() {
            problem(format!("`{{{{{name}}}}}` is not declared; add it to `variables`."));
        }
        if templates.iter().any(|other| other.reference() == template.reference()) {
            problem(format!("`{}` is in this pack twice; raise a version.", template.reference()));
        }
        templates.push(template.from(TemplateSource::Pack, Some((&pack.name, &pack.version))));
    }
    if problems.is_empty() { Ok(templates) } else { Err(problems) }
}
