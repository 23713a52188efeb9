//! A server that is a child process and speaks on its standard streams.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use baton_model::Secret;
use tokio::io::BufReader;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::stderr_tail::StderrTail;

/// What a program needs to run at all. Everything else in the host's environment stays there: it holds keys.
const INHERITED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL", "TERM"];
/// How long a process may take to end by itself once its input is closed.
const CLOSING: Duration = Duration::from_secs(2);
/// How long it may take once it was asked to end by SIGTERM. Then it is killed, with everything in its group.
const TERMINATING: Duration = Duration::from_secs(2);
/// How long the rest of its standard error is waited for. Somebody who left its group may hold the other end open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running server. It dies with this value, and so does everything it started.
pub(super) struct Child {
    process: tokio::process::Child,
    /// Its group, as long as somebody may be in it.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    stderr_tail: Option<AbortOnDropHandle<()>>,
}

impl Child {
    pub(super) fn start(
        name: &str,
        command: &str,
        args: &[String],
        env: BTreeMap<String, String>,
        secrets: Vec<Secret>,
        stderr_tail: StderrTail,
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
        let stderr_tail = process.stderr.take().map(|stderr| {
            let listening = stderr_tail.listen(name.to_owned(), BufReader::new(stderr), secrets);
            AbortOnDropHandle::new(tokio::spawn(listening))
        });
        let child = Self {
            process,
            #[cfg(unix)]
            group,
            stderr_tail,
        };
        Ok((child, stdout, stdin))
    }

    /// Resolves when it has ended, and ends what it left behind: somebody who still holds its streams would make it look
    /// alive.
    pub(super) async fn ended(&mut self) {
        let _ = self.process.wait().await;
        self.end_group();
    }

    /// Ends it: waits a while for it to end by itself, now that its input is closed, then asks, then kills. Says how it
    /// ended, unless it had to be killed; what it still had to say on its standard error has been read.
    pub(super) async fn end(mut self) -> Option<ExitStatus> {
        let mut status = timeout(CLOSING, self.process.wait()).await.ok().and_then(Result::ok);
        if status.is_none() {
            self.signal(rustix::process::Signal::TERM);
            status = timeout(TERMINATING, self.process.wait()).await.ok().and_then(Result::ok);
        }
        self.end_group();
        if let Some(stderr_tail) = self.stderr_tail.take() {
            let _ = timeout(LAST_WORDS, stderr_tail).await;
        }
        // What is still there is killed with this value.
        status
    }

    fn signal(&self, signal: rustix::process::Signal) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Once only: when nobody is left in the group, its number may become somebody else's.
    fn end_group(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        #[cfg(unix)]
        {
            self.group = None;
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end_group();
        let _ = self.process.start_kill();
    }
}

/// How a process ended, in words.
pub(super) fn in_words(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => "an unknown status".to_owned(),
    }
}
