//! Files that our pages name are there.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The paths in backticks that begin at a folder of ours; `a/{b,c}.rs` is two of them.
fn named(page: &str) -> Vec<String> {
    let quoted = page.split('`').skip(1).step_by(2);
    let ours = quoted.filter(|text| text.starts_with("crates/") || text.starts_with("console/"));
    let paths = ours.filter(|text| !text.contains([' ', '*', '<', '…']));
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
fn names_in_braces_are_each_a_path() {
    assert_eq!(
        named("see `crates/a/{b,c}.rs`, `crates/d` and `other`"),
        ["crates/a/b.rs", "crates/a/c.rs", "crates/d"]
    );
}
