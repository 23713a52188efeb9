//! Subscriptions and their dead letters over HTTP: who may see them, what they show, and what can be done about them.

use crate::support;

use std::sync::Arc;

use baton_model::{RunId, Timestamp, WebhookId};
use baton_runtime::{Clock as _, SystemClock};
use baton_store::reads::*;
use baton_store::{Commit, DeadLetter, DeadLetterWrite, DeathReason, Journal as _, MemoryStore, Write};
use serde_json::{Value, json};
use support::{FULL, OTHER, READER, Site};

fn letter(webhook: &str, seq: u64, at: Timestamp) -> Write {
    Write::DeadLetters(DeadLetterWrite::Put(DeadLetter {
        webhook: WebhookId::new(webhook),
        run: RunId::new("run_1"),
        seq,
        kind: "run.completed".to_owned(),
        attempts: 6,
        reason: DeathReason::RetriesExhausted,
        status: Some(503),
        at,
    }))
}

/// A subscription that fails, and three letters of it; the last two are of one instant.
async fn site_with_letters() -> (Arc<MemoryStore>, Site, String, Value) {
    let store = Arc::new(MemoryStore::new());
    let site = Site::on(&store).await;
    let body =
        json!({"url": "https://hooks.example.com/in?token=t0psecret", "events": ["run.completed"], "tags": ["x"]});
    let made = site.post("/v1/webhooks", body).await.json();
    let id = made["webhookId"].as_str().unwrap().to_owned();
    let now = SystemClock.now();
    let later = now.plus_millis(1);
    let writes = vec![letter(&id, 3, now), letter(&id, 5, later), letter(&id, 7, later)];
    store.submit(Commit::new(store.generation(), writes)).await.unwrap();
    (store, site, id, made)
}

#[tokio::test]
async fn subscriptions_are_listed_without_their_secrets() {
    let (_store, site, id, made) = site_with_letters().await;
    let list = site.get("/v1/webhooks").await;
    let shown = site.get(&format!("/v1/webhooks/{id}")).await;
    let letters = site.get(&format!("/v1/webhooks/{id}/dead-letters")).await;
    assert_eq!(list.json()["webhooks"], json!([shown.json()]));
    let expected = json!({
        "webhookId": id, "url": "https://hooks.example.com/in?...", "events": ["run.completed"], "tags": ["x"],
        "state": "active", "secretFingerprint": made["secretFingerprint"], "createdAt": shown.json()["createdAt"],
        "consecutiveFailures": 0, "waiting": 0, "deadLetters": 3, "deadLettersDropped": 0,
    });
    assert_eq!(shown.json(), expected);
    for answer in [&list, &shown, &letters] {
        assert!(!answer.text.contains(made["secret"].as_str().unwrap()) && !answer.text.contains("t0psecret"));
    }
    let document = site.get("/.well-known/openwop").await.json();
    assert_eq!(document["webhooks"]["durable"], true);
    assert_eq!(document["baton"]["webhooks"]["deadLetters"]["retentionDays"], letters.json()["retentionDays"]);
}

