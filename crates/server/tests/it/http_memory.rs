//! Memory over HTTP: what is put in comes out, until it expires or is forgotten.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_runtime::{Clock as _, Host, RandomIds};
use baton_store::MemoryStore;
use baton_testkit::SimClock;
use serde_json::{Value, json};
use support::{FULL, Site, host_options};

const MEMORY: &str = "/v1/host/baton/memory";

fn scope(name: &str) -> String {
    format!("{MEMORY}/{name}")
}

async fn site_with_clock() -> (Site, Arc<SimClock>, Arc<MemoryStore>) {
    let (clock, store) = (Arc::new(SimClock::default()), Arc::new(MemoryStore::new()));
    let host = Host::open_with(store.clone(), host_options(), clock.clone(), Arc::new(RandomIds)).await.unwrap();
    (Site::over(host, |_| {}), clock, store)
}

async fn contents(site: &Site, path: &str) -> Vec<Value> {
    let listed = site.get(path).await.json();
    listed["entries"].as_array().unwrap().iter().map(|entry| entry["content"].clone()).collect()
}

#[tokio::test]
async fn an_entry_is_remembered_listed_and_forgotten() {
    let site = Site::open().await;
    let answer = site.post(&scope("team"), json!({"content": "one", "tags": ["a", "b"]})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let entry = answer.json();
    assert_eq!((&entry["content"], &entry["tags"]), (&json!("one"), &json!(["a", "b"])));
    assert!(entry.get("expiresAt").is_none() && entry["createdAt"].is_string());
    let id = entry["id"].as_str().unwrap();
    assert_eq!(site.get(&format!("{}/{id}", scope("team"))).await.json(), entry);
    site.post(&scope("team"), json!({"content": "two", "tags": ["b"]})).await;
    site.post(&scope("other"), json!({"content": "three"})).await;

    assert_eq!(contents(&site, &scope("team")).await, ["two", "one"], "newest first");
    assert_eq!(contents(&site, &scope("team?tag=a")).await, ["one"]);
    assert_eq!(contents(&site, &scope("team?tag=nobody")).await, [""; 0]);
    assert_eq!(contents(&site, &scope("team?limit=1")).await, ["two"]);
    assert_eq!(contents(&site, &scope("team?limit=0")).await.len(), 2, "0 means the default");
    assert_eq!(contents(&site, &scope("nobody")).await, [""; 0]);
    let scopes = site.get(MEMORY).await.json();
    let names: Vec<_> = scopes["scopes"].as_array().unwrap().iter().map(|scope| scope["scope"].clone()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&json!("team")) && names.contains(&json!("other")));

    let path = format!("{}/{id}", scope("team"));
    site.get(&format!("{}/{id}", scope("other"))).await.refused(404, "not_found");
    site.delete(&format!("{}/{id}", scope("other"))).await.refused(404, "not_found");
    let gone = site.delete(&path).await;
    assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    site.get(&path).await.refused(404, "not_found");
    site.delete(&path).await.refused(404, "not_found");
    assert_eq!(contents(&site, &scope("team")).await, ["two"]);
}

#[tokio::test]
async fn lists_are_bounded() {
    let site = Site::open().await;
    for n in 0..101 {
        site.post(&scope("s"), json!({"content": n.to_string()})).await;
    }
    assert_eq!(contents(&site, &scope("s")).await.len(), 100);
    assert_eq!(contents(&site, &scope("s?limit=0")).await.len(), 100);
    assert_eq!(contents(&site, &scope("s?limit=1000")).await.len(), 101);
    for bad in ["limit=1001", "limit=-1", "limit=x", "tag=", "tga=a", "tag=a&tag=b"] {
        site.get(&scope(&format!("s?{bad}"))).await.refused(400, "validation_error");
    }
    site.get(&scope(&format!("s?tag={}", "x".repeat(257)))).await.refused(400, "validation_error");
}

#[tokio::test]
async fn scopes_may_be_named_by_any_text() {
    let site = Site::open().await;
    let names = ["team%2Fa", "a%20b", "%C3%A4%F0%9F%8C%8A", "50%25", "a%3Fb%23c", "run:1", "%2E%2E%2Fx"];
    for name in names {
        let entry = site.post(&scope(name), json!({"content": name})).await.json();
        assert_eq!(contents(&site, &scope(name)).await, [name]);
        let path = format!("{}/{}", scope(name), entry["id"].as_str().unwrap());
        assert_eq!(site.get(&path).await.json(), entry);
        assert_eq!(site.delete(&path).await.status, 204, "{name}");
    }
    let listed = site.get(MEMORY).await.json();
    let named: Vec<_> = listed["scopes"].as_array().unwrap().iter().map(|scope| scope["scope"].clone()).collect();
    for name in ["team/a", "a b", "ä🌊", "50%", "a?b#c", "run:1", "../x"] {
        assert!(named.contains(&json!(name)), "{name}: {named:?}");
    }
    for bad in ["a%00b", "a%0Ab", &"x".repeat(241)] {
        site.post(&scope(bad), json!({"content": "x"})).await.refused(400, "validation_error");
        assert_eq!(contents(&site, &scope(bad)).await, [""; 0]);
    }
    site.post(&scope("%FF"), json!({"content": "x"})).await.refused(400, "validation_error");
}

