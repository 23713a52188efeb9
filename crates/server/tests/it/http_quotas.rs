//! What one tenant may have in progress, and that others do not notice.

use crate::support;

use serde_json::{Value, json};
use support::served::{Served, until};
use support::{FULL, OTHER, READER, Site};

async fn waiting(site: &Site) -> String {
    site.register("slow", "core.delay", json!({"ms": 600_000})).await;
    site.start("slow").await
}

#[tokio::test]
async fn streams_of_one_tenant_leave_the_others_alone() {
    let site = Site::open().await;
    let run = waiting(&site).await;
    let served = Served::new(&site.host, |options| {
        (options.inflight_cap, options.tenants.streams) = (200, Some(50));
    })
    .await;
    let path = format!("/v1/runs/{run}/events");
    let mut streams = Vec::new();
    for _ in 0..50 {
        let mut socket = served.asking("GET", &path, &[READER]).await;
        until(&mut socket, "run.started").await;
        streams.push(socket);
    }
    for _ in 0..50 {
        let refused = served.get(&path, &[READER]).await;
        assert_eq!(refused.status, 429, "{}", refused.body);
        assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
        let body: Value = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(body["error"], "rate_limited");
        assert_eq!((&body["details"]["scope"], &body["details"]["limit"]), (&json!("tenant"), &json!(50)));
        assert!(body["details"]["hint"].is_string() && body["details"]["retryAfterMs"] == 1000, "{body}");
    }
    // The activity stream is one too. What is no stream goes on, of the same tenant and of others.
    assert_eq!(served.get("/v1/host/baton/activity", &[READER]).await.status, 429);
    assert_eq!(served.get("/v1/runs", &[READER]).await.status, 200);
    assert_eq!(served.get(&path, &[("accept", "application/json"), READER]).await.status, 200);
    let mut theirs = served.asking("GET", "/v1/host/baton/activity", &[OTHER]).await;
    until(&mut theirs, "event: hello").await;
    // Whoever leaves makes room.
    streams.pop();
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    loop {
        let mut socket = served.asking("GET", &path, &[READER]).await;
        if until(&mut socket, "\r\n\r\n").await.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "the place stays taken");
    }
    served.stop().await;
}

#[tokio::test]
async fn without_numbers_a_tenant_gets_what_is_free_and_leaves_as_much() {
    let site = Site::open().await;
    let run = waiting(&site).await;
    let served = Served::new(&site.host, |options| options.inflight_cap = 40).await;
    // Long polls are no streams: all of the tenant's share may be of them.
    let poll = format!("/v1/runs/{run}/events/poll?timeout=60&lastSequence=1");
    let mut polls = Vec::new();
    for _ in 0..20 {
        polls.push(served.asking("GET", &poll, &[FULL]).await);
    }
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    while served.get("/v1/runs", &[FULL]).await.status != 429 {
        assert!(tokio::time::Instant::now() < deadline, "half of all places is not enough for the tenant");
    }
    let refused = served.get(&poll, &[FULL]).await;
    assert_eq!(refused.status, 429, "{}", refused.body);
    let body: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((&body["details"]["scope"], &body["details"]["limit"]), (&json!("tenant"), &json!(20)));
    // Nobody at all has a share too, and what is left is enough for the others.
    assert_eq!(served.get("/v1/runs", &[OTHER]).await.status, 200);
    assert_eq!(served.get("/v1/interrupts/a-link", &[]).await.status, 404);
    assert_eq!(served.get("/v1/runs", &[FULL]).await.status, 429);
    assert_eq!(served.get("/health", &[FULL]).await.status, 200);
    drop(polls);
    served.stop().await;
}

#[tokio::test]
async fn keys_of_one_tenant_share_its_requests_per_second() {
    let site = Site::with(|options| options.tenants.rate_per_second = Some(2)).await;
    let status = async |key| site.send("GET", "/v1/runs", &[key], axum::body::Body::empty()).await;
    let mut answers = Vec::new();
    for place in 0..50 {
        answers.push(status(if place % 2 == 0 { FULL } else { READER }).await);
    }
    let refused = answers.iter().find(|answer| answer.status == 429).expect("a limit binds");
    let details = refused.refused(429, "rate_limited");
    assert_eq!((&details["scope"], &details["limit"]), (&json!("tenant"), &json!(2)));
    assert_eq!(status(OTHER).await.status, 200);
}
