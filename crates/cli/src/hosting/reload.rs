//! Hot reload for `dev`: looks at the workflow folders once a second and registers what is new or changed. A file that
//! does not register is a warning, told once per change; what ran before keeps running.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use baton_runtime::Host;

use super::workflows;
use crate::definition;
use crate::output::Output;

const INTERVAL: Duration = Duration::from_secs(1);

/// What tells one state of a file from another.
type Stamp = (Option<SystemTime>, u64);

pub(crate) struct Reloader {
    folders: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, Stamp>,
}

impl Reloader {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, seen: BTreeMap::new() }
    }

    /// Registers what changed since the last pass.
    pub(crate) async fn pass(&mut self, host: &Host, output: &Output) {
        for path in self.changed() {
            match workflows::register_file(host, &path).await {
                Ok(id) => output.note(format_args!("registered {id} from {}", path.display())),
                Err(rejected) => {
                    for line in rejected.lines {
                        output.note(format_args!("warning: {line}"));
                    }
                }
            }
        }
    }

    pub(crate) async fn keep_going(mut self, host: &Host, output: &Output) -> Infallible {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.pass(host, output).await;
        }
    }

    /// Files that are new or look different. A folder that is not there yet is simply empty.
    fn changed(&mut self) -> Vec<PathBuf> {
        let files = self.folders.iter().flat_map(|folder| definition::files_in(folder).unwrap_or_default());
        let mut changed = Vec::new();
        for path in files {
            let Some(stamp) = stamp(&path) else { continue };
            if self.seen.insert(path.clone(), stamp) != Some(stamp) {
                changed.push(path);
            }
        }
        changed
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("workflows");
        let mut reloader = Reloader::new(vec![folder.clone()]);
        assert!(reloader.changed().is_empty(), "no folder yet");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("a.json");
        std::fs::write(&file, "{}").unwrap();
        std::fs::write(folder.join("notes.txt"), "x").unwrap();
        assert_eq!(reloader.changed(), std::slice::from_ref(&file));
        assert!(reloader.changed().is_empty());
        std::fs::write(&file, "{ }").unwrap();
        assert_eq!(reloader.changed(), [file]);
    }
}
