//! Runs with long logs, made quickly: a loop over nodes that do nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api;
use crate::definition::{node, repeated};
use crate::http::Connection;

/// A visit of the loop's head and four of its body are two events each.
const EVENTS_PER_ROUND: usize = 10;
const BODY: usize = 4;
/// The run's start and end, and the head's last visit.
const AROUND: usize = 4;
const BUILD_LIMIT: Duration = Duration::from_secs(120);
const BUILD_POLL: Duration = Duration::from_millis(5);

/// A completed run and the length of its log.
pub(crate) struct LongLog {
    pub(crate) run: String,
    pub(crate) events: usize,
}

impl LongLog {
    /// The sequence of the run's end.
    pub(crate) fn last(&self) -> usize {
        self.events - 1
    }
}

/// Runs a loop that leaves at least `events` events, with the memory of `scope`.
pub(crate) async fn build(connection: &mut Connection, events: usize, scope: &str) -> Result<LongLog> {
    let rounds = events.div_ceil(EVENTS_PER_ROUND);
    let workflow = format!("bench-rounds-{rounds}");
    let body: Vec<Value> = (0..BODY).map(|place| node(&format!("n{place}"), "core.noop", json!({}))).collect();
    api::register(connection, &repeated(&workflow, rounds, &body)).await?;
    let start = json!({ "workflowId": workflow, "scopeId": scope }).to_string();
    let run = api::start_run(connection, &start).await?;
    api::await_end(connection, &run, BUILD_LIMIT, BUILD_POLL).await?;
    let log = LongLog { run, events: rounds * EVENTS_PER_ROUND + AROUND };
    check_end(connection, &log.run, log.events).await?;
    Ok(log)
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    sequence: usize,
    #[serde(rename = "type")]
    kind: String,
}

/// Fails unless the log has this many events and its last one says that the run completed.
pub(crate) async fn check_end(connection: &mut Connection, run: &str, events: usize) -> Result<()> {
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={}&limit=10", events - 2);
    let response = connection.get(&path).await?;
    response.expect(200, "read the end of a log")?;
    let page: Page = serde_json::from_slice(response.body).context("the end of a log")?;
    let end: Vec<(usize, &str)> = page.events.iter().map(|event| (event.sequence, event.kind.as_str())).collect();
    ensure!(end == [(events - 1, "run.completed")], "the log of {run} ends with {end:?} and not at {}", events - 1);
    Ok(())
}
