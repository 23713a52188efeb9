//! Calls over HTTP, against servers that behave and servers that do not.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::tool::ToolStatus;
use baton_tool::egress::Guard;
use baton_tool::http::{
    FETCH, HttpCall, HttpClient, HttpEffect, HttpFetch, HttpOptions, HttpRequest, REQUEST, Verified,
};
use baton_tool::{SecretTable, Tool};
use serde_json::{Value, json};
use support::*;

const CANARY: &str = "canary-5f2b9c0d";

fn secrets() -> SecretTable {
    SecretTable::default().with("TOKEN", CANARY, ["127.0.0.1".to_owned()], None)
}

fn options(allow_private: bool) -> HttpOptions {
    HttpOptions::new(Guard::new(allow_private), Arc::new(secrets()))
}

fn client() -> HttpClient {
    HttpClient::new(options(true))
}

fn call(method: &str, url: String) -> HttpCall {
    HttpCall {
        key: "key-1".to_owned(),
        method: method.to_owned(),
        url,
        headers: BTreeMap::new(),
        body: Value::Null,
        tenant: "acme".into(),
        trace: None,
        timeout_ms: None,
    }
}

#[tokio::test]
async fn a_request_carries_key_trace_and_secret_and_its_answer_none_of_it() {
    let (listener, address) = listen().await;
    let tool = HttpRequest::new(client());
    let request = request(
        REQUEST,
        json!({
            "method": "POST",
            "url": format!("http://{address}/orders"),
            "headers": {"Authorization": {"$secret": "TOKEN", "scheme": "Bearer"}, "X-Plain": "1"},
            "body": {"item": "tea"},
        }),
    );
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let heard = hear(&mut stream).await;
        // A server that shows everybody what it was sent.
        say(stream, &answer("201 Created", "Content-Type: text/plain\r\nLocation: /x?t=canary-5f2b9c0d\r\n", &heard))
            .await;
        heard
    };
    let (called, heard) = soon(async { tokio::join!(tool.call(&request), serve) }).await;
    for line in [
        "POST /orders HTTP/1.1",
        "authorization: Bearer canary-5f2b9c0d",
        "idempotency-key: run_1/agent/1/call_1",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate: vendor=1",
        "content-type: application/json",
        "x-plain: 1",
        "{\"item\":\"tea\"}",
    ] {
        assert!(heard.lines().any(|heard| heard == line), "{line} is missing in {heard}");
    }
    let outcome = done(called);
    assert_eq!((outcome.status, &outcome.value["status"]), (ToolStatus::Ok, &json!(201)));
    assert!(outcome.value["body"].as_str().unwrap().contains("authorization: Bearer [REDACTED:TOKEN]"));
    assert!(!format!("{outcome:?}").contains(CANARY), "{outcome:?}");
}

#[tokio::test]
async fn a_connection_cut_after_the_request_leaves_the_outcome_unknown() {
    let (listener, address) = listen().await;
    let tool = HttpRequest::new(client());
    let arguments = json!({"method": "POST", "url": format!("http://{address}/"), "body": "x"});
    let request = request(REQUEST, arguments);
    // Nothing is answered, half an answer is given, less than promised is given.
    for given in ["", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour"] {
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            hear(&mut stream).await;
            say(stream, given.as_bytes()).await;
        };
        let (called, ()) = soon(async { tokio::join!(tool.call(&request), serve) }).await;
        let reason = unknown(called);
        assert!(reason.contains("127.0.0.1"), "{given:?}: {reason}");
    }
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_in_time_and_unknown() {
    let (listener, address) = listen().await;
    let tool = HttpRequest::new(client());
    let request = request(REQUEST, json!({"method": "POST", "url": format!("http://{address}/")}));
    let accept = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        hear(&mut stream).await;
        // From here on time passes as fast as nothing happens.
        tokio::time::pause();
        stream
    };
    let (called, _stream) = tokio::join!(tool.call(&request), accept);
    assert!(unknown(called).contains("did not answer in time"));
}

