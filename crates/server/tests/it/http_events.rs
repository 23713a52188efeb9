//! The log over HTTP: streams, whole, and by long poll.

use crate::support;
use baton_conformance::Conformance;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use baton_model::{Principal, RunId, Scopes, TenantId};
use baton_server::{Keys, ServerOptions, serve};
use baton_store::MemoryStore;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use support::{FULL, Frame, JSON, PATIENCE, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

async fn ended() -> (Site, String) {
    let site = Site::open().await;
    site.register("noop", "core.noop", json!({})).await;
    let run = site.start("noop").await;
    site.reach(&run, "completed").await;
    (site, run)
}

async fn slow(ms: u64) -> (Site, String) {
    let site = Site::open().await;
    site.register("slow", "core.delay", json!({"ms": ms})).await;
    let run = site.start("slow").await;
    (site, run)
}

fn acme() -> Principal {
    Principal {
        tenant: TenantId::new("acme"),
        subject: "test".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: false,
    }
}

fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

#[tokio::test]
async fn the_whole_log_is_gapless_and_repeatable() {
    let (site, run) = ended().await;
    let first = site.get(&format!("/v1/runs/{run}/events")).await;
    assert_eq!(first.header("content-type"), "application/json");
    let events = first.json()["events"].as_array().unwrap().clone();
    for (index, event) in events.iter().enumerate() {
        assert_eq!((&event["sequence"], &event["runId"]), (&json!(index), &json!(run)));
        for member in ["eventId", "type", "timestamp"] {
            assert!(event[member].is_string(), "{event}");
        }
        assert!(event.as_object().unwrap().contains_key("payload"), "{event}");
    }
    assert_eq!(events.last().unwrap()["type"], "run.completed");
    assert_eq!(site.get(&format!("/v1/runs/{run}/events")).await.text, first.text);
}

#[tokio::test]
async fn a_stream_of_an_ended_run_gives_the_backlog_and_closes() {
    let (site, run) = ended().await;
    let updates = site.stream(&format!("/v1/runs/{run}/events"), &[]).await.all().await;
    assert_eq!(kinds(&updates).first(), Some(&"run.started"));
    assert_eq!(kinds(&updates).last(), Some(&"run.completed"));
    assert!(!kinds(&updates).contains(&"node.started"));
    assert!(updates.iter().all(|frame| frame.data["sequence"] == frame.id && frame.data["type"] == frame.event));
    let debug = site.stream(&format!("/v1/runs/{run}/events?streamMode=debug"), &[]).await.all().await;
    assert!(debug.len() > updates.len());
    assert_eq!(debug.iter().map(|frame| frame.id).collect::<Vec<_>>(), (0..debug.len() as u64).collect::<Vec<_>>());
    let last = updates.last().unwrap().id;
    let rest = site.stream(&format!("/v1/runs/{run}/events"), &[("last-event-id", "0")]).await.all().await;
    assert_eq!(rest, updates[1..]);
    let none =
        site.stream(&format!("/v1/runs/{run}/events"), &[("last-event-id", &last.to_string())]).await.all().await;
    assert_eq!(none, []);
}

#[tokio::test]
async fn a_log_of_many_pages_arrives_whole_in_every_form() {
    let site = Site::with(|options| options.max_body_bytes = 1 << 20).await;
    let node = |n: usize| json!({"id": format!("n{n}"), "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}});
    let edge = |n: usize| json!({"id": format!("e{n}"), "sourceNodeId": format!("n{n}"), "targetNodeId": format!("n{}", n + 1)});
    let definition = json!({
        "id": "long", "name": "long", "version": "1", "triggers": [], "variables": [], "metadata": {}, "settings": {},
        "nodes": (0..1200).map(node).collect::<Vec<_>>(), "edges": (0..1199).map(edge).collect::<Vec<_>>(),
    });
    let registered = site.post("/v1/workflows", definition).await;
    assert_eq!(registered.status, 201, "{}", registered.text);
    let run = site.start("long").await;
    let whole_run = 2 + 2 * 1200;
    let live = site.stream(&format!("/v1/runs/{run}/events?streamMode=debug"), &[]).await.all().await;
    assert_eq!(live.iter().map(|frame| frame.id).collect::<Vec<_>>(), (0..whole_run).collect::<Vec<_>>());
    let log = site.get(&format!("/v1/runs/{run}/events")).await.json()["events"].as_array().unwrap().clone();
    assert_eq!(log, live.into_iter().map(|frame| frame.data).collect::<Vec<_>>());
    let batched = site.stream(&format!("/v1/runs/{run}/events?streamMode=debug&bufferMs=1000"), &[]).await.all().await;
    assert_eq!(batched.into_iter().flat_map(|frame| frame.data.as_array().unwrap().clone()).collect::<Vec<_>>(), log);
}

#[tokio::test]
async fn values_mode_sends_states_and_ends_with_the_last_one() {
    let (site, run) = slow(100).await;
    let states = site.stream(&format!("/v1/runs/{run}/events?streamMode=values"), &[]).await.all().await;
    assert!(states.iter().all(|frame| frame.event == "state.snapshot" && frame.data["atSeq"] == frame.id));
    let last = states.last().unwrap();
    assert_eq!((&last.data["runId"], &last.data["status"]), (&json!(run), &json!("completed")));
}

/// A state that is too large for a stream is named in its place, and read by itself.
#[tokio::test]
async fn a_state_too_large_for_a_stream_is_left_out_and_says_where_it_is() {
    let site = Site::with(|options| options.max_body_bytes = 1 << 20).await;
    site.register_chain("large", &[("a", "core.noop", json!({}))]).await;
    let inputs = json!({"text": "x".repeat(700_000)});
    let answer = site.post("/v1/runs", json!({"workflowId": "large", "inputs": inputs})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "completed").await;
    let states = site.stream(&format!("/v1/runs/{run}/events?streamMode=values"), &[]).await.all().await;
    let last = states.last().unwrap();
    assert_eq!(last.event, "state.snapshot.omitted");
    assert_eq!((&last.data["runId"], &last.data["status"]), (&json!(run), &json!("completed")));
    assert!(last.data["bytes"].as_u64().unwrap() > 700_000 && last.data.to_string().len() < 300, "{}", last.data);
    assert_eq!(last.data["atSeq"], last.id);
    let whole = site.get(last.data["get"].as_str().unwrap()).await.json();
    assert_eq!((&whole["status"], &whole["atSeq"]), (&json!("completed"), &last.data["atSeq"]));
}

#[tokio::test]
async fn a_live_stream_shows_events_as_they_become_durable() {
    let (site, run) = slow(200).await;
    let mut stream = site.stream(&format!("/v1/runs/{run}/events?streamMode=updates,messages"), &[]).await;
    assert_eq!(stream.next().await.unwrap().event, "run.started");
    let rest = stream.all().await;
    assert_eq!(kinds(&rest).last(), Some(&"run.completed"));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive() {
    let (site, run) = slow(60_000).await;
    let path = format!("/v1/runs/{run}/events");
    let request = Request::get(path).header(FULL.0, FULL.1).body(Body::empty()).unwrap();
    let response = site.raw(request).await;
    assert_eq!(response.headers()["cache-control"], "no-cache");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut body = response.into_body().into_data_stream();
    let began = tokio::time::Instant::now();
    while body.next().await.unwrap().unwrap() != ":keepalive\n\n" {}
    assert!(began.elapsed() <= Duration::from_secs(30));
}

/// While storage cannot be read, streams stay where they are, and then go on from there.
#[tokio::test]
async fn an_outage_cuts_no_stream_off() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::on(&store).await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;
    let mut streams = Vec::new();
    for query in ["streamMode=debug", "streamMode=values", "streamMode=debug&bufferMs=20"] {
        let mut stream = site.stream(&format!("/v1/runs/{run}/events?{query}"), &[]).await;
        let first = stream.next().await.unwrap();
        streams.push(tokio::spawn(async move { [vec![first], stream.all().await].concat() }));
    }
    let mut activity = site.stream("/v1/host/baton/activity", &[]).await;
    assert_eq!(activity.next().await.unwrap().event, "hello");
    let activity = tokio::spawn(async move { activity.next().await.unwrap().event });

    // The commit that ends the run is the first thing that nobody can read.
    store.hold();
    let cancel = {
        let (host, run) = (site.host.clone(), RunId::new(run.as_str()));
        tokio::spawn(async move { host.cancel(&acme(), &run, None).await })
    };
    let until = async |done: &dyn Fn() -> bool| {
        let patience = async {
            while !done() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, patience).await.expect("it happens");
    };
    until(&|| store.waiting() > 0).await;
    store.lose_sight();
    store.release();
    until(&|| store.refused_reads() >= 4).await;
    assert!(streams.iter().all(|stream| !stream.is_finished()) && !activity.is_finished(), "nobody was cut off");
    store.regain_sight();
    let _ = cancel.await.unwrap();

    let log = site.get(&format!("/v1/runs/{run}/events")).await.json()["events"].as_array().unwrap().clone();
    let [debug, values, buffered] = streams.try_into().unwrap();
    let debug = debug.await.unwrap();
    assert_eq!(debug.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>(), log, "each event once");
    assert_eq!(values.await.unwrap().last().unwrap().data["status"], "cancelled");
    let batches = buffered.await.unwrap();
    let events: Vec<Value> = batches.iter().flat_map(|frame| frame.data.as_array().unwrap().clone()).collect();
    assert_eq!(events, log);
    assert_eq!(activity.await.unwrap(), "relist", "what changed meanwhile is to be looked up");
}

#[tokio::test]
async fn a_buffered_stream_batches_and_does_not_hold_back_the_end() {
    let (site, run) = slow(200).await;
    let buffered = |run: &str| format!("/v1/runs/{run}/events?bufferMs=5000&streamMode=debug");
    // The first batch of a run that goes on comes when the window ends.
    site.register("slower", "core.delay", json!({"ms": 60_000})).await;
    let mut goes_on = site.stream(&buffered(&site.start("slower").await), &[]).await;
    let window = tokio::spawn(async move { goes_on.next().await });
    let batches = site.stream(&buffered(&run), &[]).await.all().await;
    assert!(!window.is_finished(), "the end was held back");
    assert!(batches.iter().all(|frame| frame.event == "batch"));
    let events: Vec<&Value> = batches.iter().flat_map(|frame| frame.data.as_array().unwrap()).collect();
    assert_eq!(events.last().unwrap()["type"], "run.completed");
    assert_eq!(batches.last().unwrap().id, events.last().unwrap()["sequence"].as_u64().unwrap());
}

#[tokio::test]
async fn modes_and_buffers_are_judged_before_the_format() {
    let (site, run) = ended().await;
    let path = format!("/v1/runs/{run}/events");
    let details = site.get(&format!("{path}?streamMode=nope")).await.refused(400, "unsupported_stream_mode");
    assert!(details["supported"].as_array().unwrap().contains(&json!("updates")));
    site.get(&format!("{path}?streamMode=values,updates")).await.refused(400, "unsupported_stream_mode");
    site.get(&format!("{path}?bufferMs=5001")).await.refused(400, "validation_error");
    site.get("/v1/runs/run_nobody/events").await.refused(404, "run_not_found");
}

#[tokio::test]
async fn a_poll_answers_at_once_when_there_is_anything_or_nothing_more_to_come() {
    let (site, run) = ended().await;
    let all = site.get(&format!("/v1/runs/{run}/events/poll")).await.json();
    assert_eq!(
        (&all["isComplete"], &all["isTerminal"], &all["runStatus"]),
        (&json!(true), &json!(true), &json!("completed"))
    );
    let count = all["events"].as_array().unwrap().len();
    assert_eq!(all["lastEventSeq"], count - 1);
    let tail = site.get(&format!("/v1/runs/{run}/events/poll?lastSequence=0")).await.json();
    assert_eq!(tail["events"].as_array().unwrap().len(), count - 1);
    let past = site.get(&format!("/v1/runs/{run}/events/poll?lastSequence=999")).await.json();
    assert_eq!((&past["events"], &past["lastEventSeq"]), (&json!([]), &json!(999)));
    let first = site.get(&format!("/v1/runs/{run}/events/poll?limit=1")).await.json();
    assert_eq!((first["events"].as_array().unwrap().len(), &first["isComplete"]), (1, &json!(false)));
    site.get(&format!("/v1/runs/{run}/events/poll?lastSequence=x")).await.refused(400, "validation_error");
}

#[tokio::test]
async fn a_poll_waits_for_news_and_ends_with_the_process() {
    let (site, run) = slow(60_000).await;
    let seen = loop {
        let page = site.get(&format!("/v1/runs/{run}/events")).await.json();
        if page["events"].as_array().unwrap().iter().any(|event| event["type"] == "node.started") {
            break page["events"].as_array().unwrap().len() - 1;
        }
    };
    let path = format!("/v1/runs/{run}/events/poll?timeout=60&lastSequence={seen}");
    let cancel = format!("/v1/runs/{run}/cancel");
    let (news, _) = tokio::join!(site.get(&path), site.post(&cancel, json!({})));
    assert!(!news.json()["events"].as_array().unwrap().is_empty());
    let (site, run) = slow(60_000).await;
    let mut stream = site.stream(&format!("/v1/runs/{run}/events"), &[]).await;
    stream.next().await.unwrap();
    site.shutdown.cancel();
    stream.all().await;
    let empty = site.get(&format!("/v1/runs/{run}/events/poll?timeout=60&lastSequence={seen}")).await;
    assert_eq!(empty.status, 200);
}

#[tokio::test]
async fn the_seam_reads_the_real_log_in_conformance_mode() {
    let site = Site::configured(|options| options.test_hooks = Conformance::hooks()).await;
    site.register("noop", "core.noop", json!({})).await;
    let run = site.start("noop").await;
    site.reach(&run, "completed").await;
    let path = format!("/v1/host/sample/test/runs/{run}/events?type=node.completed&nodeId=n");
    let events = site.get(&path).await.json()["events"].clone();
    assert_eq!((events.as_array().unwrap().len(), &events[0]["type"]), (1, &json!("node.completed")));
    assert_eq!(site.get("/v1/host/sample/test/runs/run_nobody/events").await.json()["events"], json!([]));
    assert_eq!(site.post("/v1/host/sample/test/reset", json!({})).await.json(), json!({"ok": true}));
    site.send("POST", "/v1/host/sample/test/reset", &[JSON], Body::empty()).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_served_host_ends_its_streams_and_returns_when_told_to_stop() {
    let (site, run) = slow(60_000).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServerOptions { keys: Keys::parse("full:acme").unwrap(), ..ServerOptions::default() };
    let serving = tokio::spawn(serve(listener, site.host.clone(), options, site.shutdown.clone()));
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /v1/runs/{run}/events HTTP/1.1\r\nHost: x\r\n{}: {}\r\n\r\n", FULL.0, FULL.1);
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("run.started") {
        assert_ne!(tokio::time::timeout(PATIENCE, socket.read_buf(&mut received)).await.unwrap().unwrap(), 0);
    }
    site.shutdown.cancel();
    tokio::time::timeout(PATIENCE, socket.read_to_end(&mut received)).await.expect("the stream ends").unwrap();
    assert!(received.ends_with(b"0\r\n\r\n"), "the body ends properly");
    tokio::time::timeout(PATIENCE, serving).await.expect("serve returns").unwrap().unwrap();
}
