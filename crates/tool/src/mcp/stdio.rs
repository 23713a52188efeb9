//! A server that is a child process and speaks on its standard streams.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use baton_model::{Secret, redact};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// What a program needs to run at all. Everything else in the host's environment stays there: it holds keys.
const INHERITED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL", "TERM"];
/// How much of one line of its complaints is logged.
const LOGGED_BYTES: u64 = 4 * 1024;

/// A running server. It dies with this value, and so does everything it started.
pub(super) struct Child {
    process: tokio::process::Child,
    /// Its group, as long as somebody may be in it.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    complaints: Option<JoinHandle<()>>,
}

impl Child {
    pub(super) fn start(
        name: &str,
        command: &str,
        args: &[String],
        env: BTreeMap<String, String>,
        secrets: Vec<Secret>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let inherited = INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (*name, value)));
        let mut builder = Command::new(command);
        builder
            .args(args)
            .env_clear()
            .envs(inherited)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A group of its own: what it starts can be ended with it, and a signal to the host's terminal is not its.
        #[cfg(unix)]
        builder.process_group(0);
        let mut process = builder.spawn()?;
        let missing = || io::Error::other("a standard stream is missing");
        let stdout = process.stdout.take().ok_or_else(missing)?;
        let stdin = process.stdin.take().ok_or_else(missing)?;
        #[cfg(unix)]
        let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        let complaints = process.stderr.take().map(|stderr| tokio::spawn(log(name.to_owned(), stderr, secrets)));
        let child = Self {
            process,
            #[cfg(unix)]
            group,
            complaints,
        };
        Ok((child, stdout, stdin))
    }

    /// Resolves when it has ended, and ends what it left behind: somebody who still holds its streams would make it look
    /// alive.
    pub(super) async fn ended(&mut self) {
        let _ = self.process.wait().await;
        self.end_group();
    }

    /// Gives it some time to end by itself, now that its input is closed.
    pub(super) async fn end(mut self, grace: Duration) {
        // Whether it ended in time or not: dropping it ends what is left.
        let _ = tokio::time::timeout(grace, self.ended()).await;
    }

    /// Once only: when nobody is left in the group, its number may become somebody else's.
    fn end_group(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.take() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end_group();
        let _ = self.process.start_kill();
        if let Some(task) = self.complaints.take() {
            task.abort();
        }
    }
}

/// Passes on what a server writes to its standard error, for whoever wonders why it does not work.
async fn log(server: String, stderr: ChildStderr, secrets: Vec<Secret>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LOGGED_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = redact(String::from_utf8_lossy(&line).trim_end(), &secrets);
                tracing::debug!(server, "{text}");
            }
        }
    }
}
