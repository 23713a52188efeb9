//! What comes of servers that are slow, broken, overloaded or malicious.

use crate::support;

use baton_model::{ModelRequest, StopReason};
use baton_provider::{ProviderFault, ProviderKind, ProviderSettings, WireFormat};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use support::{Answer, Notes, Piece, Spoken, Stub, all, bytes, call, openai, provider, request};

fn outcome(answer: Result<baton_model::ModelReply, ProviderFault>) -> &'static str {
    answer.as_ref().map_or_else(ProviderFault::outcome, |_| "answered")
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer_wherever_it_is_cut() {
    for speech in all() {
        // The last event is not needed to know what was said, but without it nobody knows what it cost, or if it was all.
        for kept in 1..speech.stream.len() {
            let stub = Stub::new([Answer::events(&speech.stream[..kept]).then(Piece::Cut)]).await;
            let (answer, notes) = call(&stub.settings(&speech), &request(json!({}))).await;
            assert_eq!(outcome(answer), "unavailable", "{:?} after {kept}", speech.kind);
            assert!("Hello".starts_with(&notes.text()));
            assert_eq!(stub.asked().len(), 1, "an answer that had begun is not asked for again");
        }
        let half = speech.whole.to_string();
        let half = Answer::new(200, "application/json", half[..half.len() / 2].to_owned());
        for answer in [half.clone(), half.then(Piece::Cut)] {
            let stub = Stub::new([answer]).await;
            assert_eq!(outcome(call(&stub.settings(&speech), &request(json!({}))).await.0), "unavailable");
            assert_eq!(stub.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn what_is_no_answer_is_not_taken_for_one() {
    for speech in all() {
        for (content_type, body) in [
            ("application/json", "{\"choices\": oops"),
            ("application/json", "{}"),
            ("application/json", "[]"),
            ("application/json", ""),
            ("text/html", "<html>welcome</html>"),
            ("text/event-stream", "data: {oops\n\n"),
            ("text/event-stream", ": nothing\n\n"),
            ("text/event-stream", "data: [1]\n\n"),
        ] {
            let stub = Stub::new([Answer::new(200, content_type, body)]).await;
            let (answer, _) = call(&stub.settings(&speech), &request(json!({}))).await;
            assert_eq!(outcome(answer), "unavailable", "{:?} {body:?}", speech.kind);
            assert_eq!(stub.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_dead_one_not_for_ever() {
    for speech in all() {
        let busy = [429, 500, 503, 529].map(|status| Answer::json(status, json!({"error": {"message": "busy"}})));
        let [limited, broken, gone, overloaded] = busy;
        let good = Answer::events(&speech.stream);
        let stub = Stub::new([limited.header("retry-after", "0"), broken, gone, good.clone()]).await;
        assert_eq!(call(&stub.settings(&speech), &request(json!({}))).await.0.unwrap().content, "Hello");
        assert_eq!(stub.asked().len(), 4);
        let stub = Stub::new([overloaded.clone()]).await;
        assert_eq!(outcome(call(&stub.settings(&speech), &request(json!({}))).await.0), "unavailable");
        assert_eq!(stub.asked().len(), 4);
        let once = ProviderSettings { retries: 0, ..stub.settings(&speech) };
        assert_eq!(outcome(call(&once, &request(json!({}))).await.0), "unavailable");
        assert_eq!(stub.asked().len(), 5);
    }
}

#[tokio::test]
async fn a_server_that_wants_too_long_a_pause_gets_no_more_questions() {
    let stub = Stub::new([Answer::json(429, json!({})).header("retry-after", "3600")]).await;
    let answer = call(&stub.settings(ProviderKind::OpenAi), &request(json!({}))).await.0;
    assert_eq!((answer, stub.asked().len()), (Err(ProviderFault::Exhausted), 1));
    let quota = json!({"error": {"code": "insufficient_quota", "message": "pay"}});
    let stub = Stub::new([Answer::json(429, quota)]).await;
    let answer = call(&stub.settings(ProviderKind::OpenAi), &request(json!({}))).await.0;
    assert_eq!((answer, stub.asked().len()), (Err(ProviderFault::Exhausted), 1));
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_is_made_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hello = tokio::spawn(async move {
        for _ in 0..2 {
            drop(listener.accept().await.unwrap());
        }
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !String::from_utf8_lossy(&request).contains("the secret plan") {
            assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0);
        }
        let body = openai().whole.to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        socket.write_all((head + &body).as_bytes()).await.unwrap();
        // Until the other side has had enough, so that closing does not take the answer with it.
        let _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
    });
    let settings = support::settings(ProviderKind::OpenAi, port);
    assert_eq!(call(&settings, &request(json!({}))).await.0.unwrap().content, "Hello");
    hello.await.unwrap();
    // Nobody is there any more.
    let (answer, _) = call(&settings, &request(json!({}))).await;
    assert_eq!(answer, Err(ProviderFault::Unavailable("it cannot be reached, no connection came about".to_owned())));
}

#[tokio::test]
async fn requests_that_are_wrong_are_not_repeated() {
    let elsewhere = Stub::new([Answer::json(200, openai().whole)]).await;
    for status in [307, 400, 401, 403, 404, 409, 413, 422] {
        let place: &'static str = Box::leak(format!("http://127.0.0.1:{}/", elsewhere.port).into_boxed_str());
        let stub =
            Stub::new([Answer::json(status, json!({"error": {"message": "no"}})).header("location", place)]).await;
        let (answer, _) = call(&stub.settings(ProviderKind::OpenAi), &request(json!({}))).await;
        assert_eq!(outcome(answer), "rejected", "{status}");
        assert_eq!(stub.asked().len(), 1, "{status}");
    }
    assert!(elsewhere.asked().is_empty(), "a key goes nowhere else");
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_final() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I would rather not."});
    let refusal = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    let filtered = json!({"error": {"code": "content_filter", "message": "the secret plan is bad"}});
    let anthropic = json!({"type": "message", "content": [], "stop_reason": "refusal", "stop_details": {"category": "bio"},
        "usage": {"input_tokens": 1, "output_tokens": 0}});
    let gemini = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    let said = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I would rather not."}]}]);
    let response = json!({"status": "completed", "output": said, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let responses = Spoken(ProviderKind::OpenAi, WireFormat::Responses);
    let [chat, anthropic_, gemini_] =
        [ProviderKind::OpenAi, ProviderKind::Anthropic, ProviderKind::Gemini].map(Spoken::from);
    for (spoken, answer, category) in [
        (chat, Answer::json(200, refusal), None),
        (chat, Answer::json(400, filtered.clone()), Some("content_filter")),
        (responses, Answer::json(200, response), None),
        (responses, Answer::json(400, filtered), Some("content_filter")),
        (anthropic_, Answer::json(200, anthropic), Some("bio")),
        (gemini_, Answer::json(200, gemini), Some("PROHIBITED_CONTENT")),
    ] {
        let stub = Stub::new([answer]).await;
        let reply = call(&stub.settings(spoken), &request(json!({}))).await.0.unwrap();
        assert!(reply.is_refusal() && reply.stop == StopReason::Refusal, "{:?}", spoken.0);
        assert_eq!(reply.safety_category.as_deref(), category);
        assert_eq!(stub.asked().len(), 1);
    }
}

#[tokio::test]
async fn long_answers_are_read_up_to_a_bound() {
    let long = "x".repeat(10 << 20);
    let whole = json!({"choices": [{"message": {"content": long}, "finish_reason": "stop"}]});
    let pieces: Vec<_> = (0..10).map(|_| json!({"choices": [{"delta": {"content": &long[..1 << 20]}}]})).collect();
    let end = [json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})];
    for answer in [Answer::json(200, whole), Answer::events(pieces.iter().chain(&end))] {
        let stub = Stub::new([answer]).await;
        let settings = stub.settings(ProviderKind::OpenAi);
        assert_eq!(call(&settings, &request(json!({}))).await.0.unwrap().content.len(), 10 << 20);
        let narrow = ProviderSettings { max_reply_bytes: 1 << 20, max_stream_bytes: 1 << 20, ..settings };
        let fault = call(&narrow, &request(json!({}))).await.0.unwrap_err();
        let said = ProviderFault::Unavailable("its answer is longer than the 1048576 bytes that are read".into());
        assert_eq!(fault.cause(), &said);
        assert!(
            matches!(&fault, ProviderFault::Broken(broken) if !broken.again),
            "it would be as long again: {fault:?}"
        );
        assert_eq!(stub.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_stream_without_end_is_ended() {
    let chunk = json!({"choices": [{"delta": {"content": "x"}}]});
    for endless in
        [format!("data: {chunk}\n\n"), ": ping\n\n".repeat(99), "data: a line without end".repeat(99), " ".repeat(999)]
    {
        let stub = Stub::new([Answer::events([]).then(Piece::Endless(endless.clone().into()))]).await;
        let bound = 256 << 10;
        let settings =
            ProviderSettings { max_stream_bytes: bound, max_reply_bytes: bound, ..stub.settings(ProviderKind::OpenAi) };
        assert_eq!(outcome(call(&settings, &request(json!({}))).await.0), "unavailable", "{endless:?}");
        stub.over(1).await;
    }
}

#[tokio::test]
async fn silence_is_not_waited_out() {
    for speech in all() {
        let begun = Answer::events(&speech.stream[..2]).then(Piece::Hang);
        // Between two pieces of an answer, and before the first.
        for answer in [begun.clone(), Answer::events([]).then(Piece::Hang)] {
            let stub = Stub::new([answer]).await;
            let settings = ProviderSettings { idle_timeout_ms: 50, ..stub.settings(&speech) };
            assert_eq!(outcome(call(&settings, &request(json!({}))).await.0), "timed-out");
            stub.over(1).await;
            assert_eq!(stub.asked().len(), 1);
        }
        // For all of it: as the request says, else as the settings say.
        for answer in [begun, Answer::silence()] {
            let stub = Stub::new([answer]).await;
            let settings = stub.settings(&speech);
            let hurried = ModelRequest { timeout_ms: Some(50), ..request(json!({})) };
            assert_eq!(outcome(call(&settings, &hurried).await.0), "timed-out");
            let hurried = ProviderSettings { timeout_ms: 50, ..settings };
            assert_eq!(outcome(call(&hurried, &request(json!({}))).await.0), "timed-out");
        }
    }
}

#[tokio::test]
async fn a_pause_that_outlasts_the_caller_is_not_made() {
    let stub = Stub::new([Answer::json(503, json!({})).header("retry-after", "20")]).await;
    let hurried = ModelRequest { timeout_ms: Some(10_000), ..request(json!({})) };
    assert_eq!(outcome(call(&stub.settings(ProviderKind::OpenAi), &hurried).await.0), "unavailable");
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn whoever_loses_interest_ends_the_connection() {
    let chunk = json!({"choices": [{"delta": {"content": "x"}}]});
    for answer in [Answer::silence(), Answer::events([&chunk]).then(Piece::Hang)] {
        let stub = Stub::new([answer]).await;
        let provider = provider(&stub.settings(ProviderKind::OpenAi));
        let asking = tokio::spawn(async move { provider.call(&request(json!({})), &Notes::default()).await });
        stub.until_asked(1).await;
        asking.abort();
        stub.over(1).await;
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_not_an_end() {
    let error = |kind: &str| format!("event: error\ndata: {}\n\n", json!({"type": "error", "error": {"type": kind}}));
    for (kind, expected) in [("overloaded_error", "unavailable"), ("rate_limit_error", "exhausted")] {
        for speech in all() {
            let answer = Answer::events(&speech.stream[..2]).then(bytes(error(kind)));
            let stub = Stub::new([answer]).await;
            assert_eq!(outcome(call(&stub.settings(&speech), &request(json!({}))).await.0), expected);
            assert_eq!(stub.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn whoever_counts_nothing_is_counted_for() {
    for speech in all() {
        let reported = Stub::new([Answer::json(200, speech.whole.clone())]).await;
        let reply = call(&reported.settings(&speech), &request(json!({}))).await.0.unwrap();
        assert!(!reply.usage.estimated && reply.usage.total() > 0, "{:?}", speech.kind);
        let mut uncounted = speech.whole.clone();
        let body = uncounted.as_object_mut().unwrap();
        assert!(body.remove("usage").or_else(|| body.remove("usageMetadata")).is_some());
        let stub = Stub::new([Answer::json(200, uncounted)]).await;
        let reply = call(&stub.settings(&speech), &request(json!({}))).await.0.unwrap();
        assert!(reply.usage.estimated, "{:?}", speech.kind);
        assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0, "{:?}", reply.usage);
    }
}
