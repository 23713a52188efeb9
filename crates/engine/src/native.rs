//! Tools that live in the process: memory and workspace. A call of one is a question to the shell like that of a node,
//! and what it writes becomes durable together with its record, so it happens exactly once.

use baton_model::workspace::path_problem;
use baton_model::{Frozen, MAX_TAG_CHARS, ToolOutcome, id};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::consult::{Found, NewEntry, Request, Sight};
use crate::invocation::Call;
use crate::state::RunState;

const MOST_ENTRIES: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Put {
    content: String,
    #[serde(default)]
    tags: Vec<String>,
    ttl_seconds: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    tag: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
    content_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    prefix: Option<String>,
}

/// What a call asks the shell. An error is what is wrong with its arguments.
pub(crate) fn request(state: &RunState, node: usize, call: &Call) -> Result<Request, String> {
    let arguments = &call.asked.arguments;
    // A turn sees what it was frozen with, also through its tools: what it writes shows in the next one.
    let (sight, version) = match state.nodes[node].frozen {
        Some(Frozen { versions, .. }) => (Sight { version: versions.memory, own: 0 }, versions.workspace),
        None => (state.sight, state.workspace),
    };
    Ok(match call.asked.name.as_str() {
        "openwop:memory.put" => {
            let put: Put = read(arguments)?;
            let fits = |tag: &String| (1..=MAX_TAG_CHARS).contains(&tag.chars().count());
            if !put.tags.iter().all(fits) {
                return Err(format!("a tag has 1 to {MAX_TAG_CHARS} characters"));
            }
            let ttl_ms = match put.ttl_seconds {
                None => None,
                Some(seconds) if (0.001..=3e8).contains(&seconds) => Some((seconds * 1000.0).round() as u64),
                Some(_) => return Err("`ttlSeconds` is a number, at least 0.001".to_owned()),
            };
            Request::Remember(NewEntry {
                id: format!("{}-{}", id::memory_id(&state.run, &state.plan.nodes[node].id, 0, 0), call.id),
                content: state.without_sensitive(&put.content),
                tags: put.tags,
                ttl_ms,
            })
        }
        "openwop:memory.get" => Request::Recall { id: read::<Get>(arguments)?.id, sight },
        "openwop:memory.list" => {
            let list: List = read(arguments)?;
            let limit = list.limit.filter(|limit| *limit > 0).unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES);
            Request::Recollect { tag: list.tag, limit: Some(limit), sight }
        }
        "openwop:workspace.get" => Request::ReadFile { path: read::<Read>(arguments)?.path, version },
        "openwop:workspace.list" => Request::ListFiles { prefix: read::<Files>(arguments)?.prefix, version },
        "openwop:workspace.put" => {
            let write: Write = read(arguments)?;
            if let Some(problem) = path_problem(&write.path) {
                return Err(problem.to_string());
            }
            Request::WriteFile {
                path: write.path,
                content: state.without_sensitive(&write.content),
                content_type: write.content_type,
            }
        }
        unknown => return Err(format!("there is no tool `{unknown}` in this host")),
    })
}

/// What the call comes back with.
pub(crate) fn outcome(found: &Found) -> ToolOutcome {
    ToolOutcome::ok(match found {
        Found::Entry(entry) => json!({"entry": entry}),
        Found::Entries(entries) => json!({"entries": entries}),
        Found::Forgotten(gone) => json!({"deleted": gone}),
        Found::File(file) => json!({"file": file}),
        Found::Written(meta) => json!({"file": meta}),
        Found::Files(files) => json!({"files": files}),
        Found::Turn(_) | Found::Variables(_) | Found::Brief(_) => Value::Null,
    })
}

fn read<T: serde::de::DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())
}
