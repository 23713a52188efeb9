//! Whatever is sent, the host answers, and every refusal is in the envelope.

use crate::support;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Request};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use support::Site;

#[derive(Clone, Debug)]
struct Attempt {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

fn segment() -> impl Strategy<Value = String> {
    let known = [
        "v1",
        "runs",
        "runs:bulk-cancel",
        "events",
        "poll",
        "cancel",
        "interrupts",
        "approvals",
        "workflows",
        "webhooks",
        "artifacts",
        "host",
        "workspace",
        "files",
        "baton",
        "memory",
        "changes",
        "state",
        "x:prune",
        "x",
        "x:pause",
        "x:resume",
        ":fork",
        "x:",
        "..",
        "%2F",
        "%00",
        "%FF",
        "%3Apause",
        "health",
        "metrics",
    ];
    prop_oneof![8 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "[a-z:._~%25-]{0,12}"]
}

fn query() -> impl Strategy<Value = String> {
    let known = [
        "streamMode",
        "bufferMs",
        "lastSequence",
        "timeout",
        "limit",
        "cursor",
        "status",
        "createdAfter",
        "tenantId",
        "version",
        "prefix",
        "before",
        "at",
        "tag",
    ];
    let pair = (prop::sample::select(known.to_vec()), "[a-zA-Z0-9,%.-]{0,8}")
        .prop_map(|(name, value)| format!("{name}={value}"));
    vec(pair, 0..4).prop_map(|pairs| pairs.join("&"))
}

fn header() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let known = [
        "authorization",
        "idempotency-key",
        "accept",
        "last-event-id",
        "if-none-match",
        "if-match",
        "content-type",
        "content-length",
        "x-dedup",
        "x-force-engine-version",
    ];
    (prop::sample::select(known.to_vec()), vec(any::<u8>(), 0..20))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let json = [
        "{}",
        "[]",
        "null",
        "{\"workflowId\":1}",
        "{\"workflowId\":\"x\",\"inputs\":{\"a\":[[[]]]}}",
        "{\"runIds\":[\"x\"]}",
        "{\"resumeValue\":null}",
        "{\"url\":\"\",\"events\":[\"\"]}",
        "{\"id\":\"x\",\"nodes\":[{}]}",
        "\u{feff}{}",
        "{\"a\":1e999}",
        "{\"content\":\"x\",\"ttlSeconds\":1e300}",
        "{\"content\":\"x\",\"expiresAt\":\"2026-01-01T00:00:00Z\"}",
        "{\"mode\":\"replay\",\"fromSeq\":-1}",
        "{\"log\":1}",
    ];
    prop_oneof![2 => prop::sample::select(json.to_vec()).prop_map(|text| text.as_bytes().to_vec()), 1 => vec(any::<u8>(), 0..40)]
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let methods = prop::sample::select(vec!["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "BREW"]);
    (methods, vec(segment(), 0..5), query(), any::<bool>(), vec(header(), 0..4), body()).prop_map(
        |(method, segments, query, keyed, mut headers, body)| {
            if keyed {
                headers.retain(|(name, _)| *name != "authorization");
                headers.push(("authorization", b"Bearer full".to_vec()));
            }
            Attempt { method, path: format!("/{}?{query}", segments.join("/")), headers, body }
        },
    )
}

async fn check(site: &Site, attempt: &Attempt) {
    let mut request = Request::builder().method(attempt.method).uri(&attempt.path);
    for (name, value) in &attempt.headers {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            request = request.header(*name, value);
        }
    }
    // What is no request at all never reaches the router.
    let Ok(request) = request.body(Body::from(attempt.body.clone())) else { return };
    let response = site.raw(request).await;
    let status = response.status();
    assert!(status.as_u16() < 500 || status == 501, "{status}");
    if status.is_client_error() && attempt.method != "HEAD" {
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(body["error"].is_string() && body["message"].is_string(), "{body}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_host_survives_anything(attempts in vec(attempt(), 50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let site = Site::open().await;
            for attempt in &attempts {
                check(&site, attempt).await;
            }
        });
    }
}
