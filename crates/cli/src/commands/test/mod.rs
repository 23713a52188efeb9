//! `baton test`: runs the cases of a project on hosts in memory. No host is needed, and nothing reaches a network.

mod junit;
mod project;
mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_cases::file::discover;
use baton_cases::{Suite, SuiteReport, load, run_suite};

use crate::config::{Layered, project_file};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of cases, or folders with *.test.yaml, *.test.yml and *.test.json
    #[arg(value_name = "PATH", default_value = "tests")]
    paths: Vec<PathBuf>,
    /// Only cases whose name or file contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Also write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Cases at the same time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: Option<u64>,
    /// Seconds that a case may take, unless it says so itself
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// TOML file with models, prices and packs [default: baton.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of *.json workflows; may be repeated [default: the configuration's, or workflows]
    #[arg(long, value_name = "DIR")]
    workflows: Vec<PathBuf>,
    /// Folder of agent packs [default: the configuration's]
    #[arg(long, value_name = "DIR")]
    packs: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let report = report(args, context)?;
    if let Some(path) = &args.junit {
        std::fs::write(path, junit::document(&report)).map_err(|error| Failure::unwritten(path, &error))?;
    }
    if context.output.is_json() {
        context.output.json(&report)?;
    } else {
        context.output.raw(&text::shown(&report))?;
    }
    Ok(if report.is_good() { Exit::Ok } else { Exit::Failed })
}

/// Runs the cases that are meant. An error says why there are none.
pub(crate) fn report(args: &Args, context: &Context) -> Result<SuiteReport, Failure> {
    let mut layered = Layered::defaults();
    if let Some(file) = args.config.clone().or_else(project_file) {
        layered.file(&file).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let mut config = layered.config().map_err(|error| Failure::usage(error.to_string()))?;
    config.packs = args.packs.clone().or(config.packs);
    if !args.workflows.is_empty() {
        config.workflows.clone_from(&args.workflows);
    } else if config.workflows.is_empty() {
        config.workflows = vec![PathBuf::from("workflows")];
    }
    let found = discover(&args.paths);
    if let Some((path, error)) = found.unreadable.first() {
        let failure = crate::input::unreadable(path, error);
        return Err(failure.hint("`baton new NAME` makes a project with a case; the guide has a page about tests"));
    }
    if found.files.is_empty() {
        let paths: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        let failure = Failure::new(Exit::NotFound, format!("there are no cases in {}", paths.join(", ")));
        return Err(failure.hint("files of cases end in .test.yaml, .test.yml or .test.json"));
    }
    let project::Checked { project, mut files, warnings } = project::read(&config)?;
    for warning in warnings {
        context.output.note(format_args!("warning: {warning}"));
    }
    files.extend(found.files.iter().map(|path| load(path)));
    let suite = Suite {
        jobs: args.jobs.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or_default(),
        timeout: Duration::from_secs(args.timeout),
        filter: args.filter.clone(),
    };
    let report = run_suite(Arc::new(project), files, &suite);
    if report.cases.is_empty() {
        let failure = Failure::new(Exit::NotFound, format!("none of {} cases is meant by --filter", report.skipped));
        return Err(failure.hint("a filter is a part of a case's name, or of its file's"));
    }
    Ok(report)
}
