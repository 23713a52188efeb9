//! Registering workflows from files. They are the operator's, so every tenant can start them.

use std::path::Path;

use baton_engine::Problem;
use baton_runtime::Host;
use baton_server::Entrance;
use serde_json::Value;

use crate::definition::{self, Source};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Why a file was not registered: each line names file, place and problem.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) lines: Vec<String>,
}

impl Rejected {
    fn one(path: &Path, message: impl std::fmt::Display) -> Self {
        Self { lines: vec![format!("{}: {message}", path.display())] }
    }

    pub(crate) fn into_failure(self) -> Failure {
        Failure::new(Exit::Usage, format!("a workflow cannot be registered\n  {}", self.lines.join("\n  ")))
            .hint("fix the file, or remove it from the folder")
    }
}

/// Registers one file and returns the workflow's id.
pub(crate) async fn register_file(host: &Host, path: &Path) -> Result<String, Rejected> {
    let text = std::fs::read_to_string(path).map_err(|error| Rejected::one(path, error))?;
    let definition: Value =
        serde_json::from_str(&text).map_err(|error| Rejected::one(path, format!("not JSON: {error}")))?;
    register(host, Source { path: path.to_owned(), definition }).await
}

pub(crate) async fn register(host: &Host, source: Source) -> Result<String, Rejected> {
    let problems = definition::problems(&source.definition, host.options().test_hooks.is_some());
    if !problems.is_empty() {
        let place = |pointer: &str| if pointer.is_empty() { "/".to_owned() } else { pointer.to_owned() };
        let lines = problems
            .iter()
            .map(|Problem { pointer, message, .. }| format!("{}: {}: {message}", source.path.display(), place(pointer)))
            .collect();
        return Err(Rejected { lines });
    }
    if let Some(lacking) = lacking(host, &source.definition).filter(|_| host.options().test_hooks.is_some()) {
        return Err(Rejected::one(&source.path, lacking));
    }
    host.register_shared_workflow(source.definition.clone())
        .await
        .map_err(|error| Rejected::one(&source.path, error.message))?;
    Ok(source.id().unwrap_or_default().to_owned())
}

/// What a fixture leans on that is not here. It would run, and show nothing.
fn lacking(host: &Host, definition: &Value) -> Option<String> {
    let metadata = definition.get("metadata")?;
    let named = |key: &str| metadata.get(key).and_then(Value::as_str);
    if let Some(agent) = named("requiresAgentId") {
        return Some(format!("/metadata/requiresAgentId: here a node names its agent; nothing would ask `{agent}`."));
    }
    if let Some(agent) = named("requiresWorkspaceAgent") {
        return Some(format!(
            "/metadata/requiresWorkspaceAgent: agents come from packs here, and `{agent}` from none."
        ));
    }
    let pack = named("requiresInstalledPack")?;
    let installed = host.agent_registry().registry().cards().any(|(_, card)| card.pack_name == pack);
    (!installed).then(|| format!("/metadata/requiresInstalledPack: the pack `{pack}` is not installed."))
}

/// Registers every file of the folders; the first that cannot be registered stops it. In conformance mode a fixture
/// this host cannot run is left out instead: the discovery document lists exactly those it can.
pub(crate) async fn register_folders(
    host: &Host,
    folders: &[std::path::PathBuf],
    entrance: &Entrance,
    output: &Output,
) -> Result<usize, Failure> {
    let mut count = 0;
    for folder in folders {
        let files = definition::files_in(folder).map_err(|error| {
            Failure::usage(format!("the workflows folder {} cannot be read: {error}", folder.display()))
        })?;
        let all = files.len();
        for (at, path) in files.into_iter().enumerate() {
            entrance.doing(format!("registering workflows, {at} of {all} in {}", folder.display()));
            match register_file(host, &path).await {
                Ok(_) => count += 1,
                Err(rejected) if host.options().test_hooks.is_some() => {
                    rejected.lines.iter().for_each(|line| output.note(format_args!("left out: {line}")));
                }
                Err(rejected) => return Err(rejected.into_failure()),
            }
        }
    }
    Ok(count)
}
