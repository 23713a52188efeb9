//! Where templates are kept: the host's own, and one library for each prompt pack.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_model::code;
use semver::Version;
use serde_json::Value;

use super::error::PromptError;
use super::reference::PromptRef;
use super::template::{PromptKind, PromptTemplate, TemplateSource};
use crate::files::{Files, Inside};
use crate::problem::Problem;

/// The library that the host's own templates are in.
pub const HOST_LIBRARY: &str = "host";

/// The template an agent's library offers for a kind carries this tag, unless it is the only one of that kind.
const DEFAULT_TAG: &str = "default";

/// Libraries by id. Cheap to clone: the templates are shared.
#[derive(Clone, Debug, Default)]
pub struct Library {
    owners: BTreeMap<String, OwnerPacks>,
}

type OwnerPacks = BTreeMap<String, BTreeMap<Version, Arc<PromptTemplate>>>;

impl Library {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a template into a library. Says `false` and changes nothing if that version is there already.
    pub fn add(&mut self, library: &str, template: Arc<PromptTemplate>) -> bool {
        let packs = self.owners.entry(library.to_owned()).or_default();
        let versions = packs.entry(template.template_id.clone()).or_default();
        let free = !versions.contains_key(&template.version);
        if free {
            versions.insert(template.version.clone(), template);
        }
        free
    }

    /// The host's templates from a folder: one a `.json` file.
    pub fn read_folder(folder: &Path) -> (Self, Vec<Problem>) {
        let (mut library, mut problems) = (Self::new(), Vec::new());
        for name in json_files(folder, &mut problems) {
            match read_file(folder, &name) {
                Err(found) => problems.extend(found),
                Ok(template) => {
                    let reference = template.reference();
                    if !library.add(HOST_LIBRARY, template.from(TemplateSource::Host, None)) {
                        let message = format!("`{reference}` is in another file too; keep one, or raise a version.");
                        problems.push(Problem::new(code::PROMPT_TEMPLATE_INVALID, name, message));
                    }
                }
            }
        }
        (library, problems)
    }

    /// Everything of another library too. What is here already stays.
    pub fn extend(&mut self, other: &Self) {
        for (id, packs) in &other.owners {
            for template in packs.values().flat_map(BTreeMap::values) {
                self.add(id, template.clone());
            }
        }
    }

    /// Every template with the library it is in, by library, id and version.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<PromptTemplate>)> {
        self.owners.iter().flat_map(|(id, packs)| {
            packs.values().flat_map(BTreeMap::values).map(move |template| (id.as_str(), template))
        })
    }

    pub fn has(&self, library: &str) -> bool {
        self.owners.contains_key(library)
    }

    /// The template that a reference names.
    pub fn find(&self, reference: &PromptRef) -> Result<&Arc<PromptTemplate>, PromptError> {
        let found: Vec<(&String, &Arc<PromptTemplate>)> = self
            .owners
            .iter()
            .filter(|(id, _)| reference.library_id.as_ref().is_none_or(|wanted| wanted == *id))
            .filter_map(|(id, packs)| Some((id, pick(packs, reference)?)))
            .collect();
        match found.as_slice() {
            [] => Err(PromptError::Missing(reference.to_string())),
            [(_, template)] => Ok(template),
            several => Err(PromptError::Ambiguous {
                reference: reference.to_string(),
                libraries: several.iter().map(|(id, _)| (*id).clone()).collect(),
            }),
        }
    }

    /// What a library offers for a kind when nobody names a template: the one that is tagged `default`, or the only
    /// one there is.
    pub fn default_of(&self, library: &str, kind: PromptKind) -> Option<&Arc<PromptTemplate>> {
        let newest = self.owners.get(library)?.values().filter_map(|versions| versions.values().next_back());
        let of_kind: Vec<_> = newest.filter(|template| template.kind == kind).collect();
        let tagged = of_kind.iter().find(|template| template.tags.iter().any(|tag| tag == DEFAULT_TAG));
        match of_kind.as_slice() {
            [only] => Some(*only),
            _ => tagged.copied(),
        }
    }
}

fn pick<'a>(packs: &'a OwnerPacks, reference: &PromptRef) -> Option<&'a Arc<PromptTemplate>> {
    let versions = packs.get(&reference.template_id)?;
    match &reference.version {
        Some(version) => versions.get(version),
        None => versions.values().next_back(),
    }
}

/// The names of the folder's `.json` files, sorted.
fn json_files(folder: &Path, problems: &mut Vec<Problem>) -> Vec<String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("The folder of prompts cannot be read: {error}. Check that it exists.");
            problems.push(Problem::new(code::PROMPT_TEMPLATE_INVALID, folder.display().to_string(), message));
            return Vec::new();
        }
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json") && !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn read_file(folder: &Path, name: &str) -> Result<PromptTemplate, Vec<Problem>> {
    let wrong = |message: String| vec![Problem::new(code::PROMPT_TEMPLATE_INVALID, name, message)];
    let path = Inside::read(name).map_err(|why| wrong(format!("The file's name {why}.")))?;
    let text = Files::Folder(folder.to_owned()).text(&path).map_err(|why| wrong(format!("The file {why}.")))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("This is not JSON: {error}.")))?;
    PromptTemplate::read(&value, &format!("{name}#"))
}
