//! A text that must show nowhere.

use std::path::Path;

/// The files below a folder that hold the canary.
pub fn files_with(canary: &str, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(canary, &path));
        } else if std::fs::read(&path).unwrap().windows(canary.len()).any(|window| window == canary.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}