#[tokio::test]
async fn a_call_that_never_arrived_is_known_not_to_have_happened() {
    // The system gives nobody a port below 1024, so nobody listens there.
    let nobody = json!({"method": "POST", "url": "http://127.0.0.1:1/"});
    let refused = fault(HttpRequest::new(client()).call(&request(REQUEST, nobody)).await);
    assert_eq!((refused.code.as_str(), refused.retryable), ("external_call_failed", Some(true)));
    // It does not speak TLS: nothing of the request was sent either.
    let (listener, address) = listen().await;
    let serve = async {
        let (stream, _) = listener.accept().await.unwrap();
        say(stream, b"hello\r\n").await;
    };
    let url = format!("https://{address}/");
    let request = request(REQUEST, json!({"method": "POST", "url": url}));
    let tool = HttpRequest::new(client());
    let (called, ()) = soon(async { tokio::join!(tool.call(&request), serve) }).await;
    assert_eq!(fault(called).code, "external_call_failed");
}

#[tokio::test]
async fn nothing_inside_is_called() {
    let (listener, address) = listen().await;
    let client = HttpClient::new(options(false));
    let (fetch, send) = (HttpFetch::new(client.clone()), HttpRequest::new(client));
    for url in [format!("http://{address}/"), format!("https://{address}/"), "https://localhost/".to_owned()] {
        let fetched = fetch.call(&request(FETCH, json!({"url": url}))).await;
        let sent = send.call(&request(REQUEST, json!({"method": "PUT", "url": url}))).await;
        assert_eq!(
            (fault(fetched).code, fault(sent).code),
            ("egress_denied".to_owned(), "egress_denied".to_owned()),
            "{url}"
        );
    }
    // Whoever reads the fault knows which setting opens the way, and what to write there.
    let url = format!("http://{address}/x");
    let told = fault(send.call(&request(REQUEST, json!({"method": "PUT", "url": url}))).await).message;
    assert!(told.contains(&format!("[http] allow = [\"{address}\"]")), "{told}");
    assert!(told.contains(&format!("BATON_HTTP_ALLOW={address}")) && told.contains("baton dev"), "{told}");
    let named = format!("http://ann:word@{address}/");
    let told = fault(send.call(&request(REQUEST, json!({"method": "PUT", "url": named}))).await).message;
    assert!(!told.contains("allow") && !told.contains("word@"), "no setting opens that: {told}");
    assert!(nobody_came(listener));
}

#[tokio::test]
async fn a_redirect_leads_only_where_the_guard_allows() {
    let (inside, inside_address) = listen().await;
    let (open, open_address) = listen().await;
    let guard = Guard::new(false).with_places([open_address.parse().unwrap()]);
    let fetch = HttpFetch::new(HttpClient::new(HttpOptions { guard, ..options(false) }));
    let request = request(
        FETCH,
        json!({"url": format!("http://{open_address}/start"), "headers": {"X-Token": {"$secret": "TOKEN"}}}),
    );
    // To itself it may go, and takes its secret along.
    let serve = async {
        let (mut stream, _) = open.accept().await.unwrap();
        hear(&mut stream).await;
        say(stream, &answer("302 Found", "Location: /there\r\n", "")).await;
        let (mut stream, _) = open.accept().await.unwrap();
        let heard = hear(&mut stream).await;
        assert!(heard.starts_with("GET /there ") && heard.contains(CANARY), "{heard}");
        say(stream, &answer("200 OK", "Content-Type: application/json\r\n", "{\"found\": true}")).await;
    };
    let (called, ()) = soon(async { tokio::join!(fetch.call(&request), serve) }).await;
    let found = value(called);
    assert_eq!(
        (&found["body"], &found["url"]),
        (&json!({"found": true}), &json!(format!("http://{open_address}/there")))
    );
    // Inwards it may not, whatever the status.
    for (status, to) in [
        ("301 Moved", format!("http://{inside_address}/")),
        ("302 Found", format!("https://{inside_address}/")),
        ("307 Temporary", "https://metadata.google.internal/".to_owned()),
        ("308 Permanent", "file:///etc/passwd".to_owned()),
    ] {
        let serve = async {
            let (mut stream, _) = open.accept().await.unwrap();
            hear(&mut stream).await;
            say(stream, &answer(status, &format!("Location: {to}\r\n"), "")).await;
        };
        let (called, ()) = soon(async { tokio::join!(fetch.call(&request), serve) }).await;
        // A place that is no web address is shown, not followed.
        if to.starts_with("file") {
            assert_eq!(value(called)["status"], json!(308));
        } else {
            assert_eq!(fault(called).code, "egress_denied", "{to}");
        }
    }
    assert!(nobody_came(inside));
}

