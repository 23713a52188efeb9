//! Signed deliveries to a subscriber on this machine, across a death of the host.

use crate::support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use support::Running;
use support::http::PATIENCE;
use support::web::Web;

struct Letter {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Takes one delivery a connection, answers 200, and hands it on.
fn subscriber() -> (String, Receiver<Letter>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, letters) = sync_channel(1024);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut headers = BTreeMap::new();
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                if let Some((name, value)) = line.trim().split_once(": ") {
                    headers.insert(name.to_ascii_lowercase(), value.to_owned());
                }
                line.clear();
            }
            let Some(length) = headers.get("content-length").and_then(|length| length.parse().ok()) else { continue };
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = reader.get_mut().write_all(answer);
            if sender.send(Letter { headers, body }).is_err() {
                return;
            }
        }
    });
    (url, letters)
}

fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// The next delivery about `run`, checked as a subscriber would.
fn delivered(letters: &Receiver<Letter>, subscription: &Value, run: &str) -> Value {
    loop {
        let letter = letters.recv_timeout(PATIENCE).expect("a delivery comes");
        let header = |name: &str| letter.headers.get(name).map(String::as_str).unwrap_or_default();
        let secret = subscription["secret"].as_str().unwrap();
        let expected = signature(secret, header("x-openwop-timestamp"), &letter.body);
        assert_eq!(header("x-openwop-signature"), expected);
        assert_eq!(header("x-openwop-signature-algorithm"), "v1");
        assert_eq!(header("x-openwop-webhook-id"), subscription["webhookId"].as_str().unwrap());
        assert!(header("user-agent").starts_with("openwop-webhook-dispatcher/"));
        let body: Value = serde_json::from_slice(&letter.body).unwrap();
        assert_eq!(body["type"], header("x-openwop-event-type"));
        assert_eq!(body["event"]["type"], body["type"]);
        if body["runId"] == run {
            return body;
        }
    }
}

#[test]
fn what_happens_is_told_signed_and_a_subscription_outlives_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("BATON_API_KEYS", "alpha:acme,beta:elsewhere"), ("OPENWOP_WEBHOOK_ALLOW_PRIVATE", "true")];
    let host = Running::start(folder.path(), &["serve", "--conformance"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    let (url, letters) = subscriber();
    let events = json!(["run.completed", "run.failed"]);
    let subscription = web.post("/v1/webhooks", json!({"url": url, "events": events})).expect(201);

    // Another tenant's run is nobody's business here; its delivery would come first.
    let stranger = Web::new(&host.url, Some("beta"));
    stranger.ended(&stranger.start("conformance-noop"), "completed");
    let run = web.start("conformance-noop");
    let (_, log) = web.ended(&run, "completed");
    let letter = letters.recv_timeout(PATIENCE).expect("a delivery comes");
    let body: Value = serde_json::from_slice(&letter.body).unwrap();
    assert_eq!(body["runId"], run.as_str(), "{body}");
    assert_eq!(body["event"], *log.last().unwrap());

    host.kill();
    let host = Running::start(folder.path(), &["serve", "--conformance"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    let run = web.start("conformance-failure");
    let (_, log) = web.ended(&run, "failed");
    assert_eq!(delivered(&letters, &subscription, &run)["event"], *log.last().unwrap());

    let path = format!("/v1/webhooks/{}", subscription["webhookId"].as_str().unwrap());
    Web::new(&host.url, Some("beta")).send("DELETE", &path, &[], None).refused(404, "subscription_not_found");
    assert_eq!(web.send("DELETE", &path, &[], None).status, 204);
    assert_eq!(host.stop(), 0);
}
