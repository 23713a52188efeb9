//! What clients may do with connections over HTTP/1.

use crate::support;

use serde_json::{Value, json};
use support::served::{Served, ask, read_reply, short, until, until_closed};
use support::{FULL, Site};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

async fn waiting() -> (Site, String) {
    let site = Site::open().await;
    site.register("slow", "core.delay", json!({"ms": 600_000})).await;
    let run = site.start("slow").await;
    (site, run)
}

/// A stream that is open: its first event has come.
async fn stream(served: &Served, run: &str) -> TcpStream {
    let mut socket = served.asking("GET", &format!("/v1/runs/{run}/events"), &[FULL]).await;
    until(&mut socket, "run.started").await;
    socket
}

#[tokio::test]
async fn silent_connections_are_closed_and_the_host_answers_meanwhile() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |limits| limits.header = short(500)).await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(served.connect().await);
    }
    assert_eq!(served.get("/health", &[]).await.status, 200);
    for socket in &mut silent {
        assert_eq!(until_closed(socket).await, b"");
    }
    assert_eq!(served.get("/health", &[]).await.status, 200);
    served.stop().await;
}

#[tokio::test]
async fn a_header_that_trickles_in_has_no_more_time_than_a_silent_one() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |limits| limits.header = short(300)).await;
    let socket = served.connect().await;
    let (mut reading, mut writing) = socket.into_split();
    let trickling = tokio::spawn(async move {
        let mut sent = 0;
        writing.write_all(b"GET /health HTTP/1.1\r\n").await.unwrap();
        // A byte far more often than the deadline, for ever.
        while writing.write_all(b"a").await.is_ok() {
            sent += 1;
            assert!(sent < 10_000, "it is let go on for ever");
            tokio::time::sleep(short(5)).await;
        }
    });
    let mut end = [0; 16];
    let closed = tokio::io::AsyncReadExt::read(&mut reading, &mut end);
    let closed = tokio::time::timeout(support::PATIENCE, closed).await.expect("the host closes it");
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    trickling.await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn a_connection_may_be_used_again_and_is_closed_when_it_is_not() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |limits| {
        (limits.header, limits.idle) = (short(1000), short(5000));
    })
    .await;
    let mut socket = served.connect().await;
    for _ in 0..3 {
        ask(&mut socket, "GET", "/health", &[]).await;
        until(&mut socket, "{\"status\":\"ok\"}").await;
        // Longer than a header may take, as none has begun.
        tokio::time::sleep(short(1500)).await;
    }
    assert_eq!(until_closed(&mut socket).await, b"");
    served.stop().await;
}

#[tokio::test]
async fn a_body_that_stops_or_trickles_is_refused() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |limits| {
        (limits.body, limits.body_idle) = (short(1500), short(400));
    })
    .await;
    // Stops, with an idempotency key or without: one is read before the request begins, the other in it.
    for path in ["/v1/runs", "/v1/workflows", "/v1/host/baton/workflows/validate"] {
        let mut socket = served.asking("POST", path, &[FULL, ("content-length", "100"), ("connection", "close")]).await;
        socket.write_all(b"{\"work").await.unwrap();
        let reply = read_reply(socket).await;
        assert_eq!(reply.status, 408, "{path}: {}", reply.body);
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(body["error"], "request_timeout");
    }
    // Trickles.
    let socket = served.asking("POST", "/v1/runs", &[FULL, ("content-length", "100000")]).await;
    let (mut reading, mut writing) = socket.into_split();
    let trickling = tokio::spawn(async move {
        while writing.write_all(b" ").await.is_ok() {
            tokio::time::sleep(short(50)).await;
        }
    });
    let mut head = [0; 12];
    let read = tokio::io::AsyncReadExt::read_exact(&mut reading, &mut head);
    tokio::time::timeout(support::PATIENCE, read).await.expect("the host answers").unwrap();
    assert_eq!(&head, b"HTTP/1.1 408");
    drop(reading);
    trickling.abort();
    served.stop().await;
}

