//! What the machine can do by itself, measured in the same run as what the host makes of it.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::load::{Budget, closed_loop};
use crate::report::{Report, clients as in_words};
use crate::server::Server;
use crate::stats::{Samples, millis};

const BLOCK: usize = 4096;
const SYNCS: usize = 200;
const CPU_TIME: Duration = Duration::from_millis(300);
const CPU_BATCH: u32 = 100_000;

/// How long one durable 4 KiB append takes on the disk that holds the data.
pub(crate) struct Disk {
    /// Far below the median on a machine that is busy otherwise, where bounds taken from the median are too generous.
    pub(crate) p10: Duration,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Disk {
    pub(crate) fn probe(folder: &Path) -> Result<Self> {
        let path = folder.join("fdatasync-probe");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).context("disk probe")?;
        let block = [0x5a; BLOCK];
        let mut durations = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let begun = Instant::now();
            file.write_all(&block)?;
            file.sync_data()?;
            durations.push(begun.elapsed());
        }
        std::fs::remove_file(&path)?;
        let samples = Samples::new(durations);
        Ok(Self { p10: samples.percentile(10), p50: samples.median(), p99: samples.percentile(99) })
    }

    /// The time a request that needs one commit may take: two and a half syncs and a millisecond of everything else.
    pub(crate) fn one_commit_bound(&self) -> f64 {
        2.5 * millis(self.p50) + 1.0
    }

    pub(crate) fn sync_millis(&self) -> f64 {
        millis(self.p50)
    }

    pub(crate) fn note(&self) -> String {
        format!("2.5 x fdatasync p50 of {:.2} ms + 1 ms (p10 {:.2} ms)", millis(self.p50), millis(self.p10))
    }
}

/// Requests per second of an empty handler, by number of clients.
pub(crate) struct Loopback(Vec<(usize, f64)>);

impl Loopback {
    pub(crate) async fn probe(clients: &[usize], time: Duration) -> Result<Self> {
        let server = Server::empty().await?;
        let mut rates = Vec::with_capacity(clients.len());
        for &clients in clients {
            let budget = Budget { time, count: usize::MAX };
            let load = closed_loop(server.address(), clients, budget, async |connection| {
                connection.get("/").await?.expect(200, "empty handler")?;
                Ok(())
            })
            .await?;
            rates.push((clients, load.rate()));
        }
        server.kill().await?;
        Ok(Self(rates))
    }

    pub(crate) fn requests_per_second(&self, clients: usize) -> f64 {
        self.0.iter().find(|(count, _)| *count == clients).map_or(0.0, |(_, rate)| *rate)
    }

    /// Half the empty handler's rate: an iteration of W1 is two requests.
    pub(crate) fn pairs_per_second(&self, clients: usize) -> f64 {
        self.requests_per_second(clients) / 2.0
    }
}

/// Millions of dependent integer steps one core makes per second: enough to tell a slow machine from a slow host.
fn cpu_score() -> f64 {
    let start = Instant::now();
    let mut state = black_box(0x9e37_79b9_u32);
    let mut steps = 0u64;
    while start.elapsed() < CPU_TIME {
        for round in 0..CPU_BATCH {
            state =
                state.rotate_right(7) ^ state.rotate_right(18) ^ state.wrapping_mul(0x85eb_ca6b).wrapping_add(round);
        }
        steps += u64::from(CPU_BATCH);
    }
    black_box(state);
    steps as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Probes everything, adds it to the report, and returns what workloads are held against.
pub(crate) async fn machine(report: &mut Report, folder: &Path, clients: &[usize], time: Duration) -> Result<Loopback> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let disk = Disk::probe(folder)?;
    let cpu = cpu_score();
    let loopback = Loopback::probe(clients, time).await?;
    let mut section = report.section("machine");
    section.show("cores", cores as f64, "").show("CPU, one core", cpu, "Msteps/s");
    section.show("fdatasync p10", millis(disk.p10), "ms");
    section.show("fdatasync p50", millis(disk.p50), "ms").show("fdatasync p99", millis(disk.p99), "ms");
    for (clients, rate) in &loopback.0 {
        section.show(format!("empty handler, {}", in_words(*clients)), *rate, "req/s");
    }
    Ok(loopback)
}
