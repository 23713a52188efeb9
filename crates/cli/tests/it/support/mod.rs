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

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
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

/// No command of a test takes this long, however busy the machine is.
const LONGEST_COMMAND: Duration = Duration::from_secs(300);

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

/// The binary under test: the one that was built with the tests, or the one that `BATON_TEST_BINARY` names.
fn binary() -> OsString {
    std::env::var_os("BATON_TEST_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_baton").into())
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command in `folder` to its end.
pub fn baton(folder: &Path, arguments: &[&str]) -> Ended {
    baton_with(folder, arguments, &[])
}

pub fn baton_with(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Ended {
    let mut command = command(folder);
    command.args(arguments).envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    in_time(command.spawn().unwrap())
}

/// Runs a command that reads this from stdin.
pub fn baton_fed(folder: &Path, arguments: &[&str], env: &[(&str, &str)], text: &str) -> Ended {
    let mut command = command(folder);
    command.args(arguments).envs(env.iter().copied()).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    in_time(child)
}

/// What a command that ends by itself came to. One that does not, such as a host that should have refused to start, is
/// killed, so that the test fails and does not hang.
fn in_time(child: Child) -> Ended {
    let (ended_now, waits) = mpsc::sync_channel::<()>(1);
    let pid = child.id().to_string();
    let killer = std::thread::spawn(move || {
        if waits.recv_timeout(LONGEST_COMMAND) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended_now);
    killer.join().unwrap();
    ended(output)
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
        Self::spawned(command(folder), arguments, env)
    }

    /// A host that can open only so many files.
    pub fn start_with_files(folder: &Path, files: u32, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_after(folder, &format!("ulimit -n {files}"), arguments, env)
    }

    /// A host that a shell starts after this.
    pub fn start_after(folder: &Path, setup: &str, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.current_dir(folder).env_clear().stdin(Stdio::null());
        let script = format!("{setup} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script]).arg(binary());
        Self::spawned(shell, arguments, env).unwrap_or_else(|told| panic!("the host did not start: {told}"))
    }

    fn spawned(mut command: Command, arguments: &[&str], env: &[(&str, &str)]) -> Result<Self, String> {
        let child = command
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

    /// Starts a host and kills it so soon that it may not have come up.
    pub fn stillborn(folder: &Path, arguments: &[&str], env: &[(&str, &str)], after: Duration) {
        let mut command = command(folder);
        command.args(arguments).args(["--listen", "127.0.0.1:0"]).envs(env.iter().copied());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        drop(child.kill());
        child.wait().unwrap();
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
