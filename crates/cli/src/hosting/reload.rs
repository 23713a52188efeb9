//! Hot reload for `dev`: looks at the workflow folders once a second and registers what is new or changed, and reads packs
//! and prompts again when they change. What cannot be used is a warning, told once per change; what ran before keeps
//! running.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use baton_runtime::{AgentRegistry, Host};

use super::{agents, workflows};
use crate::config::Config;
use crate::definition;
use crate::output::Output;

const INTERVAL: Duration = Duration::from_secs(1);

/// How many files of packs are looked at.
const MOST_FILES: usize = 10_000;

/// What tells one state of a file from another.
type Stamp = (Option<SystemTime>, u64);

pub(crate) struct Reloader {
    folders: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, Stamp>,
    /// Where packs and prompts are read from, and what was there.
    sources: Option<(Config, BTreeMap<PathBuf, Stamp>)>,
}

impl Reloader {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, seen: BTreeMap::new(), sources: None }
    }

    /// Also reads packs and prompts again when they change.
    pub(crate) fn with_packs(self, config: &Config) -> Self {
        let seen = pack_files(config);
        Self { sources: Some((config.clone(), seen)), ..self }
    }

    async fn packs(&mut self, host: &Host, output: &Output) {
        let Some((config, seen)) = &mut self.sources else { return };
        let now = pack_files(config);
        if *seen == now {
            return;
        }
        *seen = now;
        match agents::reread(config, host) {
            Ok(registry) => {
                for problem in registry.problems() {
                    output.note(format_args!("warning: part of a pack cannot be used: {problem}"));
                }
                match host.replace_agents(AgentRegistry::of(Arc::new(registry))).await {
                    Ok(()) => output.note("packs changed, and were read again"),
                    Err(error) => output.note(format_args!("warning: packs changed, but: {error}")),
                }
            }
            Err(failure) => {
                let message = failure.message().unwrap_or("they cannot be read");
                output.note(format_args!("warning: packs changed, but {message}"));
            }
        }
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
            self.packs(host, output).await;
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

/// Everything in the folders of packs and prompts.
fn pack_files(config: &Config) -> BTreeMap<PathBuf, Stamp> {
    let mut left: Vec<PathBuf> = config.packs.iter().chain(&config.prompts).cloned().collect();
    let mut found = BTreeMap::new();
    while let Some(path) = left.pop() {
        if found.len() >= MOST_FILES {
            break;
        }
        match std::fs::read_dir(&path) {
            Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => found.extend(stamp(&path).map(|stamp| (path, stamp))),
        }
    }
    found
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
