//! The programs of `[workers.NAME]`: `dev` starts a runner for each beside the host, watches it, and starts it again when it
//! ends or its files change. Their runners are in `GET /v1/host/baton/runners`, like all others.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use tokio::process::{Child, Command};

use crate::config::WorkerSection;
use crate::output::Output;

const INTERVAL: Duration = Duration::from_secs(1);
/// How long a program that ends at once is left alone, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// One that was up for so long did not end at once.
const STEADY: Duration = Duration::from_secs(30);
/// How long calls in progress may take when a program is started anew.
const GRACE: &str = "5s";
const STOPPING: Duration = Duration::from_secs(12);
/// How many files of a watched folder are looked at.
const MOST_FILES: usize = 5_000;

pub(crate) struct Workers(Vec<Worker>);

struct Worker {
    name: String,
    section: WorkerSection,
    url: String,
    key: String,
    child: Option<Child>,
    started: Instant,
    pause: Duration,
    again_at: Instant,
    stamps: BTreeMap<PathBuf, Option<SystemTime>>,
}

impl Workers {
    pub(crate) fn new(sections: &BTreeMap<String, WorkerSection>, url: &str, key: &str) -> Self {
        let now = Instant::now();
        let worker = |(name, section): (&String, &WorkerSection)| Worker {
            name: name.clone(),
            stamps: stamps(section),
            section: section.clone(),
            url: url.to_owned(),
            key: key.to_owned(),
            child: None,
            started: now,
            pause: FIRST_PAUSE,
            again_at: now,
        };
        Self(sections.iter().map(worker).collect())
    }

    pub(crate) async fn keep_going(&mut self, output: &Output) -> Infallible {
        // Side by side: one that takes its time to stop holds up none of the others.
        join_all(self.0.iter_mut().map(|worker| worker.keep_going(output))).await;
        // There are none.
        std::future::pending().await
    }

    /// Asks all to end, and waits for them within reason.
    pub(crate) async fn stop(&mut self) {
        self.0.iter().for_each(Worker::ask_to_stop);
        for worker in &mut self.0 {
            worker.ended().await;
        }
    }
}

impl Worker {
    async fn keep_going(&mut self, output: &Output) -> Infallible {
        loop {
            self.look(output).await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn look(&mut self, output: &Output) {
        let now = stamps(&self.section);
        if now != self.stamps {
            self.stamps = now;
            self.pause = FIRST_PAUSE;
            self.again_at = Instant::now();
            if self.child.is_some() {
                output.note(format_args!("{} changed; starting it again", self.name));
                self.ask_to_stop();
                self.ended().await;
            }
        }
        if let Some(child) = &mut self.child
            && let Ok(Some(status)) = child.try_wait()
        {
            self.child = None;
            if self.started.elapsed() >= STEADY {
                self.pause = FIRST_PAUSE;
            }
            let seconds = self.pause.as_secs();
            output.note(format_args!("{} ended with {status}; starting it again in {seconds} s", self.name));
            self.again_at = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        if self.child.is_none() && Instant::now() >= self.again_at {
            match self.start() {
                Ok(child) => {
                    self.child = Some(child);
                    self.started = Instant::now();
                }
                Err(error) => {
                    output.note(format_args!("{} cannot be started: {error}", self.name));
                    self.again_at = Instant::now() + self.pause;
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// `baton runner` does the work: it has the environment that the program is to have, and a key to make a token with.
    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        // It ends with this process, however that ends: the pipe to it is closed then.
        command.args(["runner", "--while-stdin", "--url", &self.url, "--name", &self.name, "--grace", GRACE]);
        if let Some(concurrency) = self.section.concurrency {
            command.args(["--concurrency", &concurrency.to_string()]);
        }
        command.arg("--").args(&self.section.command);
        command.env("BATON_API_KEY", &self.key).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
        command.spawn()
    }

    fn ask_to_stop(&self) {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    async fn ended(&mut self) {
        if let Some(mut child) = self.child.take()
            && tokio::time::timeout(STOPPING, child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
    }
}

/// When the files of a worker were changed last: those that its command names, and what it says to watch.
fn stamps(section: &WorkerSection) -> BTreeMap<PathBuf, Option<SystemTime>> {
    let mut found = BTreeMap::new();
    let named = section.command.iter().skip(1).map(PathBuf::from).filter(|path| path.is_file());
    let mut left: Vec<PathBuf> = named.chain(section.watch.iter().cloned()).collect();
    while let Some(path) = left.pop() {
        if found.len() >= MOST_FILES {
            break;
        }
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()).filter(|path| !is_hidden(path)));
        } else {
            found.insert(path.clone(), std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok());
        }
    }
    found
}

/// Caches and the like, which programs write themselves.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with('.') || matches!(name, "__pycache__" | "node_modules" | "target")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_worker_is_made_of_are_seen_and_caches_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let (file, source) = (dir.path().join("worker.py"), dir.path().join("src"));
        std::fs::create_dir_all(source.join("__pycache__")).unwrap();
        std::fs::write(&file, "").unwrap();
        std::fs::write(source.join("a.py"), "").unwrap();
        std::fs::write(source.join("__pycache__/a.pyc"), "").unwrap();
        let command = vec!["python".to_owned(), file.display().to_string(), "--flag".to_owned()];
        let section = WorkerSection { command, watch: vec![source.clone()], concurrency: None };
        let seen = stamps(&section);
        assert_eq!(seen.keys().collect::<Vec<_>>(), [&source.join("a.py"), &file]);
        std::fs::write(source.join("b.py"), "").unwrap();
        assert_ne!(stamps(&section), seen);
    }
}
