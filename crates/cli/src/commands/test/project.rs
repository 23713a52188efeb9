//! The project that cases are about: the workflows of its folders, its packs, and what its configuration says of models.

use std::path::Path;

use baton_cases::file::FileProblem;
use baton_cases::{Loaded, Project, WorkflowFile};
use baton_model::{Position, locate};
use baton_tool::Aliases;

use crate::config::Config;
use crate::definition::{self, Source};
use crate::failure::Failure;
use crate::hosting::agents::options_of_cases;

/// A project, and what of it cannot be used.
pub(super) struct Checked {
    pub(super) project: Project,
    /// Workflows that are not valid: a failure each, whatever cases say.
    pub(super) files: Vec<Loaded>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn read(config: &Config) -> Result<Checked, Failure> {
    let (options, warnings) = options_of_cases(config)?;
    let mut project = Project {
        options,
        providers: config.sections.providers.keys().cloned().collect(),
        aliases: Aliases::default().with(config.sections.tool_aliases.clone()),
        prices: config.sections.prices.clone(),
        ..Project::default()
    };
    let mut files = Vec::new();
    for folder in &config.workflows {
        // A project of agents alone has no such folder.
        for path in definition::files_in(folder).unwrap_or_default() {
            read_workflow(&path, &mut project, &mut files);
        }
    }
    Ok(Checked { project, files, warnings })
}

fn read_workflow(path: &Path, project: &mut Project, files: &mut Vec<Loaded>) {
    let mut wrong =
        |problems: Vec<FileProblem>| files.push(Loaded { path: path.to_owned(), cases: Vec::new(), problems });
    let at = |position: Position, message: String| FileProblem { position, message, hint: None };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return wrong(vec![at(Position { line: 1, column: 1 }, error.to_string())]),
    };
    let definition = match serde_json::from_str(&text) {
        Ok(definition) => definition,
        Err(error) => {
            let position = Position { line: error.line().max(1), column: error.column().max(1) };
            return wrong(vec![at(position, format!("not JSON: {error}"))]);
        }
    };
    let problems = definition::problems(&definition, false);
    if problems.is_empty() {
        project.workflows.push(WorkflowFile { path: path.to_owned(), definition });
        return;
    }
    let source = Source { path: path.to_owned(), definition };
    let shown: Vec<FileProblem> = problems
        .iter()
        .map(|problem| {
            let pointer = if problem.pointer.is_empty() { "/" } else { &problem.pointer };
            at(locate(&text, &problem.pointer), format!("{pointer}: {}", problem.message))
        })
        .collect();
    let why = |problem: &FileProblem| {
        format!("{}:{}:{}: {}", path.display(), problem.position.line, problem.position.column, problem.message)
    };
    let id = source.id().unwrap_or_default();
    project.broken.extend(shown.iter().map(|problem| (id.to_owned(), why(problem))));
    wrong(shown);
}
