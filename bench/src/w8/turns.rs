//! A supervisor that decides by what is remembered, beside one that does not look.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{NOTE_WORKER, fill};
use crate::Sizes;
use crate::api;
use crate::definition::supervised_while;
use crate::http::Connection;
use crate::probe::Disk;
use crate::report::{Bound, Report};
use crate::server::Server;
use crate::stats::{Samples, millis};

const TURNS: usize = 50;
const SHARED: &str = "bench-much-remembered";
const MUCH: usize = 1_000;

/// One kind of loop; the workers of all of them put an entry each turn.
struct Kind {
    workflow: &'static str,
    condition: String,
    scope: Option<&'static str>,
}

pub(super) async fn measure(report: &mut Report, server: &Server, folder: &Path, sizes: &Sizes) -> Result<()> {
    let mut connection = server.connect().await?;
    fill(server, SHARED, MUCH).await?;
    let kinds = [
        Kind { workflow: "bench-unaware", condition: format!("iteration <= {TURNS}"), scope: None },
        Kind { workflow: "bench-aware", condition: format!("memory.size() < {TURNS}"), scope: None },
        Kind {
            workflow: "bench-well-aware",
            condition: format!("iteration <= {TURNS} && memory.size() >= {MUCH}"),
            scope: Some(SHARED),
        },
    ];
    for kind in &kinds {
        let workflow = supervised_while(kind.workflow, &kind.condition, &[NOTE_WORKER], json!({}));
        api::register(&mut connection, &workflow).await?;
    }
    let disk = Disk::probe(folder)?;
    let mut durations = [const { Vec::new() }; 3];
    // The kinds take turns, so that a bad moment of the machine hits all of them. The first round warms up.
    for round in 0..=sizes.loop_rounds {
        for (kind, durations) in kinds.iter().zip(&mut durations) {
            let took = run(&mut connection, kind).await.with_context(|| format!("a loop of {}", kind.workflow))?;
            if round > 0 {
                durations.push(took);
            }
        }
    }
    let [unaware, aware, well_aware] =
        durations.map(|durations| millis(Samples::new(durations).median()) / TURNS as f64);
    let mut section = report.section("W8");
    let taken = format!("median of {} loops of {TURNS} turns", sizes.loop_rounds);
    section.show("turn that does not look at memory", unaware, "ms").note(taken.clone());
    section.judge("turn that reads its memory", aware, "ms", Bound::AtMost(disk.one_commit_bound()));
    section.note(format!("up to {TURNS} entries; {}", disk.note()));
    section.show("  over one that does not look", aware / unaware.max(f64::EPSILON), "x");
    section.show(format!("turn that reads {MUCH} and more entries"), well_aware, "ms").note(taken);
    section.show("  over one that does not look", well_aware / unaware.max(f64::EPSILON), "x");
    Ok(())
}

async fn run(connection: &mut Connection, kind: &Kind) -> Result<Duration> {
    let mut start = json!({ "workflowId": kind.workflow });
    if let Some(scope) = kind.scope {
        start["scopeId"] = json!(scope);
    }
    let begun = Instant::now();
    let run = api::start_run(connection, &start.to_string()).await?;
    let outcome = api::follow(connection, &run).await?;
    let took = begun.elapsed();
    let completed = outcome.child_runs.iter().filter(|child| child.status == "completed").count();
    ensure!(completed == TURNS, "{completed} workers completed in {TURNS} turns");
    Ok(took)
}
