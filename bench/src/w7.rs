//! W7: SIGKILL in the middle of work. Nothing acknowledged may be lost, nothing may run twice, and what was left to do
//! must be done about when it would have been done anyway.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tokio::time::sleep;

use crate::Sizes;
use crate::api;
use crate::definition;
use crate::http::Connection;
use crate::load::{Budget, closed_loop};
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::millis;

const WORKFLOW: &str = "bench-delay";
const START: &str = r#"{"workflowId":"bench-delay"}"#;
const DELAY: Duration = Duration::from_millis(3000);
const KILL_AFTER: Duration = Duration::from_secs(1);
const CLIENTS: usize = 16;
const START_LIMIT: Duration = Duration::from_secs(30);
/// Beyond this a run that is still not completed counts as lost.
const FINISH_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
const BEYOND_MS: f64 = 1000.0;

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    api::register(&mut server.connect().await?, &definition::delay(WORKFLOW, DELAY.as_millis())).await?;
    let started = Rc::new(RefCell::new(Vec::with_capacity(sizes.running_runs)));
    let ids = Rc::clone(&started);
    let budget = Budget { time: START_LIMIT, count: sizes.running_runs };
    closed_loop(server.address(), CLIENTS, budget, async move |connection| {
        let id = api::start_run(connection, START).await?;
        ids.borrow_mut().push(id);
        Ok(())
    })
    .await?;
    let runs = started.take();
    // Every delay has begun by now, so no correct host has work left after this instant plus one delay.
    let due = Instant::now() + DELAY;
    sleep(KILL_AFTER).await;
    server.kill().await?;

    let server = baton.start(data.path()).await?;
    let ready_after = server.ready_after;
    let ready = Instant::now();
    let mut connection = server.connect().await?;
    let unfinished = wait_for_all(&mut connection, runs.clone()).await?;
    let finished = Instant::now();
    for run in runs.iter().filter(|run| !unfinished.contains(run)) {
        check_log(&mut connection, run).await?;
    }
    server.kill().await?;

    let beyond = finished.saturating_duration_since(due.max(ready));
    let mut section = report.section("W7");
    section.show("running when killed", runs.len() as f64, "runs");
    section.show("restart to ready", millis(ready_after), "ms");
    section.judge("acknowledged runs lost", unfinished.len() as f64, "runs", Bound::AtMost(0.0));
    section.note("every log gap-free, one terminal event, no node completed twice");
    section.judge("finished beyond the remaining work", millis(beyond), "ms", Bound::AtMost(BEYOND_MS));
    Ok(())
}

/// Returns the runs that did not complete in time, or ended otherwise, or are unknown.
async fn wait_for_all(connection: &mut Connection, runs: Vec<String>) -> Result<Vec<String>> {
    let start = Instant::now();
    let mut open = runs;
    while !open.is_empty() && start.elapsed() < FINISH_LIMIT {
        let mut still_open = Vec::new();
        for run in open {
            let response = connection.get(&format!("/v1/runs/{run}")).await?;
            let completed = response.status == 200 && response_status(response.body)? == "completed";
            if !completed {
                still_open.push(run);
            }
        }
        open = still_open;
        sleep(POLL).await;
    }
    Ok(open)
}

fn response_status(body: &[u8]) -> Result<String> {
    #[derive(Deserialize)]
    struct Snapshot {
        status: String,
    }
    Ok(serde_json::from_slice::<Snapshot>(body).context("a run snapshot")?.status)
}

#[derive(Deserialize)]
struct Log {
    events: Vec<LogEvent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEvent {
    sequence: usize,
    #[serde(rename = "type")]
    kind: String,
    node_id: Option<String>,
}

async fn check_log(connection: &mut Connection, run: &str) -> Result<()> {
    let response = connection.get(&format!("/v1/runs/{run}/events")).await?;
    response.expect(200, "read all events")?;
    let log: Log = serde_json::from_slice(response.body).context("a log")?;
    legal(&log).with_context(|| format!("the log of {run} after the crash"))
}

fn legal(log: &Log) -> Result<()> {
    let mut completed = Vec::new();
    for (index, event) in log.events.iter().enumerate() {
        ensure!(event.sequence == index, "sequence {} stands where {index} belongs", event.sequence);
        let last = index + 1 == log.events.len();
        let terminal = matches!(event.kind.as_str(), "run.completed" | "run.failed" | "run.cancelled");
        ensure!(terminal == last, "{} at {index} of {}", event.kind, log.events.len());
        if event.kind == "node.completed" {
            ensure!(!completed.contains(&&event.node_id), "{:?} completed twice", event.node_id);
            completed.push(&event.node_id);
        }
    }
    ensure!(!log.events.is_empty(), "the log is empty");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(kinds: &[&str]) -> Log {
        let events = kinds
            .iter()
            .enumerate()
            .map(|(sequence, kind)| LogEvent { sequence, kind: (*kind).to_owned(), node_id: Some("a".to_owned()) })
            .collect();
        Log { events }
    }

    #[test]
    fn only_whole_logs_are_legal() {
        assert!(legal(&log(&["run.started", "node.started", "node.completed", "run.completed"])).is_ok());
        assert!(legal(&log(&["run.started", "node.completed", "node.completed", "run.completed"])).is_err());
        assert!(legal(&log(&["run.started", "node.completed"])).is_err());
        assert!(legal(&log(&["run.started", "run.completed", "run.completed"])).is_err());
        assert!(legal(&log(&[])).is_err());
        let mut gap = log(&["run.started", "run.completed"]);
        gap.events[1].sequence = 2;
        assert!(legal(&gap).is_err());
    }
}
