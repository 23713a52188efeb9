//! Which files hold cases: those that are named, and in folders whatever ends in `.test.yaml`, `.test.yml` or
//! `.test.json`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 3] = [".test.yaml", ".test.yml", ".test.json"];
/// Deeper is no folder of tests; a link that leads in a circle ends here.
const MAX_DEPTH: usize = 16;
/// More files are not read in one go.
const MAX_FILES: usize = 10_000;

/// Files in the order of their paths, and paths that lead nowhere.
#[derive(Debug, Default)]
pub struct Found {
    pub files: BTreeSet<PathBuf>,
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

pub fn discover(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        look(path, 0, &mut found);
    }
    found
}

fn look(path: &Path, depth: usize, found: &mut Found) {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return found.unreadable.push((path.to_owned(), error)),
    };
    if !metadata.is_dir() {
        // Whoever names a file means it, whatever it is called.
        if depth == 0 || is_case_file(path) {
            found.files.insert(path.to_owned());
        }
        return;
    }
    if depth >= MAX_DEPTH || found.files.len() >= MAX_FILES {
        let error = io::Error::other(format!("more than {MAX_DEPTH} levels or {MAX_FILES} files"));
        return found.unreadable.push((path.to_owned(), error));
    }
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| {
            let path = entry.path();
            if path.is_dir() || is_case_file(&path) {
                look(&path, depth + 1, found);
            }
        }),
        Err(error) => found.unreadable.push((path.to_owned(), error)),
    }
}

fn is_case_file(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| ENDINGS.iter().any(|end| name.ends_with(end)))
}