#[tokio::test]
async fn an_entry_that_does_not_fit_is_refused_with_its_place() {
    let site = Site::configured(|options| options.limits.max_memory_entry_bytes = 10).await;
    let cases = [
        (json!({}), ""),
        (json!({"content": 1}), "/content"),
        (json!({"content": "x", "tag": "a"}), "/tag"),
        (json!({"content": "x", "id": "mine"}), "/id"),
        (json!({"content": "x", "tags": "a"}), "/tags"),
        (json!({"content": "x", "tags": vec!["t"; 101]}), "/tags"),
        (json!({"content": "x", "ttlSeconds": 0}), "/ttlSeconds"),
        (json!({"content": "x", "ttlSeconds": -5}), "/ttlSeconds"),
        (json!({"content": "x", "ttlSeconds": 1e300}), "/ttlSeconds"),
        (json!({"content": "x", "ttlSeconds": "5"}), "/ttlSeconds"),
        (json!({"content": "x", "ttlSeconds": 5, "expiresAt": "2999-01-01T00:00:00Z"}), "/expiresAt"),
        (json!({"content": "x", "expiresAt": "2020-01-01T00:00:00Z"}), "/expiresAt"),
        (json!({"content": "x", "expiresAt": "tomorrow"}), "/expiresAt"),
    ];
    for (body, pointer) in cases {
        let details = site.post(&scope("s"), body.clone()).await.refused(400, "validation_error");
        assert_eq!(details["pointer"], pointer, "{body}");
    }
    site.post(&scope("s"), json!({"content": "x", "tags": ["x".repeat(257)]})).await.refused(400, "validation_error");
    site.post(&scope("s"), json!({"content": "x", "tags": [""]})).await.refused(400, "validation_error");
    let details = site.post(&scope("s"), json!({"content": "x".repeat(11)})).await.refused(400, "validation_error");
    assert_eq!(details["limit"], 10);
    assert_eq!(site.post(&scope("s"), json!({"content": "x".repeat(10)})).await.status, 201);
    assert_eq!(contents(&site, &scope("s")).await.len(), 1);
}

#[tokio::test]
async fn an_expired_entry_is_gone_for_every_reader() {
    let (site, clock, _) = site_with_clock().await;
    let end = clock.now().plus_millis(60_000);
    let bodies = [
        json!({"content": "ttl", "ttlSeconds": 60}),
        json!({"content": "fraction", "ttlSeconds": 59.5}),
        json!({"content": "instant", "expiresAt": end.to_string()}),
    ];
    let mut paths = Vec::new();
    for body in bodies {
        let entry = site.post(&scope("s"), body).await.json();
        assert!(entry["expiresAt"].as_str().unwrap() <= end.to_string().as_str(), "{entry}");
        paths.push(format!("{}/{}", scope("s"), entry["id"].as_str().unwrap()));
    }
    site.post(&scope("s"), json!({"content": "stays"})).await;
    clock.advance(59_400);
    assert_eq!(contents(&site, &scope("s")).await.len(), 4);
    assert_eq!(site.get(&paths[0]).await.status, 200);
    clock.advance(599);
    assert_eq!(contents(&site, &scope("s")).await, ["stays", "instant", "ttl"]);
    clock.advance(1);
    assert_eq!(contents(&site, &scope("s")).await, ["stays"]);
    for path in &paths {
        site.get(path).await.refused(404, "not_found");
        site.delete(path).await.refused(404, "not_found");
    }
    let late = json!({"content": "late", "expiresAt": end.to_string()});
    site.post(&scope("s"), late).await.refused(400, "validation_error");
}

#[tokio::test]
async fn a_key_remembers_once_and_its_answer_is_durable_with_the_entry() {
    let (site, _, store) = site_with_clock().await;
    let body = json!({"content": "once", "tags": ["t"]});
    site.post(&scope("s"), json!({"content": "warm"})).await;
    let before = store.commits();
    let first = site.keyed("k", &scope("s"), body.clone()).await;
    assert_eq!((first.status.as_u16(), first.header("openwop-idempotent-replay")), (201, "false"));
    assert_eq!(store.commits(), before + 1, "one commit holds the entry and its reply");
    for _ in 0..3 {
        let again = site.keyed("k", &scope("s"), body.clone()).await;
        assert_eq!((again.status.as_u16(), again.header("openwop-idempotent-replay")), (201, "true"));
        assert_eq!(again.text, first.text);
    }
    site.keyed("k", &scope("s"), json!({"content": "another"})).await.refused(409, "idempotency_key_mismatch");
    site.keyed("k", &scope("t"), body.clone()).await.refused(409, "idempotency_key_mismatch");
    assert_eq!(contents(&site, &scope("s")).await, ["once", "warm"]);

    let reborn = Host::open(Arc::new(MemoryStore::from_disk(store.disk())), host_options()).await.unwrap();
    let site = Site::over(reborn, |_| {});
    let again = site.keyed("k", &scope("s"), body).await;
    assert_eq!((again.header("openwop-idempotent-replay"), &again.text), ("true", &first.text));
    assert_eq!(contents(&site, &scope("s")).await, ["once", "warm"], "after a restart as well");
}

#[tokio::test]
async fn a_full_scope_says_so_until_there_is_room() {
    let site = Site::configured(|options| options.limits.max_memory_entries = 2).await;
    let first = site.post(&scope("s"), json!({"content": "1"})).await.json();
    site.post(&scope("s"), json!({"content": "2"})).await;
    let details = site.post(&scope("s"), json!({"content": "3"})).await.refused(413, "memory_full");
    assert_eq!(details["limit"], 2);
    assert_eq!(site.post(&scope("t"), json!({"content": "1"})).await.status, 201, "another scope has its own room");
    site.delete(&format!("{}/{}", scope("s"), first["id"].as_str().unwrap())).await;
    let keyed = [FULL, ("idempotency-key", "later")];
    let body = json!({"content": "3"}).to_string();
    assert_eq!(site.send("POST", &scope("s"), &keyed, Body::from(body)).await.status, 201);
}
