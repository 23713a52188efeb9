//! Processes under measurement: started, found, watched and ended.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::KEY;
use crate::http::Connection;

/// A process that has not announced itself or become ready by then is stuck.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const READY_POLL: Duration = Duration::from_micros(500);
/// What is kept of a process's last words.
const TAIL_LINES: usize = 20;

/// A child process that serves HTTP on loopback. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// From `spawn` to the first 200 on `/readiness`.
    pub(crate) ready_after: Duration,
}

/// How to start `baton`.
#[derive(Clone)]
pub(crate) struct Baton {
    pub(crate) binary: PathBuf,
}

impl Baton {
    /// Starts a server over `data` and waits until it is ready.
    pub(crate) async fn start(&self, data: &Path) -> Result<Server> {
        self.start_with(data, &[]).await
    }

    /// Starts a host that shares a database with others. What is its own is in `data`.
    pub(crate) async fn start_on(&self, data: &Path, database: &str, lease: Duration) -> Result<Server> {
        let lease = lease.as_millis().to_string();
        self.start_with(data, &[("BATON_DATABASE_URL", database), ("BATON_DATABASE_LEASE_MS", &lease)]).await
    }

    /// Starts a server with settings of its own.
    pub(crate) async fn start_with(&self, data: &Path, settings: &[(&str, &str)]) -> Result<Server> {
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        // Settings of the shell this runs in must not change what is measured.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATON_")) {
            command.env_remove(name);
        }
        command.env("BATON_API_KEYS", format!("{KEY}:bench")).stdin(Stdio::null());
        command.envs(settings.iter().copied());
        Server::spawn(command, Some("/readiness")).await
    }
}

impl Server {
    /// Starts this program's own empty handler in a process of its own.
    pub(crate) async fn empty() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("empty-server").stdin(Stdio::piped());
        Self::spawn(command, None).await
    }

    async fn spawn(mut command: Command, readiness: Option<&str>) -> Result<Self> {
        let spawned_at = Instant::now();
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let output = child.stderr.take().context("no standard error")?;
        let tail = Arc::new(Mutex::new(VecDeque::with_capacity(TAIL_LINES)));
        let (announce, announced) = oneshot::channel();
        tokio::spawn(watch(output, announce, Arc::clone(&tail)));
        let last_words = || tail.lock().map(|lines| Vec::from(lines.clone()).join("\n")).unwrap_or_default();
        let address = match timeout(START_LIMIT, announced).await {
            Ok(Ok(address)) => address,
            Ok(Err(_)) => bail!("{program} ended before it announced an address:\n{}", last_words()),
            Err(_) => bail!("{program} did not announce an address in {START_LIMIT:?}:\n{}", last_words()),
        };
        if let Some(path) = readiness {
            timeout(START_LIMIT, wait_until_ready(address, path))
                .await
                .with_context(|| format!("{program} is not ready after {START_LIMIT:?}:\n{}", last_words()))?;
        }
        Ok(Self { child, address, ready_after: spawned_at.elapsed() })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn connect(&self) -> Result<Connection> {
        Connection::open(self.address, KEY).await
    }

    /// Ends the process the hard way (SIGKILL) and waits until it is gone.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }

    /// Asks the process to end (SIGTERM) and waits until it has: its files are then as small as it leaves them.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = self.child.id().context("the server has ended")?;
        let told = Command::new("kill").arg(pid.to_string()).status().await.context("cannot run kill")?;
        ensure!(told.success(), "kill {pid} failed");
        let ended = timeout(STOP_LIMIT, self.child.wait()).await;
        ended.with_context(|| format!("the server did not stop in {STOP_LIMIT:?}"))??;
        Ok(())
    }

    /// Resident memory of the process in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let pid = self.child.id().context("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("resident memory needs /proc")?;
        parse_resident(&status).context("no VmRSS in /proc status")
    }
}

/// Follows standard error to its end: finds the announced address and keeps the last lines for error messages. The
/// pipe must be drained even when nobody is interested, or the server would block on it.
async fn watch(output: ChildStderr, announce: oneshot::Sender<SocketAddr>, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut announce = Some(announce);
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(address) = announced_address(&line)
            && let Some(announce) = announce.take()
        {
            // The other side may have given up; the pipe is drained all the same.
            let _ = announce.send(address);
        }
        if let Ok(mut tail) = tail.lock() {
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(line);
        }
    }
}

async fn wait_until_ready(address: SocketAddr, path: &str) {
    loop {
        if let Ok(mut connection) = Connection::open(address, KEY).await
            && let Ok(response) = connection.get(path).await
            && response.status == 200
        {
            return;
        }
        sleep(READY_POLL).await;
    }
}

fn announced_address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://127.0.0.1:")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    Some(SocketAddr::from(([127, 0, 0, 1], digits.parse().ok().filter(|port| *port != 0)?)))
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_inside_a_log_line() {
        let expected = SocketAddr::from(([127, 0, 0, 1], 4711));
        for line in ["listening on http://127.0.0.1:4711", "INFO url=\"http://127.0.0.1:4711/v1\" ready"] {
            assert_eq!(announced_address(line), Some(expected), "{line}");
        }
        assert_eq!(announced_address("listening on http://127.0.0.1:0"), None);
        assert_eq!(announced_address("nothing here"), None);
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(parse_resident("Name:\tx\nVmRSS:\t   12 kB\n"), Some(12 * 1024));
        assert_eq!(parse_resident("Name:\tx\n"), None);
    }
}
