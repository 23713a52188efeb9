//! Nothing that can be shown tells the key, the prompt, a server's own words, or where it is.

use crate::support;

use baton_provider::{ProviderSettings, build};
use serde_json::{Value, json};
use support::{Answer, KEY, Piece, Stub, all, call, request};

const SERVERS_WORDS: &str = "vllm-internal-7 says no";

/// Everything a provider may say about a failure, in every form it can be shown.
async fn told(settings: &ProviderSettings) -> String {
    let fault = call(settings, &request(json!({}))).await.0.expect_err("an answer was not expected");
    let shown = serde_json::to_string(&fault.to_string()).unwrap();
    format!("{fault} {fault:?} {fault:#?} {shown} {:?} {settings:?} {settings:#?}", fault.outcome())
}

fn assert_silent(told: &str, port: u16) {
    let port = port.to_string();
    for secret in [KEY, "the secret plan", SERVERS_WORDS, "vllm", "127.0.0.1", "http:", "hidden", "x-value", &port] {
        assert!(!told.contains(secret), "`{secret}` is in: {told}");
    }
}

#[tokio::test]
async fn faults_tell_nothing() {
    let words = |place: &str| json!({"error": {place: SERVERS_WORDS, "message": format!("{SERVERS_WORDS} {KEY}")}});
    for speech in all() {
        let mut answers: Vec<Answer> = [307, 400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503, 529, 599]
            .into_iter()
            .flat_map(|status| ["code", "type", "status"].map(|place| Answer::json(status, words(place))))
            .collect();
        answers.push(Answer::json(200, words("code")));
        answers.push(Answer::json(200, Value::String(SERVERS_WORDS.to_owned())));
        answers.push(Answer::new(200, "text/plain", SERVERS_WORDS));
        answers.push(Answer::new(500, "text/plain", SERVERS_WORDS));
        answers.push(Answer::events([&words("type")]));
        answers.push(Answer::events(&speech.stream[..1]).then(Piece::Cut));
        answers.push(Answer::events(&speech.stream[..1]).then(Piece::Hang));
        let answers = answers.into_iter().map(|answer| (answer, 60_000)).chain([(Answer::silence(), 50)]);
        for (answer, timeout_ms) in answers {
            let stub = Stub::new([answer]).await;
            let headers = [("x-account".to_owned(), "x-value".into())].into();
            let bounds = ProviderSettings { retries: 1, idle_timeout_ms: 50, timeout_ms, ..stub.settings(&speech) };
            assert_silent(&told(&ProviderSettings { headers, ..bounds }).await, stub.port);
        }
        // Nobody listens there.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert_silent(&told(&support::settings(&speech, port)).await, port);
    }
}

#[test]
fn problems_with_the_settings_tell_nothing() {
    for url in
        ["http://hidden.example.com:9/v1", "https://user:sk-canary-51f0c2@hidden/v1", "hidden", "gopher://hidden"]
    {
        for speech in all() {
            let settings = ProviderSettings { base_url: Some(url.to_owned()), ..support::settings(&speech, 9) };
            let problem = build("p", &settings).err().expect("a problem");
            let told = format!("{problem} {problem:?} {settings:?}");
            assert!(!told.contains("hidden") && !told.contains("sk-canary"), "{told}");
        }
    }
}
