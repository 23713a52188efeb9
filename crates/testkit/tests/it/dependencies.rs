//! Every dependency is used. One that nobody names still costs each build its time, and each reader a question.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::layering::{metadata, root};

/// Crate, dependency, and why it is there without being named in the sources.
const UNNAMED: &[(&str, &str, &str)] = &[];

/// Where a dependency of this kind may be named. Unit tests live in `src`, so dev dependencies may be named there too.
fn places(kind: Option<&str>) -> &'static [&'static str] {
    match kind {
        None => &["src"],
        Some("dev") => &["src", "tests", "benches", "examples"],
        Some(_) => &["build.rs"],
    }
}

fn collect(path: &Path, sources: &mut String) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| collect(entry, sources));
    } else if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            sources.push_str(line);
            sources.push('\n');
        }
    }
}

/// Whether the code names the crate: as the head of a path, or in a `use` of the crate itself.
fn names(sources: &str, dependency: &str) -> bool {
    let name = dependency.replace('-', "_");
    sources.match_indices(&name).any(|(at, _)| {
        let part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
        let (before, after) = (&sources[..at], &sources[at + name.len()..]);
        let after_use = before.ends_with("use ") && [";", " as "].iter().any(|end| after.starts_with(end));
        (after.starts_with("::") && !before.ends_with(part_of_a_word)) || after_use
    })
}

/// Each as `crate -> dependency`.
fn unused(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let crate_name = package["name"].as_str().unwrap();
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap();
            let mut sources = String::new();
            places(dependency["kind"].as_str()).iter().for_each(|place| collect(&folder.join(place), &mut sources));
            let excused = UNNAMED.iter().any(|(by, what, _)| (*by, *what) == (crate_name, name));
            // A crate may depend on itself, to switch on a feature for its own tests.
            if !excused && name != crate_name && !names(&sources, name) {
                found.push(format!("{crate_name} -> {name}"));
            }
        }
    }
    found
}

#[test]
fn every_dependency_of_a_crate_is_named_in_its_sources() {
    assert_eq!(unused(&metadata()), Vec::<String>::new(), "take it out of the manifest, or say why in UNNAMED");
}

#[test]
fn every_dependency_of_the_workspace_is_used_by_a_crate() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let used: BTreeSet<&str> = packages
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, section) = manifest.split_once("[workspace.dependencies]").unwrap();
    let declared = section.lines().take_while(|line| !line.starts_with('['));
    let declared: Vec<&str> = declared.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert!(declared.contains(&"serde"), "the list was not read");
    let unused: Vec<&&str> = declared.iter().filter(|name| !name.starts_with('#') && !used.contains(**name)).collect();
    assert!(unused.is_empty(), "take them out of Cargo.toml: {unused:?}");
}

#[test]
fn a_name_is_found_as_code_and_only_as_code() {
    assert!(names("use serde_json::Value;", "serde-json"));
    assert!(names("use bytes as raw;", "bytes"));
    assert!(!names("let bytes = 1;", "bytes"));
    assert!(!names("use my_bytes::Bytes;", "bytes"));
}
