//! Following a run: modes, batches, resuming, polling.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use support::PATIENCE;
use support::audit;
use support::sse::{Frame, sequences};
use support::test_server::{TestServer, test_server};
use support::web::Web;

/// Long enough to be attached to while it runs.
fn delayed(test_server: &TestServer, ms: u64) -> String {
    test_server.web().start_with(json!({"workflowId": "conformance-delay", "inputs": {"delayMs": ms}}))
}

/// The longest window of a buffered stream, as the host itself measures it: a stream whose run goes on, so that its first
/// batch comes when the window ends. What comes before that batch was not held back by a window that began later.
struct Window {
    web: Web,
    run: String,
    passed: Arc<AtomicBool>,
}

impl Window {
    fn open(test_server: &TestServer) -> Self {
        let (web, run) = (test_server.web(), delayed(test_server, 60_000));
        let mut stream = web.stream(&run, "?streamMode=debug&bufferMs=5000", None);
        let passed = Arc::new(AtomicBool::new(false));
        let printed = Arc::clone(&passed);
        std::thread::spawn(move || {
            let _ = stream.next();
            printed.store(true, Ordering::SeqCst);
        });
        Self { web, run, passed }
    }

    fn has_passed(self) -> bool {
        let passed = self.passed.load(Ordering::SeqCst);
        self.web.cancel(&self.run);
        passed
    }
}

fn types(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

#[test]
fn updates_show_the_milestones_and_the_host_closes() {
    let test_server = test_server();
    let run = delayed(&test_server, 300);
    let frames = test_server.web().stream(&run, "?streamMode=updates", None).rest();
    assert_eq!(types(&frames), ["run.started", "node.completed", "run.completed"]);
    sequences(&frames);
    // The default is the same.
    assert_eq!(test_server.web().stream(&run, "", None).rest(), frames);
    test_server.web().ended(&run, "completed");
}

#[test]
fn debug_shows_the_whole_log() {
    let test_server = test_server();
    let run = delayed(&test_server, 300);
    let debug = test_server.web().stream(&run, "?streamMode=debug", None).rest();
    let (_, events) = test_server.web().ended(&run, "completed");
    let streamed: Vec<Value> = debug.into_iter().map(|frame| frame.data).collect();
    assert_eq!(streamed, events);
    let updates = test_server.web().stream(&run, "", None).rest();
    assert!(streamed.len() >= updates.len());
}

#[test]
fn values_send_whole_states_and_the_last_one_is_the_end() {
    let test_server = test_server();
    let run = delayed(&test_server, 300);
    let frames = test_server.web().stream(&run, "?streamMode=values", None).rest();
    assert!(!frames.is_empty());
    for frame in &frames {
        assert_eq!(frame.event, "state.snapshot");
        assert_eq!(frame.data["runId"], run.as_str());
        assert_eq!(frame.data["atSeq"].as_u64(), frame.id);
        audit::snapshot(&frame.data);
    }
    assert_eq!(frames.last().unwrap().data["status"], "completed");
    // One at least, also when the run has ended long ago.
    assert!(!test_server.web().stream(&run, "?streamMode=values", None).rest().is_empty());
    test_server.web().ended(&run, "completed");
}

#[test]
fn modes_are_checked_before_anything_is_sent() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    for mode in ["everything", "updates,everything", "values,updates", "updates,values"] {
        for accept in ["text/event-stream", "application/json"] {
            let path = format!("/v1/runs/{run}/events?streamMode={mode}");
            let refusal = web.send("GET", &path, &[("Accept", accept)], None).refused(400, "unsupported_stream_mode");
            let supported = refusal["details"]["supported"].as_array().unwrap();
            assert!(supported.contains(&json!("updates")), "{refusal}");
            assert!(supported.iter().all(|mode| !mode.as_str().unwrap().contains(',')), "{refusal}");
        }
    }
    for buffer in ["5001", "-1", "1.5", "x"] {
        let path = format!("/v1/runs/{run}/events?bufferMs={buffer}");
        web.send("GET", &path, &[("Accept", "text/event-stream")], None).refused(400, "validation_error");
    }
    web.ended(&run, "completed");
}

#[test]
fn a_list_of_modes_is_their_union_in_log_order() {
    let test_server = test_server();
    let run = delayed(&test_server, 300);
    let mixed = test_server.web().stream(&run, "?streamMode=updates,messages", None).rest();
    assert_eq!(mixed, test_server.web().stream(&run, "?streamMode=updates", None).rest());
    let all = test_server.web().stream(&run, "?streamMode=updates,debug", None).rest();
    let (_, events) = test_server.web().ended(&run, "completed");
    assert_eq!(sequences(&all).len(), events.len());
}

#[test]
fn text_of_a_model_arrives_as_chunks() {
    let test_server = test_server();
    let web = test_server.web();
    let mock = json!({"id": "stream-text", "config": {"tokens": ["to", "gether"], "finishReason": "stop"}});
    let run = web.start_with(json!({"workflowId": "conformance-stream-text", "configurable": {"mockProvider": mock}}));
    let frames = web.stream(&run, "?streamMode=messages", None).rest();
    let (_, events) = web.ended(&run, "completed");
    assert!(types(&frames).iter().all(|event| *event == "ai.message.chunk"), "{frames:?}");
    let text: String = frames.iter().map(|frame| frame.data["chunk"].as_str().unwrap()).collect();
    assert_eq!(text, "together");
    let last = &frames.last().unwrap().data;
    assert_eq!((&last["isLast"], &last["meta"]["finishReason"]), (&json!(true), &json!("stop")));
    assert!(last["meta"]["usage"]["completionTokens"].is_u64(), "{last}");
    assert!(frames.iter().rev().skip(1).all(|frame| frame.data["isLast"] == false), "{frames:?}");
    assert_eq!(support::web::of_type(&events, "output.chunk").len(), frames.len());
    let unknown = json!({"workflowId": "conformance-stream-text", "configurable": {"mockProvider": {"id": "none"}}});
    web.post("/v1/runs", unknown).refused(400, "unsupported_mock_provider");
}

