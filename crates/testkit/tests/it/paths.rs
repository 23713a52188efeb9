//! Files that our pages name are there.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_whole(path: &str) -> bool {
    path.starts_with("crates/") || path.starts_with("console/")
}

/// The paths in backticks that begin at a folder of ours.
fn named(page: &str) -> Vec<String> {
    quoted(page, is_whole)
}

/// Source files in backticks by the end of their path, where the page has said which folder it speaks of.
fn named_short(page: &str) -> Vec<String> {
    quoted(page, |text| !is_whole(text) && text.ends_with(".rs") && !text.starts_with('.'))
}

/// What is in backticks and fits; `a/{b,c}.rs` is two paths.
fn quoted(page: &str, fits: fn(&str) -> bool) -> Vec<String> {
    let quoted = page.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|text| fits(text) && !text.contains([' ', '*', '<', '…']));
    paths
        .flat_map(|path| match path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
            Some((head, (names, tail))) => names.split(',').map(|name| format!("{head}{name}{tail}")).collect(),
            None => vec![path.to_owned()],
        })
        .collect()
}

#[test]
fn every_file_that_a_page_names_is_there() {
    let mut missing = Vec::new();
    for page in PAGES {
        let named = named(&fs::read_to_string(root().join(page)).unwrap());
        assert!(page != "ARCHITECTURE.md" || named.len() > 50, "{page} names {} files", named.len());
        missing
            .extend(named.into_iter().filter(|path| !root().join(path).exists()).map(|path| format!("{page}: {path}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_source_file_that_a_page_names_in_short_is_there() {
    let (mut all, mut folders) = (Vec::new(), vec![root().join("crates"), root().join("bench")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false => all.push(entry),
            }
        }
    }
    for page in PAGES {
        let named = named_short(&fs::read_to_string(root().join(page)).unwrap());
        let missing: Vec<_> =
            named.into_iter().filter(|path| !all.iter().any(|file| file.ends_with(Path::new(path)))).collect();
        assert!(missing.is_empty(), "{page}: {missing:#?}");
    }
}

#[test]
fn names_in_braces_are_each_a_path() {
    assert_eq!(
        named("see `crates/a/{b,c}.rs`, `crates/d` and `other`"),
        ["crates/a/b.rs", "crates/a/c.rs", "crates/d"]
    );
}
