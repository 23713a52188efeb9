//! Readers that do not read, on logs of large events.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use baton_server::TenantLimits;
use baton_store::MemoryStore;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use support::served::{Served, short, until};
use support::{FULL, Frames, Site};

/// One page of a stream, and what a record weighs besides the text it was given.
const PAGE: u64 = 256 * 1024;
const MIB: u64 = 1024 * 1024;
const LARGE: usize = 200_000;
/// The first record has the text twice: for everybody, and for the host itself. It is more than a page, and comes alone.
const LARGEST: u64 = 2 * LARGE as u64 + 4096;
const NODES: usize = 30;

/// An ended run whose log weighs some six megabytes.
async fn large_log() -> (Site, Arc<MemoryStore>, String) {
    large_log_with(TenantLimits::default()).await
}

async fn large_log_with(tenants: TenantLimits) -> (Site, Arc<MemoryStore>, String) {
    let store = Arc::new(MemoryStore::new());
    let host = baton_runtime::Host::open(Arc::clone(&store) as _, support::host_options()).await.unwrap();
    let site = Site::over(host, |options| (options.max_body_bytes, options.tenants) = (1 << 20, tenants));
    let run = large_run(&site, "x").await;
    (site, store, run)
}

async fn large_run(site: &Site, letter: &str) -> String {
    let nodes: Vec<(String, Value)> = (0..NODES)
        .map(|n| (format!("n{n}"), json!({"name": format!("v{}", n % 4), "expression": "variables.text"})))
        .collect();
    let nodes: Vec<_> = nodes.iter().map(|(id, config)| (id.as_str(), "core.setVariable", config.clone())).collect();
    site.register_chain("large", &nodes).await;
    let inputs = json!({"text": letter.repeat(LARGE)});
    let answer = site.post("/v1/runs", json!({"workflowId": "large", "inputs": inputs})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "completed").await;
    run
}

fn request(path: &str, accept: &str) -> Request<Body> {
    Request::get(path).header(FULL.0, FULL.1).header("accept", accept).body(Body::empty()).unwrap()
}

/// Where somebody has read the whole log once.
async fn whole(site: &Site, store: &MemoryStore, run: &str) -> (u64, Vec<Value>) {
    let before = store.record_bytes_read();
    let log = site.log(run).await;
    (store.record_bytes_read() - before, log)
}

#[tokio::test]
async fn only_what_is_taken_is_read() {
    let (site, store, run) = large_log().await;
    let (weight, log) = whole(&site, &store, &run).await;
    assert!(weight > 4 * MIB, "{weight}");
    for accept in ["text/event-stream", "application/json"] {
        let before = store.record_bytes_read();
        let response = site.raw(request(&format!("/v1/runs/{run}/events?streamMode=debug"), accept)).await;
        let read = || store.record_bytes_read() - before;
        assert!(read() <= LARGEST, "{accept}: {} before anything was taken", read());
        let mut body = response.into_body().into_data_stream();
        let mut taken = 0;
        while let Some(piece) = body.next().await {
            let piece = piece.unwrap().len() as u64;
            assert!(piece <= PAGE + 64 * 1024, "{accept}: a piece of {piece}");
            taken += piece;
            assert!(read() <= taken + LARGEST + 2 * PAGE, "{accept}: {} was read and {taken} taken", read());
        }
        assert!(taken > 4 * MIB, "{accept}");
    }
    let frames =
        Frames::new(site.raw(request(&format!("/v1/runs/{run}/events?streamMode=debug"), "text/event-stream")).await);
    let told: Vec<Value> = frames.all().await.into_iter().map(|frame| frame.data).collect();
    assert_eq!(told, log, "and nothing is missing");
}

#[tokio::test]
async fn a_reader_that_stops_is_dropped_and_resumes() {
    let (site, store, run) = large_log().await;
    let served = Served::limited(&site.host, |limits| limits.write = short(500)).await;
    let (weight, log) = whole(&site, &store, &run).await;
    let path = format!("/v1/runs/{run}/events?streamMode=debug");
    let before = store.record_bytes_read();
    let mut readers = Vec::new();
    for _ in 0..20 {
        let mut socket = served.asking("GET", &path, &[FULL]).await;
        until(&mut socket, "run.started").await;
        readers.push(socket);
    }
    // They are let go, while nobody reads: the host has nothing in progress any more.
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    loop {
        let metrics = served.get("/metrics", &[]).await.body;
        let closed =
            metrics.lines().find(|line| line.starts_with("baton_http_connections_closed_total{why=\"not_reading\"}"));
        if closed.is_some_and(|line| line.split(' ').next_back().unwrap().parse::<f64>().unwrap() >= 20.0) {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "readers that do not read are kept: {closed:?}");
        tokio::time::sleep(short(50)).await;
    }
    // Nobody got to the end: what lies in the sockets of both sides was read, and little more.
    let read = store.record_bytes_read() - before;
    assert!(read < 20 * weight, "{read} of {weight} each");
    // What they have is whole frames up to somewhere; from there on it goes on.
    let socket = readers.pop().unwrap();
    let part = support::served::read_reply(socket).await.body;
    let last = part.rfind("\nid: ").map(|at| &part[at + 5..]).and_then(|rest| rest.split('\n').next());
    let last: u64 = last.and_then(|id| id.parse().ok()).unwrap_or(0);
    // The last frame may be torn, so its reader resumes before it.
    let after = last.saturating_sub(1);
    let rest = site.stream(&path, &[("last-event-id", &after.to_string())]).await.all().await;
    let rest: Vec<Value> = rest.into_iter().map(|frame| frame.data).collect();
    assert_eq!(rest, log[usize::try_from(after).unwrap() + 1..]);
    served.stop().await;
}

