//! An answer to a question, given to the host that drives the run and to one that does not: there it goes by letter to the
//! owner, and comes back when it is durable. Says as well what a run that waits takes up.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use baton_testkit::postgres::{Cluster, rows};

use super::crew::Crew;
use super::first;
use crate::Sizes;
use crate::api;
use crate::report::Report;
use crate::server::{Baton, Server};
use crate::stats::{Samples, millis};
use crate::waiting::{self, GATE};

pub(super) async fn measure(
    report: &mut Report,
    baton: &Baton,
    folder: &Path,
    cluster: &Cluster,
    sizes: &Sizes,
) -> Result<()> {
    let database = cluster.database().await;
    // A lease that nobody reaches: work must stay where it was begun.
    let crew = Crew::start(baton, folder, &database, 1, Duration::from_secs(60)).await?;
    let owner = first(&crew.servers)?;
    let before = bytes(&database).await?;
    let runs = waiting::suspend(owner, 2 * sizes.resolved_runs).await?;
    let each = (bytes(&database).await? - before) / runs.len() as f64;
    let other = Crew::start(baton, folder, &database, 1, Duration::from_secs(60)).await?;
    let (ours, theirs) = runs.split_at(sizes.resolved_runs);
    let here = answer(owner, ours).await?;
    let there = answer(first(&other.servers)?, theirs).await?;
    let mut section = report.section("PG");
    section.show("a run that waits", each, "bytes").note(format!("all tables and indexes, {} runs", runs.len()));
    section.show("an answer to the owner, p50", millis(here.median()), "ms");
    section.show("  p99", millis(here.percentile(99)), "ms");
    section.show("an answer to another host, p50", millis(there.median()), "ms");
    section.show("  p99", millis(there.percentile(99)), "ms").note(format!("{} answers, one at a time", there.len()));
    other.kill().await?;
    crew.kill().await
}

async fn answer(server: &Server, runs: &[String]) -> Result<Samples> {
    let mut connection = server.connect().await?;
    let mut durations = Vec::with_capacity(runs.len());
    for run in runs {
        let begun = Instant::now();
        api::accept(&mut connection, run, GATE).await?;
        durations.push(begun.elapsed());
    }
    Ok(Samples::new(durations))
}

async fn bytes(database: &str) -> Result<f64> {
    let sql = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class
               WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let answer = rows(database, sql).await;
    answer.first().and_then(|row| row.first()?.parse().ok()).context("the size of the database")
}
