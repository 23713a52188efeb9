//! Reading packs. One that cannot be used is reported and left out; it never keeps another from being used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use baton_model::{TenantId, code};

use crate::bundled::bundled;
use crate::capabilities::Capabilities;
use crate::pack_reader::{open, read_pack};
use crate::problem::Problem;
use crate::prompts::Library;
use crate::registry::{BUNDLED, Candidate, Registry};
use crate::signature::Checks;

/// Where agents and prompts come from, and what the host can do for them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A folder of packs: a folder or a `.tgz` each, those under `@<tenant>/` for that tenant only.
    pub packs: Option<PathBuf>,
    /// A folder of the host's own templates.
    pub prompts: Option<PathBuf>,
    /// The team that comes with the binary.
    pub bundled: bool,
    pub capabilities: Capabilities,
    /// Wishes of packs that the operator overlooks. Whoever wanted one is shown as degraded.
    pub ignored_requirements: BTreeSet<String>,
    pub checks: Checks,
}

/// Reads everything there is.
pub fn load(sources: &Sources) -> Registry {
    let mut problems = Vec::new();
    let mut candidates = Vec::new();
    if sources.bundled {
        let read = bundled().map(|pack| Candidate { tenant: None, pack, origin: BUNDLED.to_owned(), sha256: None });
        keep(read, BUNDLED, &mut candidates, &mut problems);
    }
    if let Some(folder) = &sources.packs {
        scan(folder, None, "", &sources.checks, &mut candidates, &mut problems);
    }
    let library = match &sources.prompts {
        None => Library::new(),
        Some(folder) => {
            let (library, found) = Library::read_folder(folder);
            problems.extend(found);
            library
        }
    };
    Registry::of(candidates, problems, library, &sources.capabilities, &sources.ignored_requirements)
}

fn keep(
    read: Result<Candidate, Vec<Problem>>,
    name: &str,
    candidates: &mut Vec<Candidate>,
    problems: &mut Vec<Problem>,
) {
    match read {
        Err(found) => problems.extend(found.into_iter().map(|problem| problem.within(name))),
        Ok(mut candidate) => {
            problems.extend(candidate.pack.problems.drain(..).map(|problem| problem.within(name)));
            candidates.push(candidate);
        }
    }
}

/// Looks at each entry of a folder, in the order of their names.
fn scan(
    folder: &Path,
    tenant: Option<&TenantId>,
    prefix: &str,
    checks: &Checks,
    candidates: &mut Vec<Candidate>,
    problems: &mut Vec<Problem>,
) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("The folder of packs cannot be read: {error}. Check that it exists.");
            let place = format!("{prefix}{}", folder.display());
            problems.push(Problem::new(code::PACK_INTEGRITY_FAILURE, place, message));
            return;
        }
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|n| !n.starts_with('.'))
        .collect();
    names.sort();
    for name in names {
        let path = folder.join(&name);
        let shown = format!("{prefix}{name}");
        match name.strip_prefix('@') {
            Some(owner) if tenant.is_none() && !owner.is_empty() && path.is_dir() => {
                scan(&path, Some(&TenantId::new(owner)), &format!("{shown}/"), checks, candidates, problems);
            }
            _ => {
                let Some((files, sha256)) = open(&path, &name) else { continue };
                let read = files.and_then(|files| read_pack(&files, checks)).map(|pack| Candidate {
                    tenant: tenant.cloned(),
                    pack,
                    origin: shown.clone(),
                    sha256,
                });
                keep(read, &shown, candidates, problems);
            }
        }
    }
}
