//! A file of cases becomes cases. What is wrong with one of them takes nobody else along.
//!
//! ```yaml
//! workflow: triage            # beside `cases`: what all of them share, unless they say otherwise
//! cases:
//!   - name: an urgent ticket
//!     inputs: { text: it burns }
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_model::Position;
use serde_json::{Map, Value};

use crate::case::{Case, read_case};
use crate::file::{Document, FileProblem, Place};

/// A larger file was not written by a person.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// What cases of a file may share.
const SHARED: [&str; 10] = [
    "agent",
    "workflow",
    "inputs",
    "configurable",
    "model",
    "recording",
    "tools",
    "prices",
    "startsAt",
    "timeoutSeconds",
];

/// The cases of a file that can be run, and why the others cannot.
#[derive(Debug, Default)]
pub struct Loaded {
    pub path: PathBuf,
    pub cases: Vec<Case>,
    pub problems: Vec<FileProblem>,
}

pub fn load(path: &Path) -> Loaded {
    let mut loaded = Loaded { path: path.to_owned(), ..Loaded::default() };
    if let Err(problem) = load_into(path, &mut loaded) {
        loaded.problems.push(problem);
    }
    loaded
}

fn load_into(path: &Path, loaded: &mut Loaded) -> Result<(), FileProblem> {
    let start = Position { line: 1, column: 1 };
    let too_large = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_BYTES);
    if too_large {
        return Err(FileProblem::at(start, format!("the file has more than {MAX_BYTES} bytes")).hint("split it"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| FileProblem::at(start, error.to_string()))?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let document = if is_json { Document::json(&text)? } else { Document::yaml(&text)? };
    let Value::Object(file) = &document.value else {
        return Err(FileProblem::at(start, "the file is not a mapping").hint("begin with `cases:` and a list of cases"));
    };
    let Some(Value::Array(cases)) = file.get("cases") else {
        let problem = FileProblem::at(document.place("/cases"), "`cases` must be a list");
        return Err(problem.hint("write `cases:` and below it a case per `- name: …`"));
    };
    if let Some(key) = file.keys().find(|key| *key != "cases" && !SHARED.contains(&key.as_str())) {
        let problem = FileProblem::at(document.place(&format!("/{key}")), format!("`{key}` is no setting of a file"));
        return Err(problem.hint(format!("beside `cases` there may be: {}", SHARED.join(", "))));
    }
    if cases.is_empty() {
        return Err(FileProblem::at(document.place("/cases"), "the list of cases is empty"));
    }
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut names: BTreeMap<String, Position> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let place = Place { document: &document, pointer: format!("/cases/{number}") };
        let Value::Object(own) = case else {
            loaded
                .problems
                .push(place.problem("", "a case is a mapping").hint("write `- name: …` and the rest below it"));
            continue;
        };
        match read_case(&merged(file, own), &place, path, &folder) {
            Ok(case) => {
                if let Some(first) = names.get(&case.name) {
                    let message = format!("there is a case `{}` already, in line {}", case.name, first.line);
                    loaded
                        .problems
                        .push(place.problem("/name", message).hint("give each case of a file a name of its own"));
                    continue;
                }
                names.insert(case.name.clone(), case.position);
                loaded.cases.push(case);
            }
            Err(problem) => loaded.problems.push(problem),
        }
    }
    Ok(())
}

/// A case with what its file says for all of them. Its own tools stand beside the shared ones; everything else replaces.
fn merged(file: &Map<String, Value>, own: &Map<String, Value>) -> Map<String, Value> {
    let shared = file.iter().filter(|(key, _)| *key != "cases");
    let mut case: Map<String, Value> = shared.map(|(key, value)| (key.clone(), value.clone())).collect();
    // What is started is one thing.
    if own.contains_key("workflow") || own.contains_key("agent") {
        case.remove("workflow");
        case.remove("agent");
    }
    for (key, value) in own {
        match (case.get_mut(key), value) {
            (Some(Value::Object(shared)), Value::Object(own)) if key == "tools" => {
                shared.extend(own.iter().map(|(id, tool)| (id.clone(), tool.clone())));
            }
            _ => {
                case.insert(key.clone(), value.clone());
            }
        }
    }
    case
}