#[test]
fn a_buffered_stream_sends_batches_and_the_end_does_not_wait() {
    let test_server = test_server();
    let window = Window::open(&test_server);
    let run = delayed(&test_server, 300);
    let frames = test_server.web().stream(&run, "?streamMode=debug&bufferMs=5000", None).rest();
    assert!(!window.has_passed(), "the end of the run was held back");
    let (_, events) = test_server.web().ended(&run, "completed");
    let mut gathered = Vec::new();
    for frame in &frames {
        assert_eq!(frame.event, "batch");
        let batch = frame.data.as_array().unwrap();
        assert_eq!(batch.last().unwrap()["sequence"].as_u64(), frame.id);
        gathered.extend(batch.iter().cloned());
    }
    assert_eq!(gathered, events);
    let plain = test_server.web().stream(&run, "?bufferMs=0", None).rest();
    assert!(!types(&plain).contains(&"batch"));
}

#[test]
fn a_question_is_not_held_back_by_a_buffer() {
    let test_server = test_server();
    let web = test_server.web();
    let window = Window::open(&test_server);
    let run = web.start("conformance-approval");
    let mut stream = web.stream(&run, "?bufferMs=5000", None);
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &Value| event["type"] == "node.suspended") {
        let frame = stream.next().unwrap().expect("the run still waits");
        seen.extend(frame.data.as_array().unwrap().iter().cloned());
    }
    assert!(!window.has_passed(), "the question was held back");
    web.cancel(&run);
    stream.rest();
    web.ended(&run, "cancelled");
}

#[test]
fn resuming_gives_only_what_is_later() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-multi-node");
    let (_, events) = web.ended(&run, "completed");
    let last = events.len() as u64 - 1;
    for after in 0..last {
        let frames = web.stream(&run, "?streamMode=debug", Some(after)).rest();
        assert_eq!(sequences(&frames), (after + 1..=last).collect::<Vec<_>>());
    }
    // At or past the end there is nothing to send, and the stream closes.
    assert!(web.stream(&run, "?streamMode=debug", Some(last)).rest().is_empty());
    assert!(web.stream(&run, "?streamMode=debug", Some(last + 50)).rest().is_empty());
}

#[test]
fn a_reader_may_leave_and_come_back_while_the_run_lives() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start_with(json!({"workflowId": "conformance-cancellable", "inputs": {"delayMs": 30_000}}));
    let mut stream = web.stream(&run, "?streamMode=debug", None);
    let first = stream.next().unwrap().unwrap();
    drop(stream);
    let mut stream = web.stream(&run, "?streamMode=debug", first.id);
    let second = stream.next().unwrap().unwrap();
    assert_eq!(second.id, first.id.map(|id| id + 1));
    web.cancel(&run);
    let rest = stream.rest();
    assert_eq!(rest.last().unwrap().event, "run.cancelled");
    web.ended(&run, "cancelled");
}

#[test]
fn json_is_sent_only_to_those_who_ask_for_it() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    let (_, events) = web.ended(&run, "completed");
    let path = format!("/v1/runs/{run}/events");
    let content_type = |accept: &str| {
        let answer = web.send("GET", &path, &[("Accept", accept)], None);
        answer.expect_type()
    };
    assert!(content_type("application/json").starts_with("application/json"));
    for accept in ["text/event-stream", "*/*", "application/json, text/event-stream"] {
        assert_eq!(content_type(accept), "text/event-stream", "{accept}");
    }
    assert_eq!(web.get(&path).expect(200), json!({"events": events}));
}

#[test]
fn polling_answers_at_once_when_there_is_something_or_nothing_more() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    let (_, events) = web.ended(&run, "completed");
    let last = events.len() - 1;
    let poll = |query: &str| web.get(&format!("/v1/runs/{run}/events/poll{query}")).expect(200);
    let all = poll("");
    assert_eq!(all["events"], json!(events));
    assert_eq!((&all["runId"], &all["runStatus"]), (&json!(run), &json!("completed")));
    assert_eq!(
        (&all["isComplete"], &all["isTerminal"], &all["lastEventSeq"]),
        (&json!(true), &json!(true), &json!(last))
    );
    assert_eq!(poll("?lastSequence=0")["events"], json!(events[1..]));
    assert_eq!(poll("?since=1")["events"], json!(events[2..]));
    let began = Instant::now();
    for query in [format!("?lastSequence={last}&timeout=60"), "?lastSequence=9999&timeout=60".to_owned()] {
        assert_eq!(poll(&query)["events"], json!([]));
    }
    assert!(began.elapsed() < PATIENCE, "each would be held open for a minute");
    for bad in ["?lastSequence=x", "?lastSequence=-1", "?timeout=0", "?timeout=61"] {
        web.get(&format!("/v1/runs/{run}/events/poll{bad}")).refused(400, "validation_error");
    }
}

#[test]
fn a_poll_waits_for_the_next_event() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-approval");
    web.until_status(&run, "waiting-approval");
    let last = web.events(&run).len() - 1;
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={last}");
    assert_eq!(web.get(&format!("{path}&timeout=1")).expect(200)["events"], json!([]));
    let page = std::thread::scope(|scope| {
        let polling = scope.spawn(|| web.get(&format!("{path}&timeout=60")).expect(200));
        web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
        polling.join().unwrap()
    });
    assert_eq!(page["events"][0]["sequence"], json!(last + 1));
    web.ended(&run, "completed");
}