#[tokio::test]
async fn a_redirect_to_another_origin_loses_the_secret_and_a_loop_ends() {
    let (first, first_address) = listen().await;
    let (second, second_address) = listen().await;
    let fetch = HttpFetch::new(client());
    let request = request(
        FETCH,
        json!({"url": format!("http://{first_address}/"), "headers": {"X-Token": {"$secret": "TOKEN"}}}),
    );
    let serve = async {
        let (mut stream, _) = first.accept().await.unwrap();
        assert!(hear(&mut stream).await.contains(CANARY));
        say(stream, &answer("302 Found", &format!("Location: http://{second_address}/\r\n"), "")).await;
        for _ in 0..5 {
            let (mut stream, _) = second.accept().await.unwrap();
            assert!(!hear(&mut stream).await.contains(CANARY));
            say(stream, &answer("302 Found", "Location: /again\r\n", "")).await;
        }
    };
    let (called, ()) = soon(async { tokio::join!(fetch.call(&request), serve) }).await;
    let ended = fault(called);
    assert!(ended.code == "external_call_failed" && ended.message.contains("redirects"), "{ended:?}");
}

#[tokio::test]
async fn no_more_of_an_answer_is_read_than_allowed() {
    let (listener, address) = listen().await;
    let fetch = HttpFetch::new(HttpClient::new(HttpOptions { max_answer_bytes: 1000, ..options(true) }));
    let request = request(FETCH, json!({"url": format!("http://{address}/")}));
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        hear(&mut stream).await;
        // An answer without end. Writing fails as soon as the reader has had enough.
        let mut written = 0_usize;
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
        let mut next: &[u8] = head;
        while tokio::io::AsyncWriteExt::write_all(&mut stream, next).await.is_ok() {
            written += next.len();
            next = &[b'x'; 4096];
        }
        written
    };
    let (called, written) = soon(async { tokio::join!(fetch.call(&request), serve) }).await;
    let found = value(called);
    assert_eq!((found["body"].as_str().unwrap().len(), &found["truncated"]), (1000, &json!(true)));
    assert!(written > 1000, "the server wrote {written} bytes and more were to come");
}

#[tokio::test]
async fn a_lookup_says_done_not_done_or_nothing() {
    let (listener, address) = listen().await;
    let effect = HttpEffect::new(client());
    let lookup = call("POST", format!("http://{address}/orders/key-1"));
    for (status, expected) in
        [("200 OK", "done"), ("404 Not Found", "not done"), ("500 Oops", "unknown"), ("302 Found", "unknown")]
    {
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(hear(&mut stream).await.starts_with("GET /orders/key-1 "));
            say(stream, &answer(status, "Content-Type: application/json\r\n", "{\"id\": 7}")).await;
        };
        let (verified, ()) = soon(async { tokio::join!(effect.verify(&lookup), serve) }).await;
        let found = match verified {
            Verified::Done(value) => {
                assert_eq!(value["body"], json!({"id": 7}));
                "done"
            }
            Verified::NotDone => "not done",
            Verified::Unknown { .. } => "unknown",
        };
        assert_eq!(found, expected, "{status}");
    }
    // The system gives nobody a port below 1024, so nobody listens there.
    let lookup = call("POST", "http://127.0.0.1:1/orders/key-1".to_owned());
    assert!(matches!(effect.verify(&lookup).await, Verified::Unknown { .. }), "nobody there to ask");
}

#[tokio::test]
async fn wrong_arguments_are_refused_before_anything_is_sent() {
    let tool = HttpRequest::new(client());
    for arguments in [
        json!({"url": "https://a.example"}),
        json!({"method": "CONNECT", "url": "https://a.example"}),
        json!({"method": "GET", "url": "a.example"}),
        json!({"method": "GET", "url": "https://a.example", "timeout": 1}),
        json!({"method": "GET", "url": "https://a.example", "headers": {"Host": "b.example"}}),
        json!({"method": "GET", "url": "https://a.example", "headers": {"Authorization": "Bearer written-out"}}),
        json!([]),
        json!(null),
    ] {
        let refused = fault(tool.call(&request(REQUEST, arguments.clone())).await);
        assert_eq!(refused.code, "validation_error", "{arguments}");
        assert!(!refused.message.contains("written-out"), "{}", refused.message);
    }
    let elsewhere = json!({"method": "GET", "url": "https://a.example", "headers": {"X-Token": {"$secret": "TOKEN"}}});
    assert_eq!(fault(tool.call(&request(REQUEST, elsewhere)).await).code, "credential_forbidden");
}
