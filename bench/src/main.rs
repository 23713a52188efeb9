//! `baton-bench`: measures a real `baton` process beside the limits of the machine it runs on.
//!
//! Absolute numbers say little about a machine nobody knows, so each figure is held against a bound that is computed
//! from probes of the same run: the fdatasync time of the data disk and the request rate of an empty handler. Exits
//! with 0 if every judged figure holds, 1 if one misses, 2 if measuring failed.

mod api;
mod definition;
mod empty;
mod footprint;
mod http;
mod load;
mod log;
mod long_log;
mod metric;
mod pg;
mod probe;
mod report;
mod server;
mod stats;
mod w1;
mod w10;
mod w2;
mod w3;
mod w4;
mod w5;
mod w6;
mod w7;
mod w8;
mod w9;
mod waiting;
mod worker;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::report::Report;
use crate::server::Baton;

/// The API key the generator gives the server and uses itself.
const KEY: &str = "bench-key";
/// No workload takes nearly as long as this unless something hangs.
const WORKLOAD_LIMIT: Duration = Duration::from_secs(300);

#[derive(Parser)]
#[command(name = "baton-bench", version, about = "Measure a baton server beside the limits of this machine")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Internal>,
    /// The server to measure [default: `baton` beside this program]
    #[arg(long, value_name = "FILE")]
    baton: Option<PathBuf>,
    /// Workloads to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "W,W")]
    only: Vec<Workload>,
    /// Small sizes and short times, to see whether everything works
    #[arg(long)]
    quick: bool,
    /// Where data directories go; the disk under it is the one measured
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    data_root: PathBuf,
    /// Write the report as JSON as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Internal {
    /// Serve an empty handler until standard input ends
    #[command(hide = true)]
    EmptyServer,
    /// Be an MCP server with one tool until standard input ends
    #[command(hide = true)]
    McpWorker,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Noop runs, start to terminal, at 1, 16 and 64 clients
    W1,
    /// Supervisor loops: ten turns at 1 and 16 clients, a wide turn, a deep tree, a very long loop
    W2,
    /// Reading a log of 10,000 events
    W3,
    /// Memory of waiting runs, and how fast an answer takes effect
    W4,
    /// Forks of long logs: making one, replaying, verifying
    W5,
    /// Start, idle memory, restart over waiting runs
    W6,
    /// SIGKILL under load
    W7,
    /// Memory and workspace, from outside and inside runs, and looking back
    W8,
    /// What a tenant feels of another one that computes, starts, reads or writes as much as it may
    W9,
    /// Runs of one step in a process of the user's own, behind `baton runner`
    W10,
    /// W1 and W2 on PostgreSQL with 1, 2 and 3 hosts, takeover, commands for other hosts' runs; skipped without `initdb`
    Pg,
}

/// How much of everything.
struct Sizes {
    load_time: Duration,
    /// How often each of W2's single measurements is repeated.
    loop_rounds: usize,
    long_loop_turns: usize,
    log_events: usize,
    waiting_runs: usize,
    resolved_runs: usize,
    running_runs: usize,
    /// Logs to fork and to look back into, shortest first.
    log_lengths: &'static [usize],
    fork_rounds: usize,
    kept_forks: usize,
    /// For one load on memory; files take half of it.
    versioned_time: Duration,
    /// Entries in the scope that is read, and those whose place on disk is measured.
    read_entries: usize,
    node_puts: usize,
    /// How often an owner is killed, and the lease it is judged by.
    takeovers: usize,
    lease: Duration,
}

