//! A project in memory, and files of cases that are written and run.

use std::path::PathBuf;
use std::sync::Arc;

use baton_cases::{CaseReport, Project, Suite, SuiteReport, WorkflowFile, load, run_suite};
use serde_json::{Value, json};

/// A chain of nodes: id, type, config.
pub(crate) fn workflow(id: &str, variables: &Value, nodes: &[(&str, &str, Value)]) -> Value {
    let node = |(id, kind, config): &(&str, &str, Value)| json!({"id": id, "typeId": kind, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}});
    let edge = |pair: &[(&str, &str, Value)]| json!({"id": format!("{}-{}", pair[0].0, pair[1].0), "sourceNodeId": pair[0].0, "targetNodeId": pair[1].0});
    let variable = |(name, value): (&String, &Value)| {
        let kind = match value {
            Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            _ => "object",
        };
        json!({"name": name, "type": kind, "defaultValue": value})
    };
    let variables: Vec<Value> = variables.as_object().unwrap().iter().map(variable).collect();
    json!({
        "id": id, "name": id, "version": "1.0.0",
        "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
        "edges": nodes.windows(2).map(edge).collect::<Vec<_>>(),
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": variables,
        "metadata": {}, "settings": {}
    })
}

pub(crate) fn project(workflows: impl IntoIterator<Item = Value>) -> Project {
    let file = |definition: Value| WorkflowFile { path: PathBuf::from("workflows/x.json"), definition };
    Project { workflows: workflows.into_iter().map(file).collect(), ..Project::default() }
}

/// Writes a file of cases and runs them.
pub(crate) fn run(project: Project, text: &str) -> SuiteReport {
    run_with(project, text, &Suite { jobs: 2, ..Suite::default() })
}

pub(crate) fn run_with(project: Project, text: &str, suite: &Suite) -> SuiteReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.test.yaml");
    std::fs::write(&path, text).unwrap();
    run_suite(Arc::new(project), vec![load(&path)], suite)
}

/// All cases pass.
#[track_caller]
pub(crate) fn passes(project: Project, text: &str) -> SuiteReport {
    let report = run(project, text);
    assert!(report.is_good() && report.passed > 0, "{}", said(&report));
    report
}

/// The one case fails, and what is said about it holds each of these.
#[track_caller]
pub(crate) fn fails(project: Project, text: &str, says: &[&str]) {
    let report = run(project, text);
    let said = said(&report);
    assert_eq!(report.failed, 1, "{said}");
    for part in says {
        assert!(said.contains(part), "`{part}` is missing:\n{said}");
    }
}

pub(crate) fn said(report: &SuiteReport) -> String {
    let one = |case: &CaseReport| {
        let problems = case.problems.iter().map(|problem| {
            let (diff, hint) = (problem.diff.as_deref().unwrap_or(""), problem.hint.as_deref().unwrap_or(""));
            format!("  {}: {}\n{diff}\n  hint: {hint}\n", problem.about, problem.message)
        });
        let name = case.name.as_deref().unwrap_or("(file)");
        format!("{}:{} {name}\n{}", case.line, case.column, problems.collect::<String>())
    };
    report.cases.iter().filter(|case| !case.passed).map(one).collect()
}
