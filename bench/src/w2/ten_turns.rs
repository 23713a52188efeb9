//! Ten turns with one worker each, then the end: how many such loops a host takes, how long a turn is, and how often
//! the disk is asked for it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use super::{WORKER, check_value, handed_through, start, worker};
use crate::Sizes;
use crate::api;
use crate::definition::supervised;
use crate::http::Connection;
use crate::load::{Budget, Load, closed_loop};
use crate::log;
use crate::metric::{COMMITS, counter};
use crate::probe::Disk;
use crate::report::{Bound, Report, clients as in_words};
use crate::server::Server;
use crate::stats::millis;

const WORKFLOW: &str = "bench-loop";
pub(crate) const TURNS: usize = 10;
const CLIENTS: [usize; 2] = [1, 16];
const WARM_UP: Duration = Duration::from_millis(500);
/// Whatever a loop leaves to be written behind it belongs to it.
const SETTLE: Duration = Duration::from_millis(50);
const TARGET_TURNS: f64 = 2000.0;
const TARGET_COMMITS: f64 = 4.0;

pub(super) async fn measure(report: &mut Report, server: &Server, folder: &Path, sizes: &Sizes) -> Result<()> {
    let mut connection = server.connect().await?;
    prepare(server).await?;
    for clients in CLIENTS {
        // Disks change their mood within seconds, so the yardstick is taken beside each measurement.
        let disk = Disk::probe(folder)?;
        let (load, runs) = iterate(server.address(), clients, sizes.load_time).await?;
        check(&mut connection, &runs).await?;
        let mut section = report.section("W2");
        section.show(format!("ten-turn loops, {}", in_words(clients)), load.rate(), "loops/s");
        section.note(format!("all {} checked: value, 11 decisions, one harvest a turn", runs.len()));
        let turns = load.rate() * TURNS as f64;
        let per_turn = |percent| millis(load.samples.percentile(percent)) / TURNS as f64;
        if clients == 1 {
            section.show("  turns", turns, "turns/s");
            section.judge("  per turn, p50", per_turn(50), "ms", Bound::AtMost(disk.one_commit_bound()));
            section.note(disk.note());
        } else {
            section.judge("  turns", turns, "turns/s", Bound::AtLeast(TARGET_TURNS));
            section.show("  per turn, p50", per_turn(50), "ms");
        }
        section.show("  per turn, p99", per_turn(99), "ms");
    }
    let (commits, most) = commits_per_loop(&mut connection, sizes.loop_rounds).await?;
    let mut section = report.section("W2");
    section.judge("commits per loop", commits as f64, "", Bound::AtMost(TARGET_COMMITS));
    section.note(format!("median of {} loops run alone, most {most}", sizes.loop_rounds));
    Ok(())
}

/// Registers what is run, and runs it until the host is warm.
pub(crate) async fn prepare(server: &Server) -> Result<()> {
    let mut connection = server.connect().await?;
    api::register(&mut connection, &worker()).await?;
    api::register(&mut connection, &supervised(WORKFLOW, TURNS, &[WORKER], handed_through())).await?;
    iterate(server.address(), 16, WARM_UP).await?;
    Ok(())
}

/// Every log tells of ten turns.
pub(crate) async fn check(connection: &mut Connection, runs: &[String]) -> Result<()> {
    for run in runs {
        let events = log::read(connection, run).await?;
        log::turns(&events, TURNS).with_context(|| format!("the log of {run}"))?;
    }
    Ok(())
}

/// Loops from start to result. Returns the runs as well, so that their logs can be checked off the clock.
pub(crate) async fn iterate(address: SocketAddr, clients: usize, time: Duration) -> Result<(Load, Vec<String>)> {
    let runs = Rc::new(RefCell::new(Vec::new()));
    let next = Cell::new(0);
    let started = Rc::clone(&runs);
    let load = closed_loop(address, clients, Budget { time, count: usize::MAX }, async move |connection| {
        // Each loop counts from another number, so that one loop's value cannot pass for another's.
        let value = next.replace(next.get() + 1);
        let run = start(connection, WORKFLOW, value).await?;
        let outcome = api::follow(connection, &run).await?;
        check_value(&outcome, value + TURNS as u64)?;
        started.borrow_mut().push(run);
        Ok(())
    })
    .await?;
    Ok((load, runs.take()))
}

/// The median and the largest number of commits that one loop takes on a host with nothing else to do.
async fn commits_per_loop(connection: &mut Connection, rounds: usize) -> Result<(u64, u64)> {
    let mut counts = Vec::with_capacity(rounds);
    for round in 0..rounds {
        sleep(SETTLE).await;
        let before = counter(connection, COMMITS).await?;
        let run = start(connection, WORKFLOW, round as u64).await?;
        check_value(&api::follow(connection, &run).await?, (round + TURNS) as u64)?;
        sleep(SETTLE).await;
        counts.push(counter(connection, COMMITS).await? - before);
    }
    counts.sort_unstable();
    let last = counts.last().copied().context("no rounds")?;
    Ok((counts[counts.len() / 2], last))
}
