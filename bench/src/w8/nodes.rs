//! Entries put by nodes: one run that puts many, and a loop whose workers put one each.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{NOTE_WORKER, note};
use crate::Sizes;
use crate::api;
use crate::definition::{repeated, supervised};
use crate::http::Connection;
use crate::report::Report;
use crate::stats::{Samples, millis};

const IN_A_LOOP: &str = "bench-noting";
const BY_WORKERS: &str = "bench-noting-team";
const ROUNDS: usize = 3;

pub(super) async fn measure(report: &mut Report, connection: &mut Connection, sizes: &Sizes) -> Result<()> {
    let puts = sizes.node_puts;
    let turns = (puts / 4).max(1);
    api::register(connection, &repeated(IN_A_LOOP, puts, &[note()])).await?;
    api::register(connection, &supervised(BY_WORKERS, turns, &[NOTE_WORKER], json!({}))).await?;
    for (name, workflow, entries) in [
        (format!("puts by nodes, {puts} in one run"), IN_A_LOOP, puts),
        (format!("puts by workers, one in each of {turns} turns"), BY_WORKERS, turns),
    ] {
        let mut durations = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            durations.push(run(connection, workflow, entries).await.with_context(|| name.clone())?);
        }
        let samples = Samples::new(durations);
        let rate = entries as f64 / samples.median().as_secs_f64().max(f64::EPSILON);
        let mut section = report.section("W8");
        section.show(name, rate, "entries/s");
        section.note(format!("median of {ROUNDS}, {:.0} ms; every entry counted", millis(samples.median())));
    }
    Ok(())
}

/// From the start of a run to its end. Checks that it left `entries` entries in its memory.
async fn run(connection: &mut Connection, workflow: &str, entries: usize) -> Result<Duration> {
    let begun = Instant::now();
    let run = api::start_run(connection, &json!({ "workflowId": workflow }).to_string()).await?;
    api::follow(connection, &run).await?;
    let took = begun.elapsed();
    let scopes = api::memory_scopes(connection).await?;
    let version = scopes.iter().find(|row| row.scope == run).map(|row| row.version);
    ensure!(version == Some(entries as u64), "memory of {run} has changed {version:?} times, not {entries}");
    Ok(took)
}