#[tokio::test]
async fn subscriptions_are_paged() {
    let site = Site::open().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let made = site.post("/v1/webhooks", json!({"url": "https://hooks.example.com", "events": ["*"]})).await;
        ids.push(made.json()["webhookId"].as_str().unwrap().to_owned());
    }
    ids.sort();
    let (mut found, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = site.get(&format!("/v1/webhooks{query}")).await.json();
        found.extend(page["webhooks"].as_array().unwrap().iter().map(|w| w["webhookId"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(found, ids);
    for bad in ["?limit=0", "?limit=201", "?limit=x", "?page=2"] {
        site.get(&format!("/v1/webhooks{bad}")).await.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn letters_are_paged_newest_first_with_cursors_of_one_subscription() {
    let (_store, site, id, _) = site_with_letters().await;
    let path = format!("/v1/webhooks/{id}/dead-letters");
    let (mut found, mut query) = (Vec::new(), "?limit=1".to_owned());
    let mut cursor = String::new();
    loop {
        let page = site.get(&format!("{path}{query}")).await.json();
        found.extend(page["deadLetters"].as_array().unwrap().iter().map(|letter| letter["letterId"].clone()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = next.to_owned();
        query = format!("?limit=1&cursor={next}");
    }
    assert_eq!(found, ["run_1.7", "run_1.5", "run_1.3"]);
    let letter = site.get(&path).await.json()["deadLetters"][0].clone();
    let (at, until) = (letter["deadLetteredAt"].as_str().unwrap(), letter["expiresAt"].as_str().unwrap());
    let (at, until) = (Timestamp::parse(at).unwrap(), Timestamp::parse(until).unwrap());
    assert_eq!(until.millis_since(at), 30 * 24 * 3_600_000);
    let facts = json!([letter["type"], letter["reason"], letter["lastStatus"], letter["attempts"], letter["runId"]]);
    assert_eq!(facts, json!(["run.completed", "retries_exhausted", 503, 6, "run_1"]));

    let other = site.post("/v1/webhooks", json!({"url": "https://hooks.example.com", "events": ["*"]})).await.json();
    let other = other["webhookId"].as_str().unwrap();
    let wrong = site.get(&format!("/v1/webhooks/{other}/dead-letters?cursor={cursor}")).await;
    wrong.refused(400, "validation_error");
    site.get(&format!("{path}?cursor=made-up")).await.refused(400, "validation_error");
}

#[tokio::test]
async fn a_letter_is_sent_again_once_and_let_go() {
    let (store, site, id, _) = site_with_letters().await;
    let host = format!("/v1/host/baton/webhooks/{id}");
    site.post(&format!("{host}/dead-letters/run_1.99/redeliver"), json!({})).await.refused(404, "not_found");
    site.post(&format!("{host}/dead-letters/nonsense/redeliver"), json!({})).await.refused(404, "not_found");
    site.post(&format!("{host}/dead-letters/redeliver"), json!({"all": true})).await.refused(400, "validation_error");
    let gone = site.send("DELETE", &format!("{host}/dead-letters/run_1.3"), &[FULL], "").await;
    assert_eq!(gone.status.as_u16(), 204, "{}", gone.text);
    site.send("DELETE", &format!("{host}/dead-letters/run_1.3"), &[FULL], "").await.refused(404, "not_found");
    let rest = site.send("DELETE", &format!("{host}/dead-letters"), &[FULL], "").await;
    assert_eq!(rest.status.as_u16(), 204, "{}", rest.text);
    let all = site.post(&format!("{host}/dead-letters/redeliver"), json!({})).await;
    assert_eq!((all.status.as_u16(), all.json()), (202, json!({"queued": 0})), "{}", all.text);
    store.submit(Commit::new(store.generation(), vec![letter(&id, 5, SystemClock.now())])).await.unwrap();
    let again = site.post(&format!("{host}/dead-letters/run_1.5/redeliver"), json!({})).await;
    assert_eq!((again.status.as_u16(), again.json()), (202, json!({"queued": 1})));

    let rotated = site.post(&format!("{host}/rotate-secret"), json!({})).await.json();
    let shown = site.get(&format!("/v1/webhooks/{id}")).await.json();
    assert_eq!(shown["secretFingerprint"], rotated["secretFingerprint"]);
    let resumed = site.post(&format!("{host}/resume"), json!({})).await.json();
    assert_eq!(resumed["state"], "active");
    assert_eq!(site.send("DELETE", &format!("/v1/webhooks/{id}"), &[FULL], "").await.status.as_u16(), 204);
    assert_eq!(store.dead_letters(&WebhookId::new(&id), None, 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_foreign_subscription_looks_like_an_unknown_one() {
    let (_store, site, id, _) = site_with_letters().await;
    for id in [id.as_str(), "wh_nobody"] {
        let host = format!("/v1/host/baton/webhooks/{id}");
        for (method, path) in [
            ("GET", format!("/v1/webhooks/{id}")),
            ("GET", format!("/v1/webhooks/{id}/dead-letters")),
            ("GET", format!("/v1/webhooks/{id}/dead-letters?cursor=made-up")),
            ("POST", format!("{host}/resume")),
            ("POST", format!("{host}/rotate-secret")),
            ("POST", format!("{host}/dead-letters/redeliver")),
            ("POST", format!("{host}/dead-letters/run_1.3/redeliver")),
            ("DELETE", format!("{host}/dead-letters")),
            ("DELETE", format!("{host}/dead-letters/run_1.3")),
        ] {
            site.send(method, &path, &[OTHER], "").await.refused(404, "subscription_not_found");
            site.send(method, &path, &[READER], "").await.refused(403, "forbidden");
        }
    }
    assert_eq!(site.send("GET", "/v1/webhooks", &[OTHER], "").await.json(), json!({"webhooks": []}));
    site.send("GET", "/v1/webhooks", &[READER], "").await.refused(403, "forbidden");
    assert_eq!(site.get(&format!("/v1/webhooks/{id}")).await.json()["deadLetters"], 3, "nothing has changed");
}
