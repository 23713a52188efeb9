//! Streams under strain: every resume point, a thousand readers, a killed host, a host that is asked to stop.

use crate::support;

use std::time::Duration;

use serde_json::{Value, json};
use support::flow::{chain, node};
use support::http::{PATIENCE, Response};
use support::sse::{Stream, sequences};
use support::test_server::{conformance_host, test_server};
use support::web::Web;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

#[test]
fn every_resume_point_gives_each_later_event_exactly_once() {
    let test_server = test_server();
    let web = test_server.web();
    let nodes = (0..19).map(|at| node(&format!("n{at}"), "core.noop", json!({}))).collect();
    web.post("/v1/workflows", chain("forty-events", nodes)).expect(201);
    let run = web.start("forty-events");
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(events.len(), 40);
    for after in 0..events.len() {
        let frames = web.stream(&run, "?streamMode=debug", Some(after as u64)).rest();
        let streamed: Vec<Value> = frames.into_iter().map(|frame| frame.data).collect();
        assert_eq!(streamed, events[after + 1..], "after {after}");
    }
    let whole = web.stream(&run, "?streamMode=debug", None).rest();
    assert_eq!(sequences(&whole), (0..40).collect::<Vec<_>>());
}

/// How many connections this process may hold, with room for everything else it has open.
fn readers() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    soft.and_then(|soft| soft.parse::<usize>().ok()).map_or(200, |soft| soft.saturating_sub(100).min(1000))
}

/// Opens a stream, says when the question has arrived, and returns everything sent until the host closes.
async fn follow(address: String, request: Vec<u8>, asked: mpsc::Sender<()>) -> Vec<u8> {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.write_all(&request).await.unwrap();
    let mut printed = false;
    let mut received = Vec::new();
    while socket.read_buf(&mut received).await.unwrap() > 0 {
        if !printed && received.windows(18).any(|part| part == b"approval.requested") {
            printed = true;
            asked.send(()).await.unwrap();
        }
    }
    received
}

#[test]
fn a_thousand_readers_of_one_run_all_see_the_whole_log() {
    let test_server = test_server();
    let web = test_server.web();
    let mut nodes = vec![node("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept"]}))];
    nodes.extend((0..5).map(|at| node(&format!("n{at}"), "core.noop", json!({}))));
    web.post("/v1/workflows", chain("watched", nodes)).expect(201);
    let run = web.start("watched");
    web.until_status(&run, "waiting-approval");

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let request = web.stream_request(&run, "?streamMode=debug", None);
    let streams: Vec<Vec<u8>> = runtime.block_on(async {
        let (asked, mut waiting) = mpsc::channel(1024);
        let count = readers();
        let follow = |_| tokio::spawn(follow(web.address.clone(), request.clone(), asked.clone()));
        let readers: Vec<_> = (0..count).map(follow).collect();
        // All of them are attached and have the backlog before anything new happens.
        for _ in 0..count {
            tokio::time::timeout(PATIENCE, waiting.recv()).await.expect("every reader gets the backlog").unwrap();
        }
        let (answering, answered) = (web.clone(), run.clone());
        let answer = move || answering.resolve(&answered, "gate", json!({"action": "accept"})).expect(200);
        tokio::task::spawn_blocking(answer).await.unwrap();
        let mut streams = Vec::with_capacity(count);
        for reader in readers {
            streams.push(tokio::time::timeout(PATIENCE, reader).await.expect("the host closes every stream").unwrap());
        }
        streams
    });
    let (_, events) = web.ended(&run, "completed");
    for stream in streams {
        let frames = Stream::new(Response::read(&stream[..]).unwrap()).rest();
        assert_eq!(frames.into_iter().map(|frame| frame.data).collect::<Vec<_>>(), events);
    }
}

#[test]
fn a_reader_loses_nothing_when_the_host_dies_under_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = conformance_host(folder.path(), &[]);
    let mut web = Web::new(&host.url, Some("alpha"));
    let nodes = (0..12).map(|at| node(&format!("d{at}"), "core.delay", json!({"ms": 120}))).collect();
    web.post("/v1/workflows", chain("slow", nodes)).expect(201);
    let run = web.start("slow");
    let mut seen: Vec<Value> = Vec::new();
    for enough in [3, 9, 16] {
        let mut stream = web.stream(&run, "?streamMode=debug", last(&seen));
        while seen.len() < enough {
            seen.push(stream.next().unwrap().expect("the run is still going").data);
        }
        host.kill();
        // What was already on its way still counts; then the stream breaks off instead of ending.
        loop {
            match stream.next() {
                Ok(Some(frame)) => seen.push(frame.data),
                Ok(None) => panic!("a dead host closed its stream in good order"),
                Err(_) => break,
            }
        }
        host = conformance_host(folder.path(), &[]);
        web = Web::new(&host.url, Some("alpha"));
    }
    seen.extend(web.stream(&run, "?streamMode=debug", last(&seen)).rest().into_iter().map(|frame| frame.data));
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(seen, events);
    assert_eq!(host.stop(), 0);
}

fn last(seen: &[Value]) -> Option<u64> {
    seen.last().map(|event| event["sequence"].as_u64().unwrap())
}

#[test]
fn a_host_that_is_asked_to_stop_ends_its_streams_and_leaves_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = conformance_host(folder.path(), &[]);
    let web = Web::new(&host.url, Some("alpha"));
    let run = web.start("conformance-approval");
    web.until_status(&run, "waiting-approval");
    let events = web.events(&run);
    let mut streams: Vec<Stream> = ["", "?streamMode=debug", "?streamMode=values", "?bufferMs=5000"]
        .into_iter()
        .map(|query| web.stream(&run, query, None))
        .collect();
    for stream in &mut streams {
        stream.next().unwrap().expect("there is a backlog");
    }
    let polling = {
        let (web, path) =
            (web.clone(), format!("/v1/runs/{run}/events/poll?lastSequence={}&timeout=60", events.len() - 1));
        std::thread::spawn(move || web.attempt("GET", &path, &[], None))
    };
    host.ask_to_stop();
    assert_eq!(host.ends_within(Duration::from_secs(5)), Some(0));
    for stream in streams {
        // `rest` insists on an orderly end.
        stream.rest();
    }
    // A poll that got in before the stop is answered; one that came too late finds nobody.
    if let Ok(answer) = polling.join().unwrap() {
        assert_eq!(answer.expect(200)["events"], json!([]));
    }

    let host = conformance_host(folder.path(), &[]);
    let web = Web::new(&host.url, Some("alpha"));
    assert_eq!(web.events(&run), events);
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    web.ended(&run, "completed");
    assert_eq!(host.stop(), 0);
}