#[tokio::test]
async fn operators_are_answered_while_others_have_all_connections() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |limits| limits.total = 3).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(stream(&served, &run).await);
    }
    for _ in 0..100 {
        for path in ["/health", "/readiness", "/metrics"] {
            let reply = served.get(path, &[]).await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            assert!(reply.head.contains("connection: close"), "{}", reply.head);
        }
    }
    // Everything else is told to come back, on a connection that is closed.
    let refused = read_reply(served.asking("GET", "/v1/runs", &[FULL]).await).await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 1") && refused.head.contains("connection: close"), "{}", refused.head);
    let body: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((&body["error"], &body["details"]["retryAfter"]), (&json!("service_unavailable"), &json!(1)));
    // Neither has silence in the reserve an effect, however much of it there is.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(served.connect().await);
    }
    assert_eq!(served.get("/health", &[]).await.status, 200);
    // A place is free as soon as somebody leaves.
    drop(streams.pop());
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    while served.get("/v1/runs", &[FULL]).await.status != 200 {
        assert!(tokio::time::Instant::now() < deadline, "the place stays taken");
    }
    served.stop().await;
}

#[tokio::test]
async fn silence_makes_room_for_whoever_asks() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |limits| limits.total = 5).await;
    let mut stream = stream(&served, &run).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(served.connect().await);
        assert_eq!(served.get("/v1/runs", &[FULL]).await.status, 200);
    }
    // The oldest went; what was in progress is still there.
    assert_eq!(until_closed(&mut silent[0]).await, b"");
    site.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    until(&mut stream, "run.cancelled").await;
    served.stop().await;
}

#[tokio::test]
async fn one_address_has_a_limit_of_its_own() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |limits| (limits.total, limits.per_address) = (100, 2)).await;
    let _streams = [stream(&served, &run).await, stream(&served, &run).await];
    assert_eq!(served.get("/v1/runs", &[FULL]).await.status, 503);
    assert_eq!(served.get("/health", &[]).await.status, 200);
    let mut elsewhere = served.connect_from("127.0.0.2").await;
    ask(&mut elsewhere, "GET", "/v1/runs", &[FULL, ("connection", "close")]).await;
    assert_eq!(read_reply(elsewhere).await.status, 200);
    served.stop().await;
}

#[tokio::test]
async fn requests_that_come_at_once_are_answered_one_after_the_other() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |_| {}).await;
    let mut socket = served.connect().await;
    let mut all = String::new();
    for place in 0..50 {
        all.push_str(&format!("GET /v1/runs/run_{place} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer full\r\n\r\n"));
    }
    all.push_str("GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    socket.write_all(all.as_bytes()).await.unwrap();
    let reply = read_reply(socket).await;
    let whole = format!("{}{}", reply.head, reply.body);
    assert_eq!(whole.matches("run_not_found").count() + whole.matches("\"not_found\"").count(), 50, "{whole}");
    assert!(whole.ends_with("{\"status\":\"ok\"}"));
    served.stop().await;
}

#[tokio::test]
async fn a_header_that_is_too_long_is_refused() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |_| {}).await;
    let mut socket = served.connect().await;
    // The host may hang up before all of it is sent.
    let _ =
        socket.write_all(format!("GET /health HTTP/1.1\r\nhost: x\r\nlong: {}", "x".repeat(1 << 20)).as_bytes()).await;
    let answer = until_closed(&mut socket).await;
    let text = String::from_utf8_lossy(&answer);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
    assert_eq!(served.get("/health", &[]).await.status, 200);
    served.stop().await;
}

#[tokio::test]
async fn a_stop_waits_for_what_is_in_progress_and_for_nobody_who_is_silent() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |_| {}).await;
    let mut silent = served.connect().await;
    let mut half = served.connect().await;
    half.write_all(b"GET /hea").await.unwrap();
    let mut kept = served.connect().await;
    ask(&mut kept, "GET", "/health", &[]).await;
    until(&mut kept, "{\"status\":\"ok\"}").await;
    let mut stream = stream(&served, &run).await;
    served.stop().await;
    for socket in [&mut silent, &mut half, &mut kept] {
        assert_eq!(until_closed(socket).await, b"");
    }
    assert!(until_closed(&mut stream).await.ends_with(b"0\r\n\r\n"), "the stream ends properly");
}
