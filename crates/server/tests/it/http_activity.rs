//! Hearing which runs change.

use crate::support;

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use support::{Frames, Site};

const PATH: &str = "/v1/host/baton/activity";

async fn listen(site: &Site, key: &str) -> Frames {
    let request = Request::builder().uri(PATH).header("authorization", format!("Bearer {key}"));
    Frames::new(site.raw(request.body(Body::empty()).unwrap()).await)
}

#[tokio::test]
async fn a_listener_hears_of_its_tenants_runs_and_of_no_others() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let (mut ours, mut theirs) = (listen(&site, "reader").await, listen(&site, "other").await);
    let (hello, other) = (ours.next().await.unwrap(), theirs.next().await.unwrap());
    assert_eq!((hello.event.as_str(), &hello.data["openInterrupts"]), ("hello", &json!(0)));
    assert_eq!(hello.data["instance"], other.data["instance"], "one host");

    let run = site.start("gate").await;
    let seen = loop {
        let frame = ours.next().await.unwrap();
        assert_eq!(frame.event, "runs");
        let rows = frame.data["runs"].as_array().unwrap().clone();
        assert!(rows.iter().all(|row| row["runId"] == json!(run)), "{}", frame.data);
        if rows[0]["status"] == "waiting-approval" {
            break frame.data;
        }
    };
    assert_eq!(seen["openInterrupts"], 1);
    let listed = site.get("/v1/runs").await.json()["runs"][0].clone();
    assert_eq!(seen["runs"][0], listed, "rows are those of the list");

    site.post(&format!("/v1/runs/{run}/interrupts/n"), json!({"resumeValue": {"action": "accept"}})).await;
    loop {
        let frame = ours.next().await.unwrap();
        if frame.data["runs"][0]["status"] == "completed" {
            assert_eq!(frame.data["openInterrupts"], 0);
            break;
        }
    }
    site.shutdown.cancel();
    assert_eq!(ours.next().await, None, "ends with the host");
    assert_eq!(theirs.all().await, [], "another tenant heard nothing in all that time");
}

#[tokio::test]
async fn many_changes_become_few_frames_and_each_run_is_told_in_the_end() {
    let site = Site::open().await;
    site.register("plain", "core.noop", json!({})).await;
    let mut frames = listen(&site, "full").await;
    assert_eq!(frames.next().await.unwrap().event, "hello");
    let mut missing = std::collections::BTreeSet::new();
    for _ in 0..50 {
        missing.insert(site.completed("plain").await);
    }
    let mut heard = 0;
    while !missing.is_empty() {
        let frame = frames.next().await.unwrap();
        heard += 1;
        for row in frame.data["runs"].as_array().unwrap() {
            if row["status"] == "completed" {
                missing.remove(row["runId"].as_str().unwrap());
            }
        }
    }
    assert!(heard < 50, "{heard} frames for 50 runs");
}

#[tokio::test]
async fn too_much_at_once_is_a_request_to_list_again() {
    let site = Site::open().await;
    site.register("plain", "core.noop", json!({})).await;
    let mut frames = listen(&site, "full").await;
    assert_eq!(frames.next().await.unwrap().event, "hello");
    // Nobody reads meanwhile, so all of it is one moment to the listener.
    for _ in 0..1100 {
        site.start("plain").await;
    }
    let frame = frames.next().await.unwrap();
    assert_eq!((frame.event.as_str(), &frame.data["openInterrupts"]), ("relist", &json!(0)));
}

#[tokio::test]
async fn listening_needs_the_scope() {
    let keys = "poor:acme:manifest:read";
    let site = Site::with(|options| options.keys = baton_server::Keys::parse(keys).unwrap()).await;
    let answer = site.send("GET", PATH, &[("authorization", "Bearer poor")], Body::empty()).await;
    answer.refused(403, "forbidden");
    site.send("GET", PATH, &[], Body::empty()).await.refused(401, "unauthenticated");
}
