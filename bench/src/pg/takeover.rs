//! SIGKILL for the owner of a run that is at work, and how long it takes until somebody else adds to its log.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_testkit::postgres::Cluster;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::crew::Crew;
use crate::Sizes;
use crate::api;
use crate::definition::{node, repeated};
use crate::http::Connection;
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::{Samples, millis};

const WORKFLOW: &str = "bench-steady";
const START: &str = r#"{"workflowId":"bench-steady"}"#;
/// A record every now and then, for longer than anybody waits.
const STEP_MS: u64 = 50;
const STEPS: usize = 5_000;
/// What a takeover may take beyond the lease.
const BEYOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

pub(super) async fn measure(
    report: &mut Report,
    baton: &Baton,
    folder: &Path,
    cluster: &Cluster,
    sizes: &Sizes,
) -> Result<()> {
    let mut durations = Vec::new();
    for _ in 0..sizes.takeovers {
        let database = cluster.database().await;
        let mut crew = Crew::start(baton, folder, &database, 2, sizes.lease).await?;
        let heir = crew.servers.pop().context("no second host")?;
        let owner = crew.servers.pop().context("no first host")?;
        let body = [node("wait", "core.delay", json!({ "durationMs": STEP_MS }))];
        let mut connection = owner.connect().await?;
        api::register(&mut connection, &repeated(WORKFLOW, STEPS, &body)).await?;
        let run = api::start_run(&mut connection, START).await?;
        let mut watching = heir.connect().await?;
        grown(&mut watching, &run, None).await?;
        owner.kill().await?;
        let begun = Instant::now();
        // What was durable when the owner died is in the log by now.
        let seen = last(&mut watching, &run, None).await?;
        grown(&mut watching, &run, seen).await?;
        durations.push(begun.elapsed());
        heir.kill().await?;
    }
    let samples = Samples::new(durations);
    let mut section = report.section("PG");
    let bound = Bound::AtMost(millis(sizes.lease + BEYOND));
    section.judge("takeover, longest", millis(samples.max()), "ms", bound);
    section.note(format!("lease {:?} + {BEYOND:?}; {} owners killed", sizes.lease, samples.len()));
    section.show("  p50", millis(samples.median()), "ms");
    Ok(())
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Sequence>,
}

#[derive(Deserialize)]
struct Sequence {
    sequence: u64,
}

/// The last record after this one, if there is any.
async fn last(connection: &mut Connection, run: &str, after: Option<u64>) -> Result<Option<u64>> {
    let cursor = after.map_or_else(String::new, |after| format!("lastSequence={after}&"));
    let response = connection.get(&format!("/v1/runs/{run}/events/poll?{cursor}limit=10000")).await?;
    response.expect(200, "read a log")?;
    let page: Page = serde_json::from_slice(response.body).context("a page of a log")?;
    Ok(page.events.last().map(|event| event.sequence))
}

/// Waits until there is something after this record.
async fn grown(connection: &mut Connection, run: &str, after: Option<u64>) -> Result<()> {
    let begun = Instant::now();
    while last(connection, run, after).await?.is_none() {
        ensure!(begun.elapsed() < LIMIT, "nobody goes on with {run}");
        sleep(POLL).await;
    }
    Ok(())
}