#[tokio::test]
async fn a_poll_is_bounded_by_bytes_and_goes_on_where_it_ended() {
    let (site, store, run) = large_log().await;
    let (_, log) = whole(&site, &store, &run).await;
    let mut events = Vec::new();
    let mut after = String::new();
    let mut pages = 0;
    loop {
        let before = store.record_bytes_read();
        let answer = site.get(&format!("/v1/runs/{run}/events/poll?limit=10000{after}")).await;
        assert!(answer.size as u64 <= MIB + 4096, "{}", answer.size);
        assert!(store.record_bytes_read() - before <= MIB);
        let page = answer.json();
        events.extend(page["events"].as_array().unwrap().clone());
        pages += 1;
        assert_eq!(page["lastEventSeq"], events.len() - 1);
        assert_eq!(page["isComplete"], page["isTerminal"]);
        if page["isComplete"] == true {
            break;
        }
        after = format!("&lastSequence={}", page["lastEventSeq"]);
    }
    assert!(pages >= 5, "{pages}");
    assert_eq!(events, log);
    // Past the end there is nothing to wait for, whatever comes: the answer is at once, and empty.
    let past = site.get(&format!("/v1/runs/{run}/events/poll?lastSequence=999999&timeout=60")).await.json();
    assert_eq!((&past["events"], &past["lastEventSeq"]), (&json!([]), &json!(999_999)));
}

#[tokio::test]
async fn a_diff_is_bounded_by_bytes_and_goes_on_where_it_ended() {
    let (site, store, run) = large_log().await;
    let other = large_run(&site, "y").await;
    let mut told = Vec::new();
    let mut from = 0;
    let mut pages = 0;
    loop {
        let before = store.record_bytes_read();
        let answer = site.get(&format!("/v1/runs/{run}:diff?against={other}&fromSeq={from}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.size as u64 <= 2 * MIB + 64 * 1024, "{}", answer.size);
        let diff = answer.json();
        support::protocol::judge("run-diff-response", &diff);
        let differences = diff["eventDiffs"].as_array().unwrap().clone();
        // The state is folded from both logs each time; beyond that only pages are read.
        assert!(store.record_bytes_read() > before);
        pages += 1;
        let Some(last) = differences.last() else { break };
        from = last["seq"].as_u64().unwrap() + 1;
        told.extend(differences.iter().map(|diff| diff["seq"].as_u64().unwrap()));
        assert!(pages < 1000);
    }
    assert!(pages >= 5, "{pages}");
    // Every event that holds the text differs, each is told once.
    assert!(told.is_sorted() && told.len() >= NODES, "{told:?}");
    let log = site.log(&run).await;
    let with_text = log.iter().filter(|event| event.to_string().len() > LARGE).count();
    assert_eq!(told.len(), with_text);
}

#[tokio::test]
async fn what_waits_for_a_tenants_readers_is_bounded_for_all_of_them_together() {
    let (site, _, run) = large_log_with(TenantLimits { reply_bytes: 1_500_000, ..TenantLimits::default() }).await;
    let path = format!("/v1/runs/{run}/events?streamMode=debug");
    // Each takes a piece, which then waits to be sent.
    let mut readers = Vec::new();
    let cut = loop {
        let mut body = site.raw(request(&path, "text/event-stream")).await.into_body().into_data_stream();
        match body.next().await.expect("something comes") {
            Ok(piece) => assert!(piece.len() > LARGE),
            Err(error) => break error,
        }
        readers.push(body);
        assert!(readers.len() < 100, "there is no bound");
    };
    assert!(readers.len() >= 5, "{}: {cut}", readers.len());
    // Nor is there room for a whole answer. Small ones go, and so does what others ask for.
    let details = site.get(&format!("/v1/runs/{run}/events/poll")).await.refused(429, "rate_limited");
    assert_eq!((&details["scope"], &details["limit"]), (&json!("tenant"), &json!(1_500_000)));
    assert_eq!(site.get("/v1/runs?limit=1").await.status, 200);
    // A reader that goes on makes room.
    let going_on = readers.pop().unwrap();
    assert!(going_on.count().await > 1);
    drop(readers);
    assert_eq!(site.get(&format!("/v1/runs/{run}/events/poll")).await.status, 200);
}
