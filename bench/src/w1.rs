//! W1: a noop run from its start to its terminal state, as fast as the clients can ask.
//!
//! An iteration is what a caller that wants a result does: start the run, then read it until it has ended. Every start
//! is durable before it is answered, so this is a test of the commit path.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use crate::Sizes;
use crate::api;
use crate::definition;
use crate::load::{Budget, Load, closed_loop};
use crate::probe::{Disk, Loopback};
use crate::report::{Bound, Report, clients as in_words};
use crate::server::{Baton, Server};
use crate::stats::millis;

pub(crate) const CLIENTS: [usize; 3] = [1, 16, 64];
const WORKFLOW: &str = "bench-noop";
const START: &str = r#"{"workflowId":"bench-noop"}"#;
const WARM_UP: Duration = Duration::from_millis(500);
const RUN_LIMIT: Duration = Duration::from_secs(10);
/// The absolute target at the highest concurrency, and the share of the machine's own limit that replaces it where
/// the machine is slower.
const TARGET_RATE: f64 = 4000.0;
const TARGET_SHARE: f64 = 0.4;

pub(crate) async fn measure(
    report: &mut Report,
    baton: &Baton,
    folder: &Path,
    loopback: &Loopback,
    sizes: &Sizes,
) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    prepare(&server).await?;
    for clients in CLIENTS {
        // Disks change their mood within seconds, so the yardstick is taken beside each measurement.
        let disk = Disk::probe(folder)?;
        let (load, reads) = iterate(server.address(), clients, sizes.load_time).await?;
        let machine = loopback.pairs_per_second(clients);
        let mut section = report.section("W1");
        let rate = format!("noop runs, {}", in_words(clients));
        if clients == 64 {
            let bound = TARGET_RATE.min(TARGET_SHARE * machine);
            section.judge(rate, load.rate(), "runs/s", Bound::AtLeast(bound));
            section.note(format!("{TARGET_RATE}, or 40 % of half the empty handler's rate ({machine:.0}) if lower"));
        } else {
            section.show(rate, load.rate(), "runs/s");
        }
        section.show("  share of half the empty handler", load.rate() / machine.max(1.0) * 100.0, "%");
        let p50 = millis(load.samples.median());
        if clients == 1 {
            section.judge("  p50", p50, "ms", Bound::AtMost(disk.one_commit_bound())).note(disk.note());
        } else {
            section.show("  p50", p50, "ms");
        }
        section.show("  p95", millis(load.samples.percentile(95)), "ms");
        section.show("  p99", millis(load.samples.percentile(99)), "ms");
        section.show("  reads per run", reads as f64 / load.samples.len().max(1) as f64, "");
    }
    server.kill().await
}

/// Registers what is run, and runs it until the host is warm.
pub(crate) async fn prepare(server: &Server) -> Result<()> {
    api::register(&mut server.connect().await?, &definition::noop(WORKFLOW)).await?;
    iterate(server.address(), 16, WARM_UP).await?;
    Ok(())
}

pub(crate) async fn iterate(address: SocketAddr, clients: usize, time: Duration) -> Result<(Load, u64)> {
    let reads = Rc::new(Cell::new(0));
    let counter = Rc::clone(&reads);
    let load = closed_loop(address, clients, Budget { time, count: usize::MAX }, async move |connection| {
        let run = api::start_run(connection, START).await?;
        let reads = api::await_completed(connection, &run, RUN_LIMIT).await?;
        counter.set(counter.get() + reads);
        Ok(())
    })
    .await?;
    Ok((load, reads.get()))
}
