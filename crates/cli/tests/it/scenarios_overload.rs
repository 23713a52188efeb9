//! Too much: what a caller is told when it asks too often or too many ask at once, and what still answers then.

use crate::support;

use serde_json::json;
use support::Running;
use support::web::Web;

#[test]
fn a_key_that_asks_too_often_is_told_when_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("BATON_API_KEYS", "alpha:acme,beta:acme"), ("BATON_RATE_LIMIT_PER_SECOND", "1")];
    let host = Running::start(folder.path(), &["serve", "--conformance"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    let limited = (0..200).map(|_| web.get("/v1/runs")).find(|answer| answer.status != 200).expect("a limit binds");
    let refusal = limited.refused(429, "rate_limited");
    let seconds: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    let details = &refusal["details"];
    assert_eq!((&details["scope"], &details["limit"]), (&json!("key"), &json!(1)));
    let millis = details["retryAfterMs"].as_u64().unwrap();
    assert!(millis > 0 && (seconds * 1000).abs_diff(millis) <= 1000, "{seconds} s, {millis} ms");
    // Neither another key nor discovery pays for it.
    assert_eq!(Web::new(&host.url, Some("beta")).get("/v1/runs").status, 200);
    for _ in 0..50 {
        assert_eq!(Web::new(&host.url, None).get("/.well-known/openwop").status, 200);
    }
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_full_host_says_so_and_discovery_still_answers() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("BATON_API_KEYS", "alpha:acme"), ("BATON_MAX_IN_FLIGHT", "1")];
    let host = Running::start(folder.path(), &["serve", "--conformance"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    let run = web.start("conformance-approval");
    web.until_status(&run, "waiting-approval");
    // An open stream is work in progress.
    let mut stream = web.stream(&run, "", None);
    stream.next().unwrap().expect("a backlog");
    let full = web.get("/v1/runs");
    let refusal = full.refused(503, "service_unavailable");
    assert_eq!(full.header("retry-after").unwrap(), refusal["details"]["retryAfter"].to_string());
    assert!(!refusal["details"]["correlationId"].as_str().unwrap().is_empty());
    for path in ["/.well-known/openwop", "/health", "/readiness"] {
        assert_eq!(Web::new(&host.url, None).get(path).status, 200, "{path}");
    }
    drop(stream);
    // The place is free again once the host has seen the reader leave.
    support::eventually("the place is free", || web.get("/v1/runs").status != 503);
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_body_beyond_the_limit_is_refused_and_the_answer_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("BATON_API_KEYS", "alpha:acme"), ("BATON_LIMITS_MAX_REQUEST_BODY_BYTES", "4096")];
    let host = Running::start(folder.path(), &["serve", "--conformance"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    let document = web.get("/.well-known/openwop").expect(200);
    assert_eq!(document["limits"]["maxRequestBodyBytes"], 4096);
    // The second is more than any socket buffers: it arrives only if somebody reads it.
    for size in [5000, 10_000_000] {
        let body = json!({"workflowId": "conformance-noop", "inputs": {"text": "x".repeat(size)}});
        web.post("/v1/runs", body).refused(413, "payload_too_large");
    }
    web.ended(&web.start("conformance-noop"), "completed");
    assert_eq!(host.stop(), 0);
}
