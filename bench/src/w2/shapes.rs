//! The two extreme shapes of a tree of runs: one turn with a hundred workers beside each other, and ten runs inside
//! each other.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{WORKER, check_value, handed_through, start};
use crate::Sizes;
use crate::api;
use crate::definition::supervised;
use crate::http::Connection;
use crate::log;
use crate::report::Report;
use crate::stats::{Samples, millis};

const WIDE: &str = "bench-wide";
const WORKERS: usize = 100;
/// Runs from the root to the leaf.
const DEPTH: usize = 10;

pub(super) async fn measure(report: &mut Report, connection: &mut Connection, sizes: &Sizes) -> Result<()> {
    let wide = Samples::new(wide(connection, sizes.loop_rounds).await.context("one turn with many workers")?);
    let deep = Samples::new(deep(connection, sizes.loop_rounds).await.context("a deep tree")?);
    let worst = |samples: &Samples| format!("median of {}, worst {:.1} ms", samples.len(), millis(samples.max()));
    let mut section = report.section("W2");
    section.show(format!("wide: one turn, {WORKERS} parallel workers"), millis(wide.median()), "ms").note(worst(&wide));
    let rate = WORKERS as f64 / wide.median().as_secs_f64().max(f64::EPSILON);
    section.show("  workers", rate, "children/s").note(format!("each join checked: {WORKERS} completed"));
    section.show(format!("deep: a tree of depth {DEPTH}"), millis(deep.median()), "ms").note(worst(&deep));
    Ok(())
}

async fn wide(connection: &mut Connection, rounds: usize) -> Result<Vec<Duration>> {
    let dispatch = json!({
        "fanOutPolicy": "parallel", "joinPolicy": { "mode": "wait-all" }, "inputMapping": { "task": "value" },
    });
    api::register(connection, &supervised(WIDE, 1, &[WORKER; WORKERS], dispatch)).await?;
    let mut durations = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begun = Instant::now();
        let run = start(connection, WIDE, 1).await?;
        let outcome = api::follow(connection, &run).await?;
        durations.push(begun.elapsed());
        let completed = outcome.child_runs.iter().filter(|child| child.status == "completed").count();
        ensure!(completed == WORKERS, "{completed} of {WORKERS} workers completed");
        log::joined(&log::read(connection, &run).await?, WORKERS)?;
    }
    Ok(durations)
}

async fn deep(connection: &mut Connection, rounds: usize) -> Result<Vec<Duration>> {
    let level = |level: usize| if level == DEPTH { WORKER.to_owned() } else { format!("bench-level-{level}") };
    for above in 1..DEPTH {
        // The leaf has names of its own; a level hands its value to the next one and takes it back.
        let between = || json!({ "inputMapping": { "value": "value" }, "outputMapping": { "value": "value" } });
        let dispatch = if above + 1 == DEPTH { handed_through() } else { between() };
        api::register(connection, &supervised(&level(above), 1, &[&level(above + 1)], dispatch)).await?;
    }
    let mut durations = Vec::with_capacity(rounds);
    for round in 0..rounds as u64 {
        let begun = Instant::now();
        let run = start(connection, &level(1), round).await?;
        let outcome = api::follow(connection, &run).await?;
        durations.push(begun.elapsed());
        check_value(&outcome, round + 1)?;
        let depth = depth(connection, run).await?;
        ensure!(depth == DEPTH, "the tree is {depth} runs deep, not {DEPTH}");
    }
    Ok(durations)
}

/// Follows the only child of each run down to the leaf.
async fn depth(connection: &mut Connection, root: String) -> Result<usize> {
    let mut depth = 0;
    let mut next = Some(root);
    while let Some(run) = next {
        depth += 1;
        let mut children = api::outcome(connection, &run).await?.child_runs;
        ensure!(children.len() <= 1, "run {run} has {} children", children.len());
        next = children.pop().map(|child| child.run_id);
    }
    Ok(depth)
}
