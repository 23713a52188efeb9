//! The real binary in a folder of its own, with an environment of its own.

pub mod audit;
pub mod canary;
pub mod crashes;
pub mod flow;
pub mod http;
pub mod model_server;
pub mod rng;
pub mod sse;
pub mod test_server;
pub mod web;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use http::PATIENCE;

/// How one command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// An address that nobody listens on, and nobody can be given: the system gives out no port below 1024.
pub const NOBODY: &str = "127.0.0.1:1";

/// Asks until there is an answer.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks until it is so.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}

/// A host for development in `folder`.
pub fn dev(folder: &Path) -> Running {
    Running::start(folder, &["dev"], &[])
}

/// What `run show` knows of a run.
pub fn show(folder: &Path, run: &str) -> Value {
    baton(folder, &["run", "show", run, "--json"]).expect(0).json()
}

/// Asks until the run looks like this: an answer is acknowledged before what follows from it has happened.
#[track_caller]
pub fn until(folder: &Path, run: &str, done: impl Fn(&Value) -> bool) -> Value {
    wait_for(&format!("{run} looks as the test wants"), || Some(show(folder, run)).filter(&done))
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command in `folder` to its end.
pub fn baton(folder: &Path, arguments: &[&str]) -> Ended {
    baton_with(folder, arguments, &[])
}

pub fn baton_with(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Ended {
    ended(command(folder).args(arguments).envs(env.iter().copied()).output().unwrap())
}

/// Runs a command that reads this from stdin.
pub fn baton_fed(folder: &Path, arguments: &[&str], env: &[(&str, &str)], text: &str) -> Ended {
    let mut command = command(folder);
    command.args(arguments).envs(env.iter().copied()).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    ended(child.wait_with_output().unwrap())
}

fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A host started by the test, stopped when it goes out of scope.
pub struct Running {
    child: Child,
    pub url: String,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts a host and waits until it says where it listens.
    pub fn start(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        Self::try_start(folder, arguments, env).unwrap_or_else(|told| panic!("the host did not start: {told}"))
    }

    /// The same for a host that may be unable to; what it says is then the error.
    pub fn try_start(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Result<Self, String> {
        let child = command(folder)
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .envs(env.iter().copied())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut running = Self { child, url: String::new(), stderr: None };
        let mut stderr = BufReader::new(running.child.stderr.take().unwrap());
        let mut told = String::new();
        loop {
            let mut line = String::new();
            if stderr.read_line(&mut line).unwrap() == 0 {
                return Err(told);
            }
            if let Some(url) = line.trim().strip_prefix("listening on ") {
                running.url = url.to_owned();
                // Keep reading, so that the host never writes into a full pipe.
                let mut all = std::mem::take(&mut told).into_bytes();
                running.stderr = Some(std::thread::spawn(move || {
                    stderr.read_to_end(&mut all).unwrap();
                    all
                }));
                return Ok(running);
            }
            told.push_str(&line);
        }
    }

    /// Ends it as a power cut would, and returns what it had said on stderr.
    pub fn kill(mut self) -> String {
        // It may have ended by itself.
        drop(self.child.kill());
        self.child.wait().unwrap();
        String::from_utf8(self.stderr.take().unwrap().join().unwrap()).unwrap()
    }

    /// Asks it to stop and returns its exit code.
    pub fn stop(mut self) -> i32 {
        self.ask_to_stop();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    pub fn ask_to_stop(&self) {
        self.signal("-TERM");
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Everything it said on stderr, once it has ended well within this time.
    pub fn told_until_it_ended(mut self, limit: Duration) -> String {
        assert_eq!(self.ends_within(limit), Some(0), "the host did not stop well");
        String::from_utf8(self.stderr.take().unwrap().join().unwrap()).unwrap()
    }

    /// Its exit code, if it ends by itself in time.
    pub fn ends_within(&mut self, limit: Duration) -> Option<i32> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status.code().unwrap_or(-1));
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
