use std::path::Path;

use clap::Parser as _;

use super::*;
use crate::commands::{Cli, Command};
use crate::config::Layered;
use crate::definition;

fn make(folder: &Path, worker: Worker) -> Result<(), Failure> {
    write(folder, &templates::files(&name(folder)?, worker))
}

#[test]
fn every_project_is_valid_and_passes_its_test_at_once() {
    for worker in [Worker::None, Worker::Python, Worker::Typescript] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("my-desk2");
        make(&folder, worker).unwrap();
        let at = |path: &str| folder.join(path).display().to_string();

        for path in definition::files_in(&folder.join("workflows")).unwrap() {
            let source = crate::definition::Source::read(&path).unwrap();
            assert_eq!(definition::problems(&source.definition, false), vec![], "{worker:?}");
        }
        let mut layered = Layered::defaults();
        layered.file(&folder.join("baton.toml")).unwrap();
        let config = layered.config().unwrap();
        assert_eq!(config.sections.models[&None].provider, "script");
        assert_eq!(config.sections.workers.contains_key("worker"), !matches!(worker, Worker::None));

        // As it would be typed, but with whole paths: the tests of this program share one current folder.
        let (tests, file, flows, packs) = (at("tests"), at("baton.toml"), at("workflows"), at("packs"));
        let typed = ["baton", "test", &tests, "--config", &file, "--workflows", &flows, "--packs", &packs];
        let cli = Cli::try_parse_from(typed).unwrap();
        let context = Context::new(cli.globals);
        let Command::Test(args) = cli.command else { panic!("not a test") };
        let report = crate::commands::test::report(&args, &context).unwrap();
        assert!(report.is_good(), "{worker:?}: {:#?}", report.cases);
        assert_eq!(report.passed, 3);

        let texts: Vec<String> = walk(&folder).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert!(
            texts
                .iter()
                .all(|text| !text.contains("{{name}}") && !text.contains("{{worker}}") && !text.contains("{{rows}}"))
        );
        let script = std::fs::read_to_string(at("model/script.json")).unwrap();
        assert!(baton_provider::Script::read(&script).is_ok());
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(walk(&entry)) } else { found.push(entry) }
    }
    found
}

#[test]
fn nothing_that_is_there_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("desk");
    std::fs::create_dir(&folder).unwrap();
    make(&folder, Worker::None).unwrap();
    let again = make(&folder, Worker::None).unwrap_err();
    assert_eq!(again.exit, Exit::Conflict);
    assert!(again.message().unwrap().contains("is not empty"));
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    assert!(make(&file, Worker::None).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_name_that_no_id_can_have_is_refused() {
    for bad in ["", "..", "/", "Desk", "2desk", "my desk", "desk_1", "../x/..", &"d".repeat(41)] {
        assert!(name(Path::new(bad)).is_err(), "{bad}");
    }
    assert_eq!(name(Path::new("a/b/desk-2/")).unwrap(), "desk-2");
}
