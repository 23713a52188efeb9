//! The few calls of the run surface that the workloads make.

use anyhow::{Context, Result, bail, ensure};
use baton_api::{ForkedRun, MemoryScope, MemoryScopes, StartedRun};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use std::time::{Duration, Instant};

use crate::http::Connection;

pub(crate) const TERMINAL: [&str; 3] = ["completed", "failed", "cancelled"];

#[derive(Deserialize)]
struct Snapshot<'a> {
    status: &'a str,
}

/// Registers a workflow under the id it names.
pub(crate) async fn register(connection: &mut Connection, definition: &Value) -> Result<()> {
    let response = connection.post("/v1/workflows", &definition.to_string()).await?;
    // A workload that starts its server twice registers the same content twice.
    if response.status != 200 {
        response.expect(201, "register a workflow")?;
    }
    Ok(())
}

/// Starts a run from a prepared request body and returns its id.
pub(crate) async fn start_run(connection: &mut Connection, body: &str) -> Result<String> {
    let response = connection.post("/v1/runs", body).await?;
    response.expect(201, "start a run")?;
    let started: StartedRun = serde_json::from_slice(response.body).context("the answer to a start")?;
    Ok(started.run_id.to_string())
}

pub(crate) async fn status(connection: &mut Connection, run: &str) -> Result<String> {
    let response = connection.get(&format!("/v1/runs/{run}")).await?;
    response.expect(200, "read a run")?;
    let snapshot: Snapshot<'_> = serde_json::from_slice(response.body).context("a run snapshot")?;
    Ok(snapshot.status.to_owned())
}

/// Reads the run again and again, without a pause, until it has completed. Returns how many reads that took.
pub(crate) async fn await_completed(connection: &mut Connection, run: &str, limit: Duration) -> Result<u64> {
    poll_completed(connection, run, limit, Duration::ZERO).await
}

/// Like [`await_completed`], for runs that take a while: pauses between reads.
pub(crate) async fn poll_completed(
    connection: &mut Connection,
    run: &str,
    limit: Duration,
    pause: Duration,
) -> Result<u64> {
    let start = Instant::now();
    let mut reads = 0;
    loop {
        let status = status(connection, run).await?;
        reads += 1;
        match status.as_str() {
            "completed" => return Ok(reads),
            ended if TERMINAL.contains(&ended) => bail!("run {run} is {ended}"),
            waiting if start.elapsed() > limit => bail!("run {run} is still {waiting} after {limit:?}"),
            _ if pause.is_zero() => {}
            _ => sleep(pause).await,
        }
    }
}

/// The result of a completed run, as far as the supervisor workloads look at it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    status: String,
    pub(crate) variables: Value,
    #[serde(default)]
    pub(crate) child_runs: Vec<ChildRun>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChildRun {
    pub(crate) run_id: String,
    pub(crate) status: String,
}

/// Waits for the end of a run without asking again and again: a stream of nothing but message chunks, which these
/// runs do not write, says nothing until it closes with the run. Then reads the result.
pub(crate) async fn follow(connection: &mut Connection, run: &str) -> Result<Outcome> {
    let path = format!("/v1/runs/{run}/events?streamMode=messages");
    connection.get_stream(&path).await?.expect(200, "follow a run")?;
    outcome(connection, run).await
}

/// Reads a run that must have completed.
pub(crate) async fn outcome(connection: &mut Connection, run: &str) -> Result<Outcome> {
    let response = connection.get(&format!("/v1/runs/{run}")).await?;
    response.expect(200, "read a run")?;
    let outcome: Outcome = serde_json::from_slice(response.body).context("a run snapshot")?;
    ensure!(outcome.status == "completed", "run {run} is {}", outcome.status);
    Ok(outcome)
}

/// Accepts the approval that `run` waits for at `node`.
pub(crate) async fn accept(connection: &mut Connection, run: &str, node: &str) -> Result<()> {
    let path = format!("/v1/runs/{run}/interrupts/{node}");
    connection.post(&path, r#"{"resumeValue":{"action":"accept"}}"#).await?.expect(200, "resolve an interrupt")?;
    Ok(())
}

/// Waits for the end of a run without asking again and again: each request stays open until the log has grown.
pub(crate) async fn await_told(connection: &mut Connection, run: &str, limit: Duration) -> Result<()> {
    let (begun, mut after) = (Instant::now(), String::new());
    loop {
        ensure!(begun.elapsed() < limit, "run {run} does not end");
        let response = connection.get(&format!("/v1/runs/{run}/events/poll?timeout=10{after}")).await?;
        response.expect(200, "wait for a run")?;
        let body: Value = serde_json::from_slice(response.body)?;
        after = format!("&lastSequence={}", body["lastEventSeq"]);
        match body["runStatus"].as_str().unwrap_or_default() {
            "completed" => return Ok(()),
            ended if TERMINAL.contains(&ended) => bail!("run {run} is {ended}"),
            _ => {}
        }
    }
}

/// A cursor that no log reaches: an answer to it has no events, only how the run is.
const PAST_EVERY_LOG: u32 = u32::MAX;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress<'a> {
    run_status: &'a str,
}

/// Waits until a run with a long log has completed. Its snapshot would be folded from the log at every look, so it is
/// the end of the log that is asked for.
pub(crate) async fn await_end(connection: &mut Connection, run: &str, limit: Duration, pause: Duration) -> Result<()> {
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={PAST_EVERY_LOG}&limit=1");
    let start = Instant::now();
    loop {
        let response = connection.get(&path).await?;
        response.expect(200, "ask how a run is")?;
        let progress: Progress<'_> = serde_json::from_slice(response.body).context("an answer without events")?;
        match progress.run_status {
            "completed" => return Ok(()),
            ended if TERMINAL.contains(&ended) => bail!("run {run} is {ended}"),
            going if start.elapsed() > limit => bail!("run {run} is still {going} after {limit:?}"),
            _ => sleep(pause).await,
        }
    }
}

#[derive(Deserialize)]
struct Remembered<'a> {
    id: &'a str,
}

/// Puts an entry from a prepared request body into a memory scope and returns its id.
pub(crate) async fn remember(connection: &mut Connection, scope: &str, body: &str) -> Result<String> {
    let response = connection.post(&format!("/v1/host/baton/memory/{scope}"), body).await?;
    response.expect(201, "put a memory entry")?;
    let entry: Remembered<'_> = serde_json::from_slice(response.body).context("a memory entry")?;
    Ok(entry.id.to_owned())
}

pub(crate) async fn memory_scopes(connection: &mut Connection) -> Result<Vec<MemoryScope>> {
    let response = connection.get("/v1/host/baton/memory").await?;
    response.expect(200, "list memory scopes")?;
    let list: MemoryScopes = serde_json::from_slice(response.body).context("memory scopes")?;
    Ok(list.scopes)
}

/// Forks a run at a sequence. Returns the fork and how long its acknowledgement took.
pub(crate) async fn fork(
    connection: &mut Connection,
    source: &str,
    mode: &str,
    from: usize,
) -> Result<(String, Duration)> {
    let body = format!(r#"{{"mode":"{mode}","fromSeq":{from}}}"#);
    let response = connection.post(&format!("/v1/runs/{source}:fork"), &body).await?;
    response.expect(201, "fork a run")?;
    let forked: ForkedRun = serde_json::from_slice(response.body).context("the answer to a fork")?;
    Ok((forked.run_id.to_string(), response.total))
}
