//! W6: how soon a host answers after its start, what it takes while idle, and whether a long backlog slows it down.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use crate::Sizes;
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::{Samples, millis};
use crate::waiting::suspend;

const STARTS: usize = 5;
const SETTLE: Duration = Duration::from_secs(1);
const START_MS: f64 = 50.0;
const IDLE_MIB: f64 = 20.0;
const RESTART_MS: f64 = 1000.0;

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let mut fresh = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let data = tempfile::tempdir_in(folder)?;
        let server = baton.start(data.path()).await?;
        fresh.push(server.ready_after);
        server.kill().await?;
    }

    let data = tempfile::tempdir_in(folder)?;
    baton.start(data.path()).await?.kill().await?;
    let mut again = Vec::with_capacity(STARTS);
    let mut idle = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let server = baton.start(data.path()).await?;
        again.push(server.ready_after);
        sleep(SETTLE).await;
        idle.push(server.resident_bytes()?);
        server.kill().await?;
    }
    idle.sort_unstable();

    let server = baton.start(data.path()).await?;
    let waiting = suspend(&server, sizes.waiting_runs).await?.len();
    server.kill().await?;
    let server = baton.start(data.path()).await?;
    let restart = server.ready_after;
    server.kill().await?;

    let mut section = report.section("W6");
    let mut start = |name: &str, durations| {
        let samples = Samples::new(durations);
        section.judge(name, millis(samples.median()), "ms", Bound::AtMost(START_MS));
        section.note(format!("median of {}, worst {:.1} ms", samples.len(), millis(samples.max())));
    };
    start("start to ready, new data", fresh);
    start("start to ready, after a kill", again);
    let idle = idle[idle.len() / 2] as f64 / (1024.0 * 1024.0);
    section.judge("idle memory", idle, "MiB", Bound::AtMost(IDLE_MIB));
    section.judge(format!("restart over {waiting} waiting runs"), millis(restart), "ms", Bound::AtMost(RESTART_MS));
    Ok(())
}
