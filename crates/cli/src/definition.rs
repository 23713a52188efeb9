//! Workflow definitions read from files and judged without a host.

use std::path::{Path, PathBuf};

use baton_engine::{Features, Plan, Problem};
use serde_json::Value;

use crate::failure::Failure;
use crate::input;

/// A definition and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) definition: Value,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let definition = input::parse(&input::read(path)?, &path.display().to_string())?;
        Ok(Self { path: path.to_owned(), definition })
    }

    /// The workflow's own id, if it has one.
    pub(crate) fn id(&self) -> Option<&str> {
        self.definition.get("id").and_then(Value::as_str)
    }
}

/// Everything that keeps a definition from running, with the place to mend.
pub(crate) fn problems(definition: &Value, conformance: bool) -> Vec<Problem> {
    Plan::compile(definition.clone(), Features { conformance, live_agents: true, ..Features::default() })
        .err()
        .unwrap_or_default()
}

/// The `*.json` files of a folder, by name, so that every start registers them in the same order.
pub(crate) fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
