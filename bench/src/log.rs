//! A supervisor loop as its log tells it: read back whole, checked turn by turn.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde::Deserialize;

use crate::http::Connection;

const PAGE: usize = 10_000;

#[derive(Deserialize)]
struct Page {
    events: Vec<Event>,
}

#[derive(Deserialize)]
pub(crate) struct Event {
    sequence: usize,
    #[serde(rename = "type")]
    kind: String,
    timestamp: Timestamp,
    payload: Payload,
}

/// The fields of all kinds of events that are looked at.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    iteration: Option<usize>,
    decision: Option<Decision>,
    completed_count: Option<usize>,
    failed_count: Option<usize>,
    /// Without repetitions: a run merged twice must not stand in for one that was not.
    merge_order: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Decision {
    kind: String,
}

/// The complete log of an ended run.
pub(crate) async fn read(connection: &mut Connection, run: &str) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let cursor = events.last().map_or_else(String::new, |last| format!("lastSequence={}&", last.sequence));
        let response = connection.get(&format!("/v1/runs/{run}/events/poll?{cursor}limit={PAGE}")).await?;
        response.expect(200, "read a log")?;
        let page: Page = serde_json::from_slice(response.body).context("a page of a log")?;
        // The run has ended, so an empty page is the end of its log.
        if page.events.is_empty() {
            return Ok(events);
        }
        for event in page.events {
            ensure!(event.sequence == events.len(), "event {} stands at {}", event.sequence, events.len());
            events.push(event);
        }
        if events.last().is_some_and(|last| last.kind == "run.completed") {
            return Ok(events);
        }
    }
}

/// When each turn was decided. Fails unless the log is that of a completed loop in which each of `turns` turns sent a
/// worker whose outputs were taken over, and one more turn ended it.
pub(crate) fn turns(events: &[Event], turns: usize) -> Result<Vec<Timestamp>> {
    let mut decided = Vec::with_capacity(turns + 1);
    for event in events.iter().filter(|event| event.kind == "runOrchestrator.decided") {
        let turn = decided.len() + 1;
        ensure!(
            event.payload.iteration == Some(turn),
            "turn {:?} stands where {turn} belongs",
            event.payload.iteration
        );
        let expected = if turn <= turns { "next-worker" } else { "terminate" };
        let kind = event.payload.decision.as_ref().map(|decision| decision.kind.as_str());
        ensure!(kind == Some(expected), "turn {turn} decided {kind:?}, not {expected}");
        decided.push(event.timestamp);
    }
    ensure!(decided.len() == turns + 1, "{} decisions instead of {}", decided.len(), turns + 1);
    let changes = events.iter().filter(|event| event.kind == "variable.changed").count();
    ensure!(changes == turns, "{changes} outputs were taken over in {turns} turns");
    completed(events)?;
    Ok(decided)
}

/// Fails unless one join saw `workers` workers complete.
pub(crate) fn joined(events: &[Event], workers: usize) -> Result<()> {
    let joins: Vec<&Payload> =
        events.iter().filter(|event| event.kind == "core.dispatch.join").map(|event| &event.payload).collect();
    ensure!(joins.len() == 1, "{} joins instead of one", joins.len());
    let join = joins[0];
    let merged = join.merge_order.as_ref().map(BTreeSet::len);
    let counts = (join.completed_count, join.failed_count, merged);
    ensure!(counts == (Some(workers), Some(0), Some(workers)), "completed, failed, merged: {counts:?}");
    completed(events)
}

fn completed(events: &[Event]) -> Result<()> {
    let last = events.last().map(|event| event.kind.as_str());
    ensure!(last == Some("run.completed"), "the log ends with {last:?}");
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn events(payloads: &[(&str, Value)]) -> Vec<Event> {
        let event = |(sequence, (kind, payload)): (usize, &(&str, Value))| {
            let timestamp = format!("2026-01-01T00:00:00.{sequence:06}Z");
            let event = json!({"sequence": sequence, "type": kind, "timestamp": timestamp, "payload": payload});
            serde_json::from_value(event).unwrap()
        };
        payloads.iter().enumerate().map(event).collect()
    }

    fn decided(turn: usize, kind: &str) -> (&'static str, Value) {
        ("runOrchestrator.decided", json!({"iteration": turn, "decision": {"kind": kind, "nextWorkerIds": ["w"]}}))
    }

    fn changed() -> (&'static str, Value) {
        ("variable.changed", json!({"name": "value", "next": 1}))
    }

    fn end() -> (&'static str, Value) {
        ("run.completed", json!({}))
    }

    #[test]
    fn a_whole_loop_gives_the_time_of_each_turn() {
        let log = events(&[
            decided(1, "next-worker"),
            changed(),
            decided(2, "next-worker"),
            changed(),
            decided(3, "terminate"),
            end(),
        ]);
        let times: Vec<i64> = turns(&log, 2).unwrap().iter().map(|at| at.as_microsecond() % 1_000_000).collect();
        assert_eq!(times, [0, 2, 4]);
        assert!(turns(&log, 1).is_err(), "a worker too many");
        assert!(turns(&log, 3).is_err(), "a worker too few");
    }

    #[test]
    fn gaps_lost_outputs_and_open_ends_are_noticed() {
        let gap = [decided(1, "next-worker"), changed(), decided(3, "terminate"), end()];
        assert!(turns(&events(&gap), 1).is_err());
        let lost = [decided(1, "next-worker"), decided(2, "terminate"), end()];
        assert!(turns(&events(&lost), 1).is_err());
        let open = [decided(1, "next-worker"), changed(), decided(2, "terminate")];
        assert!(turns(&events(&open), 1).is_err());
    }

    #[test]
    fn a_join_counts_every_worker_once() {
        let join = |completed: usize, failed: usize, merged: usize| {
            let order: Vec<String> = (0..completed + failed).map(|n| format!("run_{}", n.min(merged - 1))).collect();
            let payload = json!({"joinOutcome": "satisfied", "completedCount": completed, "failedCount": failed,
                "mergeOrder": order});
            events(&[("core.dispatch.join", payload), end()])
        };
        joined(&join(3, 0, 3), 3).unwrap();
        for (completed, failed, merged) in [(2, 1, 3), (3, 0, 2), (4, 0, 4)] {
            assert!(joined(&join(completed, failed, merged), 3).is_err());
        }
        assert!(joined(&events(&[end()]), 3).is_err());
    }
}
