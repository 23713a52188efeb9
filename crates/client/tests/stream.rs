//! The event stream against a scripted host: what is sent, when the connection breaks, what the client then asks for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_client::{Client, Error, StreamMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the host does with one request.
enum Answer {
    /// Sends these frames, then closes.
    Events(Vec<String>),
    /// Announces more bytes than it sends.
    Breaks(Vec<String>),
    Json(u16, String),
    /// Closes without a word.
    Nothing,
}

/// One request as the host saw it: the path with its query, and `Last-Event-ID`.
type Seen = (String, Option<String>);

/// Answers one connection after the other and returns what was asked.
async fn host(listener: TcpListener, answers: Vec<Answer>) -> Vec<Seen> {
    let mut seen = Vec::new();
    for answer in answers {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(socket.read_u8().await.unwrap());
        }
        let text = String::from_utf8(request).unwrap();
        let header = |name: &str| {
            text.lines().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        seen.push((text.split(' ').nth(1).unwrap().to_owned(), header("last-event-id")));
        let stream = |length: usize, body: &str| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        };
        let reply = match answer {
            Answer::Events(frames) => stream(frames.concat().len(), &frames.concat()),
            Answer::Breaks(frames) => stream(frames.concat().len() + 10, &frames.concat()),
            Answer::Json(status, body) => format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ),
            Answer::Nothing => String::new(),
        };
        socket.write_all(reply.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
    }
    seen
}

fn frame(seq: u64, kind: &str) -> String {
    let event = serde_json::json!({
        "eventId": format!("run_1.{seq}"), "runId": "run_1", "sequence": seq, "type": kind,
        "timestamp": "2026-01-01T00:00:00Z", "payload": {}, "schemaVersion": 1,
    });
    format!("id: {seq}\nevent: {kind}\ndata: {event}\n\n")
}

fn snapshot(status: &str) -> Answer {
    let body = serde_json::json!({
        "runId": "run_1", "workflowId": "w", "status": status, "atSeq": 3, "inputs": {}, "variables": {},
        "nodeStates": {}, "owner": {"tenant": "t"}, "workflowDigest": "d", "eventLogSchemaVersion": 2,
    });
    Answer::Json(200, body.to_string())
}

/// Follows `run_1` after `after` and returns the sequences seen, the last error, and what the host was asked.
async fn follow(after: Option<u64>, answers: Vec<Answer>) -> (Vec<u64>, Option<Error>, Vec<Seen>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), Some("k")).unwrap();
    let reader = async {
        let mut stream = client.stream("run_1", after, StreamMode::Debug);
        let mut sequences = Vec::new();
        loop {
            match stream.next().await {
                Some(Ok(event)) => sequences.push(event.sequence),
                Some(Err(error)) => return (sequences, Some(error)),
                None => return (sequences, None),
            }
        }
    };
    let ((sequences, error), seen) = tokio::join!(reader, host(listener, answers));
    (sequences, error, seen)
}

fn ids(seen: &[Seen]) -> Vec<Option<&str>> {
    seen.iter().map(|(_, id)| id.as_deref()).collect()
}

#[tokio::test]
async fn ends_with_the_terminal_event() {
    let (sequences, error, seen) =
        follow(None, vec![Answer::Events(vec![frame(0, "run.started"), frame(1, "run.completed")])]).await;
    assert_eq!(sequences, [0, 1]);
    assert!(error.is_none());
    assert_eq!(seen, [("/v1/runs/run_1/events?streamMode=debug".to_owned(), None)]);
}

#[tokio::test]
async fn a_broken_connection_is_resumed_where_it_broke() {
    let answers = vec![
        Answer::Breaks(vec![frame(0, "run.started"), frame(1, "node.started")]),
        Answer::Nothing,
        // A host that repeats itself must not make us repeat ourselves.
        Answer::Events(vec![frame(1, "node.started"), frame(2, "node.completed"), frame(3, "run.failed")]),
    ];
    let (sequences, error, seen) = follow(None, answers).await;
    assert_eq!(sequences, [0, 1, 2, 3]);
    assert!(error.is_none());
    assert_eq!(ids(&seen), [None, Some("1"), Some("1")]);
}

#[tokio::test]
async fn a_stream_that_closes_early_is_reopened_while_the_run_lives() {
    let answers = vec![
        Answer::Events(vec![frame(0, "run.started")]),
        snapshot("running"),
        Answer::Events(vec![frame(1, "run.cancelled")]),
    ];
    let (sequences, error, seen) = follow(None, answers).await;
    assert_eq!(sequences, [0, 1]);
    assert!(error.is_none());
    assert_eq!(ids(&seen), [None, None, Some("0")]);
}

#[tokio::test]
async fn following_from_the_very_end_ends_at_once() {
    let answers = vec![Answer::Events(vec![]), snapshot("completed"), Answer::Events(vec![])];
    let (sequences, error, _) = follow(Some(3), answers).await;
    assert!(sequences.is_empty());
    assert!(error.is_none());
}

#[tokio::test]
async fn batches_are_taken_apart() {
    let event = |seq: u64, kind: &str| {
        serde_json::json!({
            "eventId": "e", "runId": "run_1", "sequence": seq, "type": kind,
            "timestamp": "2026-01-01T00:00:00Z", "payload": null,
        })
    };
    let batch = serde_json::json!([event(0, "run.started"), event(1, "run.completed")]);
    let (sequences, error, _) =
        follow(None, vec![Answer::Events(vec![format!("id: 1\nevent: batch\ndata: {batch}\n\n")])]).await;
    assert_eq!(sequences, [0, 1]);
    assert!(error.is_none());
}

#[tokio::test]
async fn a_refusal_is_final_and_keeps_the_envelope() {
    let body = r#"{"error":"run_not_found","message":"There is no such run.","details":{"x":1}}"#;
    let (sequences, error, _) = follow(None, vec![Answer::Json(404, body.to_owned())]).await;
    assert!(sequences.is_empty());
    match error {
        Some(Error::Api { status: 404, code, message, details }) => {
            assert_eq!((code.as_str(), message.as_str()), ("run_not_found", "There is no such run."));
            assert_eq!(details["x"], 1);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nobody_listening_is_told_apart_from_a_refusal() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The system gives nobody a port below 1024, so nobody listens there.
    let error = Client::new("http://127.0.0.1:1", None).unwrap().run("run_1").await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_taken_into_memory() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let endless = tokio::spawn(async move {
        let mut sent = 0_usize;
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(socket.read_u8().await.unwrap());
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n").await.unwrap();
        while socket.write_all(&[b' '; 64 * 1024]).await.is_ok() {
            sent += 64 * 1024;
        }
        sent
    });
    let client = Client::new(&url, None).unwrap().with_answer_bytes(1024 * 1024);
    let refused = client.system_json().await.unwrap_err();
    assert!(matches!(&refused, Error::NotUnderstood { reason, .. } if reason.contains("longer than")), "{refused:?}");
    drop(client);
    assert!(endless.await.unwrap() < 100 * 1024 * 1024, "it was cut off");
}
