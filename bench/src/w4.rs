//! W4: what a run that waits for a human costs, and how quickly an answer takes effect.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::sleep;

use crate::Sizes;
use crate::api;
use crate::definition;
use crate::load::{Budget, closed_loop};
use crate::probe::Disk;
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::{Samples, millis};
use crate::waiting::{GATE, suspend};

const WARM_UP_WORKFLOW: &str = "bench-noop";
const WARM_UP_START: &str = r#"{"workflowId":"bench-noop"}"#;
const WARM_UP_LIMIT: Duration = Duration::from_secs(60);
const SETTLE: Duration = Duration::from_secs(1);
const RUN_LIMIT: Duration = Duration::from_secs(10);
const BYTES_PER_RUN: f64 = 1024.0;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    api::register(&mut server.connect().await?, &definition::noop(WARM_UP_WORKFLOW)).await?;
    // Buffers, page caches and allocator arenas fill once, whatever the load. As many runs that end as will wait fill
    // them first, so that the difference is what waiting costs.
    let warm_up = Budget { time: WARM_UP_LIMIT, count: sizes.waiting_runs };
    closed_loop(server.address(), 64, warm_up, async |connection| {
        let run = api::start_run(connection, WARM_UP_START).await?;
        api::await_completed(connection, &run, RUN_LIMIT).await?;
        Ok(())
    })
    .await?;
    sleep(SETTLE).await;
    let before = server.resident_bytes()?;
    let begun = Instant::now();
    let runs = suspend(&server, sizes.waiting_runs).await?;
    let suspended = begun.elapsed();
    sleep(SETTLE).await;
    let after = server.resident_bytes()?;

    let disk = Disk::probe(folder)?;
    let mut connection = server.connect().await?;
    let mut durations = Vec::with_capacity(sizes.resolved_runs);
    for run in runs.iter().step_by((runs.len() / sizes.resolved_runs).max(1)).take(sizes.resolved_runs) {
        let begun = Instant::now();
        api::accept(&mut connection, run, GATE).await?;
        api::await_completed(&mut connection, run, RUN_LIMIT).await?;
        durations.push(begun.elapsed());
    }
    server.kill().await?;

    let latency = Samples::new(durations);
    let per_run = after.saturating_sub(before) as f64 / runs.len() as f64;
    let mut section = report.section("W4");
    section.show(format!("suspend {} runs", runs.len()), runs.len() as f64 / suspended.as_secs_f64(), "runs/s");
    section.show("resident before", before as f64 / MEBIBYTE, "MiB");
    section.show("resident with all waiting", after as f64 / MEBIBYTE, "MiB");
    section.judge("memory per waiting run", per_run, "bytes", Bound::AtMost(BYTES_PER_RUN));
    let bound = Bound::AtMost(disk.one_commit_bound());
    section.judge("answer to completed, p50", millis(latency.median()), "ms", bound).note(disk.note());
    section.show("answer to completed, p99", millis(latency.percentile(99)), "ms");
    section.note(format!("fdatasync p99 {:.2} ms", millis(disk.p99)));
    Ok(())
}
