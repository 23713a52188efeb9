//! W10: runs of one step that is made in a process of the user's own: a program behind `baton runner`.
//!
//! Each iteration starts a run, whose one node calls the program's tool, and waits until the run has ended. On the way the
//! call, its lease and its result are durable before anybody acts on them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::KEY;
use crate::Sizes;
use crate::api;
use crate::definition::{chain, node};
use crate::http::Connection;
use crate::load::{Budget, Load, closed_loop};
use crate::probe::Disk;
use crate::report::{Bound, Report, clients as in_words};
use crate::server::Baton;
use crate::stats::millis;
use crate::worker;

const CLIENTS: [usize; 3] = [1, 16, 64];
const WORKFLOW: &str = "bench-own-code";
const POOL: &str = "bench";
/// How many calls the program gets at a time.
const CONCURRENCY: &str = "64";
const WARM_UP: Duration = Duration::from_millis(500);
const RUN_LIMIT: Duration = Duration::from_secs(30);
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs a second and their median at 64 clients; the median of one client beside three syncs.
const TARGET_RATE: f64 = 3_000.0;
const TARGET_P50_MS: f64 = 25.0;
const TARGET_ALONE_MS: f64 = 3.0;
const SYNCS: f64 = 3.0;

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    let mut connection = server.connect().await?;
    api::register(&mut connection, &workflow()).await?;
    let mut runner = start_runner(baton, server.address())?;
    await_runner(&mut connection, &mut runner).await?;
    load(server.address(), 16, WARM_UP).await?;
    for clients in CLIENTS {
        let disk = Disk::probe(folder)?;
        let load = load(server.address(), clients, sizes.load_time).await?;
        let mut section = report.section("W10");
        let (rate, p50) = (load.rate(), millis(load.samples.median()));
        let name = format!("runs of one step in a process of one's own, {}", in_words(clients));
        match clients {
            64 => {
                section.judge(name, rate, "runs/s", Bound::AtLeast(TARGET_RATE));
                section.judge("  p50", p50, "ms", Bound::AtMost(TARGET_P50_MS));
            }
            1 => {
                section.show(name, rate, "runs/s");
                let most = TARGET_ALONE_MS + SYNCS * disk.sync_millis();
                section.judge("  p50", p50, "ms", Bound::AtMost(most));
                section.note(format!("{TARGET_ALONE_MS} ms + {SYNCS} x fdatasync p50 of {:.2} ms", disk.sync_millis()));
            }
            _ => {
                section.show(name, rate, "runs/s");
                section.show("  p50", p50, "ms");
            }
        }
        section.show("  p99", millis(load.samples.percentile(99)), "ms");
    }
    runner.kill().await.context("cannot end the runner")?;
    server.kill().await
}

fn workflow() -> Value {
    let tool = format!("runner:{POOL}.{}", worker::TOOL);
    chain(
        WORKFLOW,
        &[node("call", "vendor.baton.tool", json!({ "tool": tool, "arguments": { "text": "a" } }))],
        json!([]),
    )
}

/// `baton runner` with this program as the program behind it.
fn start_runner(baton: &Baton, address: SocketAddr) -> Result<Child> {
    let mut command = Command::new(&baton.binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATON_")) {
        command.env_remove(name);
    }
    command.args(["runner", "--name", POOL, "--concurrency", CONCURRENCY, "--url"]).arg(format!("http://{address}"));
    command.arg("--").arg(std::env::current_exe()?).arg("mcp-worker");
    command.env("BATON_API_KEY", KEY).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().context("cannot start the runner")
}

async fn await_runner(connection: &mut Connection, runner: &mut Child) -> Result<()> {
    let begun = Instant::now();
    loop {
        if let Some(status) = runner.try_wait()? {
            anyhow::bail!("the runner ended: {status}");
        }
        let response = connection.get("/v1/host/baton/runners").await?;
        response.expect(200, "list runners")?;
        let runners: Value = serde_json::from_slice(response.body)?;
        if runners["runners"].as_array().is_some_and(|all| all.iter().any(|one| one["connected"] == json!(true))) {
            return Ok(());
        }
        ensure!(begun.elapsed() < CONNECT_LIMIT, "no runner connects: {runners}");
        sleep(LOOK_AGAIN).await;
    }
}

async fn load(address: SocketAddr, clients: usize, time: Duration) -> Result<Load> {
    closed_loop(address, clients, Budget { time, count: usize::MAX }, async move |connection| {
        let run = api::start_run(connection, &format!(r#"{{"workflowId":"{WORKFLOW}"}}"#)).await?;
        api::await_told(connection, &run, RUN_LIMIT).await
    })
    .await
}
