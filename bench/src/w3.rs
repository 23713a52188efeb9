//! W3: reading a long log back, by paging and as a stream, complete and in order.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Sizes;
use crate::api;
use crate::definition::{chain, node};
use crate::http::Connection;
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::{Samples, millis};

const WORKFLOW: &str = "bench-long-log";
const PAGE: usize = 1000;
const REPEATS: usize = 9;
const BUILD_LIMIT: Duration = Duration::from_secs(120);
const BUILD_POLL: Duration = Duration::from_millis(20);
const PAGING_MS: f64 = 20.0;
const STREAM_MS: f64 = 50.0;
const FIRST_BYTE_MS: f64 = 5.0;

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    let mut connection = server.connect().await?;
    let begun = Instant::now();
    let run = build_log(&mut connection, sizes.log_events).await?;
    let built = begun.elapsed();

    let mut paging = Vec::new();
    let mut whole = Vec::new();
    let mut stream = Vec::new();
    let mut first_bytes = Vec::new();
    // The first round warms caches on both sides and is not counted.
    for round in 0..=REPEATS {
        let (paged, pages) = read_by_pages(&mut connection, &run, sizes.log_events).await?;
        let response = connection.get(&format!("/v1/runs/{run}/events")).await?;
        response.expect(200, "read all events")?;
        let all = response.total;
        check_page(response.body, 0, sizes.log_events)?;
        let response = connection.get_stream(&format!("/v1/runs/{run}/events?streamMode=debug")).await?;
        response.expect(200, "stream events")?;
        let (streamed, first_byte) = (response.total, response.first_byte);
        check_stream(response.body, sizes.log_events)?;
        if round > 0 {
            paging.push(paged);
            whole.push(all);
            stream.push(streamed);
            first_bytes.extend([pages, first_byte]);
        }
    }
    server.kill().await?;

    let count = sizes.log_events;
    let mut section = report.section("W3");
    section.show(format!("build a log of {count} events"), millis(built), "ms");
    let mut total = |name: &str, durations: Vec<Duration>, bound: Option<f64>| {
        let samples = Samples::new(durations);
        let value = millis(samples.median());
        match bound {
            Some(bound) => section.judge(name, value, "ms", Bound::AtMost(bound)),
            None => section.show(name, value, "ms"),
        };
        section.note(format!("median of {}, worst {:.1} ms", samples.len(), millis(samples.max())));
    };
    total("read by paging", paging, Some(PAGING_MS));
    total("read in one answer", whole, None);
    total("read by SSE", stream, Some(STREAM_MS));
    total("first byte", first_bytes, Some(FIRST_BYTE_MS));
    Ok(())
}

/// Runs a chain of noops that leaves a log of exactly `events` events.
async fn build_log(connection: &mut Connection, events: usize) -> Result<String> {
    api::register(connection, &long_chain(events)).await?;
    let run = api::start_run(connection, &json!({ "workflowId": WORKFLOW }).to_string()).await?;
    api::poll_completed(connection, &run, BUILD_LIMIT, BUILD_POLL).await?;
    Ok(run)
}

/// The run's start and end are one event each, a noop node is two.
fn long_chain(events: usize) -> Value {
    let length = events.saturating_sub(2) / 2;
    let nodes: Vec<Value> = (0..length).map(|i| node(&format!("n{i}"), "core.noop", json!({}))).collect();
    chain(WORKFLOW, &nodes, json!([]))
}

/// Reads the log page by page. Returns the time spent reading and the first page's first byte; checking the pages is
/// not part of either.
async fn read_by_pages(connection: &mut Connection, run: &str, events: usize) -> Result<(Duration, Duration)> {
    let mut spent = Duration::ZERO;
    let mut first_byte = None;
    let mut next = 0;
    for _ in 0..=events {
        let cursor = if next == 0 { String::new() } else { format!("lastSequence={}&", next - 1) };
        let path = format!("/v1/runs/{run}/events/poll?{cursor}limit={PAGE}");
        let response = connection.get(&path).await?;
        response.expect(200, "poll events")?;
        spent += response.total;
        first_byte.get_or_insert(response.first_byte);
        let count = check_page_from(response.body, next)?;
        ensure!(count > 0, "a page is empty although {} events are missing", events - next);
        next += count;
        if next >= events {
            break;
        }
    }
    ensure!(next == events, "paging gave {next} events, not {events}");
    Ok((spent, first_byte.unwrap_or_default()))
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Sequenced>,
}

#[derive(Deserialize)]
struct Sequenced {
    sequence: usize,
}

fn check_page(body: &[u8], from: usize, events: usize) -> Result<()> {
    let count = check_page_from(body, from)?;
    ensure!(count == events, "one answer gave {count} events, not {events}");
    Ok(())
}

/// Checks that a page continues at `from` without a gap, and returns its length.
fn check_page_from(body: &[u8], from: usize) -> Result<usize> {
    let page: Page = serde_json::from_slice(body).context("a page of events")?;
    for (offset, event) in page.events.iter().enumerate() {
        ensure!(event.sequence == from + offset, "event {} stands where {} belongs", event.sequence, from + offset);
    }
    Ok(page.events.len())
}

/// Checks that a stream carries every event once and in order, both in its frame ids and in its data.
fn check_stream(body: &[u8], events: usize) -> Result<()> {
    let text = std::str::from_utf8(body).context("the stream is not text")?;
    let mut next = 0;
    for frame in text.split("\n\n") {
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
        let Some(data) = field("data:") else { continue };
        let id: usize = field("id:").context("a frame without an id")?.parse()?;
        let event: Sequenced = serde_json::from_str(data).context("a frame's data")?;
        ensure!(id == next && event.sequence == next, "frame {id} stands where {next} belongs");
        next += 1;
    }
    ensure!(next == events, "the stream gave {next} events, not {events}");
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_as_long_as_its_log_needs() {
        let chain = long_chain(10_000);
        assert_eq!(chain["nodes"].as_array().unwrap().len(), 4999);
        assert_eq!(chain["edges"].as_array().unwrap().len(), 4998);
    }

    #[test]
    fn gaps_repeats_and_short_streams_are_noticed() {
        let frame = |n: usize| format!("id: {n}\nevent: x\ndata: {{\"sequence\":{n}}}\n\n");
        let good = format!(":keepalive\n\n{}{}", frame(0), frame(1));
        check_stream(good.as_bytes(), 2).unwrap();
        assert!(check_stream(good.as_bytes(), 3).is_err());
        assert!(check_stream(format!("{}{}", frame(0), frame(2)).as_bytes(), 2).is_err());
        assert!(check_stream(format!("{}{}", frame(0), frame(0)).as_bytes(), 2).is_err());
        assert_eq!(check_page_from(br#"{"events":[{"sequence":3},{"sequence":4}]}"#, 3).unwrap(), 2);
        assert!(check_page_from(br#"{"events":[{"sequence":3},{"sequence":5}]}"#, 3).is_err());
    }
}
