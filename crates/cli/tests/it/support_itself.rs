//! The judges are judged: an audit that accepts anything would make every scenario pass.

use crate::support;

use serde_json::{Value, json};
use support::audit;
use support::http::Response;
use support::sse::Stream;

fn event(sequence: u64, kind: &str, payload: Value) -> Value {
    json!({
        "eventId": format!("run_x.{sequence}"), "runId": "run_x", "type": kind, "payload": payload,
        "timestamp": "2026-01-01T00:00:00Z", "sequence": sequence, "schemaVersion": 1
    })
}

fn log() -> Vec<Value> {
    let started = json!({"workflowId": "w", "inputs": {}, "transport": "rest", "owner": {"tenant": "acme"}});
    vec![event(0, "run.started", started), event(1, "run.completed", json!({}))]
}

#[test]
fn a_good_log_passes() {
    audit::ended("run_x", &log());
}

#[test]
fn a_bad_log_does_not() {
    let spoil: [fn(&mut Vec<Value>); 8] = [
        |log| log[1]["sequence"] = json!(2),
        |log| log[1]["runId"] = json!("run_y"),
        |log| log[1]["eventId"] = json!(""),
        |log| _ = log[1].as_object_mut().unwrap().remove("payload"),
        |log| log[1]["payload"] = json!([]),
        |log| log[1]["type"] = json!("run.invented"),
        |log| log.push(event(2, "run.completed", json!({}))),
        |log| _ = log.pop(),
    ];
    for (at, spoil) in spoil.into_iter().enumerate() {
        let mut log = log();
        spoil(&mut log);
        let judged = std::panic::catch_unwind(|| audit::ended("run_x", &log));
        assert!(judged.is_err(), "spoiled log {at} passed");
    }
}

#[test]
fn an_envelope_is_closed() {
    audit::envelope(&json!({"error": "e", "message": "m", "details": {"a": 1}}));
    for body in [
        json!({"error": "e"}),
        json!({"error": "", "message": "m"}),
        json!({"error": {"code": "e"}, "message": "m"}),
        json!({"error": "e", "message": "m", "details": []}),
        json!({"error": "e", "message": "m", "correlationId": "c"}),
    ] {
        assert!(std::panic::catch_unwind(|| audit::envelope(&body)).is_err(), "{body}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_no_answer() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
    let read = |text: &str| {
        let mut response = Response::read(text.as_bytes())?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk()? {
            body.extend(piece);
        }
        std::io::Result::Ok(body)
    };
    assert_eq!(read(whole).unwrap(), b"body");
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length}");
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    assert_eq!(read(chunked).unwrap(), b"body");
    for length in 0..chunked.len() {
        assert!(read(&chunked[..length]).is_err(), "{length}");
    }
}

#[test]
fn frames_survive_being_cut_anywhere() {
    let text = "id: 0\nevent: a\ndata: {\"n\":1}\n\n:keepalive\n\nid: 1\nevent: b\ndata: {\"n\":2}\n\n";
    for cut in 1..text.len() {
        let (left, right) = text.split_at(cut);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n";
        let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
        let body = format!("{head}transfer-encoding: chunked\r\n\r\n{}{}0\r\n\r\n", chunk(left), chunk(right));
        let frames = Stream::new(Response::read(body.as_bytes()).unwrap()).rest();
        let seen: Vec<_> = frames.iter().map(|frame| (frame.id, frame.event.as_str(), &frame.data["n"])).collect();
        assert_eq!(seen, [(Some(0), "a", &json!(1)), (Some(1), "b", &json!(2))], "{cut}");
    }
}