impl Sizes {
    const FULL: Self = Self {
        load_time: Duration::from_secs(5),
        loop_rounds: 9,
        long_loop_turns: 5_000,
        log_events: 10_000,
        waiting_runs: 10_000,
        resolved_runs: 200,
        running_runs: 200,
        log_lengths: &[100, 1_000, 10_000, 100_000],
        fork_rounds: 30,
        kept_forks: 500,
        versioned_time: Duration::from_secs(2),
        read_entries: 5_000,
        node_puts: 2_000,
        takeovers: 5,
        lease: Duration::from_secs(3),
    };
    const QUICK: Self = Self {
        load_time: Duration::from_secs(1),
        loop_rounds: 3,
        long_loop_turns: 500,
        log_events: 1_000,
        waiting_runs: 500,
        resolved_runs: 50,
        running_runs: 50,
        log_lengths: &[100, 1_000, 10_000],
        fork_rounds: 10,
        kept_forks: 100,
        versioned_time: Duration::from_millis(500),
        read_entries: 500,
        node_puts: 200,
        takeovers: 1,
        lease: Duration::from_secs(1),
    };
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Some(Internal::EmptyServer) => serve_nothing(),
        Some(Internal::McpWorker) => worker::serve().map(|()| ExitCode::SUCCESS),
        None => measure(arguments),
    };
    result.unwrap_or_else(|error| {
        // Nothing is left to try if standard error is gone as well.
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::from(2)
    })
}

fn serve_nothing() -> Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(empty::serve())?;
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: Arguments) -> Result<ExitCode> {
    let baton = Baton { binary: find_baton(arguments.baton)? };
    std::fs::create_dir_all(&arguments.data_root).context("cannot create the data root")?;
    let folder = tempfile::tempdir_in(&arguments.data_root)?;
    let sizes = if arguments.quick { Sizes::QUICK } else { Sizes::FULL };
    let mut report = Report::new(arguments.quick);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = LocalSet::new().block_on(&runtime, run(&mut report, &baton, folder.path(), &arguments.only, &sizes));
    // What was measured before a failure is worth seeing.
    write!(std::io::stdout(), "{}", report.table())?;
    if let Some(path) = arguments.json {
        std::fs::write(&path, report.json()?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    measured?;
    Ok(if report.misses() == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

async fn run(report: &mut Report, baton: &Baton, folder: &Path, only: &[Workload], sizes: &Sizes) -> Result<()> {
    progress("machine")?;
    let loopback = probe::machine(report, folder, &w1::CLIENTS, sizes.load_time).await?;
    for workload in Workload::value_variants() {
        if !only.is_empty() && !only.contains(workload) {
            continue;
        }
        let name = workload.to_possible_value().map(|value| value.get_name().to_uppercase()).unwrap_or_default();
        progress(&name)?;
        let measured = async {
            match workload {
                Workload::W1 => w1::measure(report, baton, folder, &loopback, sizes).await,
                Workload::W2 => w2::measure(report, baton, folder, sizes).await,
                Workload::W3 => w3::measure(report, baton, folder, sizes).await,
                Workload::W4 => w4::measure(report, baton, folder, sizes).await,
                Workload::W5 => w5::measure(report, baton, folder, sizes).await,
                Workload::W6 => w6::measure(report, baton, folder, sizes).await,
                Workload::W7 => w7::measure(report, baton, folder, sizes).await,
                Workload::W8 => w8::measure(report, baton, folder, &loopback, sizes).await,
                Workload::W9 => w9::measure(report, baton, folder, sizes).await,
                Workload::W10 => w10::measure(report, baton, folder, sizes).await,
                Workload::Pg => pg::measure(report, baton, folder, sizes).await,
            }
        };
        timeout(WORKLOAD_LIMIT, measured)
            .await
            .with_context(|| format!("{name} did not end in {WORKLOAD_LIMIT:?}"))?
            .with_context(|| format!("{name} failed"))?;
    }
    Ok(())
}

fn progress(what: &str) -> Result<()> {
    writeln!(std::io::stderr(), "measuring {what}")?;
    Ok(())
}

fn find_baton(given: Option<PathBuf>) -> Result<PathBuf> {
    let binary = match given {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name("baton"),
    };
    let found = binary.is_file();
    ensure!(found, "there is no {}; build it (`cargo build --release`) or name it with --baton", binary.display());
    Ok(binary)
}
