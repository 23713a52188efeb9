//! The seams around the loop and the workspace: real runs, real files, and nothing outside conformance mode.

use crate::support;

use axum::body::Body;
use baton_model::event::EscalationInterrupt;
use serde_json::{Value, json};
use support::{FULL, JSON, Site};

const LOOP: &str = "/v1/host/sample/agentloop/run";
const OP: &str = "/v1/host/sample/workspace/op";

async fn conformance() -> Site {
    Site::configured(|options| options.conformance = true).await
}

async fn looped(site: &Site, request: Value) -> Value {
    let answer = site.post(LOOP, request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

fn iterations(answer: &Value) -> Vec<u64> {
    answer["decisions"].as_array().unwrap().iter().map(|decision| decision["iteration"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn turns_count_one_two_three_and_the_run_behind_them_is_real() {
    let site = conformance().await;
    let answer = looped(&site, json!({"turns": 4})).await;
    assert_eq!(iterations(&answer), [1, 2, 3, 4]);
    let kinds: Vec<_> = answer["decisions"].as_array().unwrap().iter().map(|d| d["decision"]["kind"].clone()).collect();
    assert_eq!(kinds, ["next-worker", "next-worker", "next-worker", "terminate"]);
    assert!(answer["decisions"][0]["agentId"].as_str().unwrap().len() >= 3);
    for absent in ["workspaceVisible", "resumedIteration", "bound"] {
        assert!(answer.get(absent).is_none(), "{absent}");
    }
    let run = answer["runId"].as_str().unwrap();
    let log = site.log(run).await;
    let decided: Vec<_> = log.iter().filter(|event| event["type"] == "runOrchestrator.decided").collect();
    assert_eq!(
        decided.iter().map(|event| event["payload"].clone()).collect::<Vec<_>>(),
        *answer["decisions"].as_array().unwrap()
    );
    let children = site.get(&format!("/v1/runs?parentRunId={run}")).await.json();
    assert_eq!(children["runs"].as_array().unwrap().len(), 3);
    assert_eq!(iterations(&looped(&site, json!({"turns": 1})).await), [1]);
}

#[tokio::test]
async fn what_a_worker_wrote_shows_from_the_next_turn_on() {
    let site = conformance().await;
    for (turns, turn) in [(2, 1), (4, 2), (4, 3)] {
        // Again and again on the same file: an older version must not pass for the one just written.
        let answer = looped(&site, json!({"turns": turns, "workspaceWriteAtTurn": turn})).await;
        assert_eq!(answer["workspaceVisible"], json!({"atWriteTurn": false, "atNextTurn": true}), "{turn} of {turns}");
        assert_eq!(iterations(&answer).len(), turns);
    }
    let files = site.get("/v1/host/workspace/files").await.json();
    assert_eq!(files["files"][0]["version"], 3, "each loop really wrote");
}

#[tokio::test]
async fn a_held_turn_goes_on_under_its_own_number() {
    for interrupt in [EscalationInterrupt::Approval, EscalationInterrupt::Clarification, EscalationInterrupt::Vendor] {
        let site = Site::configured(|options| {
            options.conformance = true;
            options.escalation.interrupt = interrupt;
        })
        .await;
        let answer = looped(&site, json!({"turns": 4, "suspendAtTurn": 2, "resume": true})).await;
        assert_eq!((&answer["resumedIteration"], iterations(&answer)), (&json!(2), vec![1, 2, 3, 4]), "{interrupt:?}");
        let last = looped(&site, json!({"turns": 2, "suspendAtTurn": 2, "resume": true})).await;
        assert_eq!(last["resumedIteration"], 2);
    }
    let site = conformance().await;
    let claimed = site.get("/.well-known/openwop").await.json()["multiAgent"]["executionModel"].clone();
    assert_eq!((&claimed["statefulResume"], &claimed["version"]), (&json!(true), &json!(5)), "what is shown here");
    let alone = looped(&site, json!({"turns": 4, "suspendAtTurn": 2})).await;
    assert!(alone.get("resumedIteration").is_none());
    assert_eq!(iterations(&alone), [1], "a held decision was not taken");
    let run = site.get(&format!("/v1/runs/{}", alone["runId"].as_str().unwrap())).await.json();
    assert_eq!(run["status"], "cancelled", "nothing is left waiting");
    let both = json!({"turns": 3, "workspaceWriteAtTurn": 2, "suspendAtTurn": 2, "resume": true});
    let both = looped(&site, both).await;
    assert_eq!(both["workspaceVisible"], json!({"atWriteTurn": false, "atNextTurn": true}));
    assert_eq!(both["resumedIteration"], 2);
}

#[tokio::test]
async fn the_bound_on_turns_is_reported_from_the_log() {
    let site = conformance().await;
    let answer = looped(&site, json!({"turns": 5, "maxLoopIterations": 3})).await;
    assert_eq!(iterations(&answer), [1, 2, 3]);
    let bound = &answer["bound"];
    assert_eq!(
        (&bound["kind"], &bound["limit"], &bound["observed"]),
        (&json!("loop-iterations"), &json!(3), &json!(4))
    );
    assert_eq!(bound["errorCode"], "loop_limit_exceeded");
    let wide = looped(&site, json!({"turns": 3, "maxLoopIterations": 10})).await;
    assert!(wide.get("bound").is_none() && iterations(&wide).len() == 3);
    let cut = looped(&site, json!({"turns": 3, "workspaceWriteAtTurn": 2, "maxLoopIterations": 2})).await;
    assert!(cut.get("workspaceVisible").is_none(), "the next turn never came: {cut}");
}

#[tokio::test]
async fn nonsense_is_refused() {
    let site = conformance().await;
    let bad = [
        json!({}),
        json!({"turns": 0}),
        json!({"turns": -1}),
        json!({"turns": 101}),
        json!({"turns": 1.5}),
        json!({"turns": "3"}),
        json!({"turns": 3, "suspendAtTurn": 0}),
        json!({"turns": 3, "suspendAtTurn": 4}),
        json!({"turns": 3, "workspaceWriteAtTurn": 0}),
        json!({"turns": 3, "workspaceWriteAtTurn": 3}),
        json!({"turns": 3, "resume": "yes"}),
        json!({"turns": 3, "maxLoopIterations": 0}),
        json!({"turns": 3, "maxLoopIterations": "x"}),
    ];
    for request in bad {
        site.post(LOOP, request.clone()).await.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn owners_do_not_meet_in_the_workspace_seam() {
    let site = conformance().await;
    let op = async |tenant: &str, workspace: &str, op: Value| {
        let mut body = json!({"tenant": tenant, "workspace": workspace});
        body.as_object_mut().unwrap().extend(op.as_object().unwrap().clone());
        site.post(OP, body).await
    };
    let put = json!({"op": "put", "path": "a/b.md", "content": "mine", "contentType": "text/plain"});
    let written = op("t1", "w1", put).await;
    assert_eq!((written.status.as_u16(), &written.json()["version"]), (200, &json!(1)), "{}", written.text);
    assert_eq!(written.header("etag"), format!("\"{}\"", written.json()["etag"].as_str().unwrap()));
    for (tenant, workspace) in [("t2", "w1"), ("t1", "w2"), ("acme", "default")] {
        op(tenant, workspace, json!({"op": "get", "path": "a/b.md"})).await.refused(404, "not_found");
        op(tenant, workspace, json!({"op": "delete", "path": "a/b.md"})).await.refused(404, "not_found");
        assert_eq!(op(tenant, workspace, json!({"op": "list"})).await.json(), json!({"files": []}));
    }
    assert_eq!(op("t1", "w1", json!({"op": "get", "path": "a/b.md"})).await.json()["content"], "mine");
    let listed = op("t1", "w1", json!({"op": "list", "prefix": "a/"})).await.json();
    assert_eq!(listed["files"][0]["path"], "a/b.md");
    let stale = json!({"op": "put", "path": "a/b.md", "content": "x", "ifMatch": "stale"});
    assert_eq!(op("t1", "w1", stale).await.refused(409, "workspace_conflict")["currentVersion"], 1);
    op("t1", "w1", json!({"op": "put", "path": "a/b.md", "content": "two"})).await;
    let first = op("t1", "w1", json!({"op": "get", "path": "a/b.md", "version": 1})).await.json();
    assert_eq!(first["content"], "mine");
    let large = json!({"op": "put", "path": "big", "content": "x".repeat(1024 * 1024 + 1)});
    op("t1", "w1", large).await.refused(413, "workspace_too_large");
    for bad in [
        json!({"op": "get"}),
        json!({"op": "put", "path": "a"}),
        json!({"op": "move"}),
        json!({"op": "get", "path": ".."}),
    ] {
        op("t1", "w1", bad).await.refused(400, "validation_error");
    }
    op("", "w1", json!({"op": "list"})).await.refused(400, "validation_error");
    assert_eq!(op("t1", "w1", json!({"op": "delete", "path": "a/b.md"})).await.status, 204);
    assert_eq!(site.get("/v1/host/workspace/files").await.json(), json!({"files": []}), "the caller's own is another");
}

#[tokio::test]
async fn seams_need_a_key_and_conformance_mode() {
    let site = conformance().await;
    let live = Site::open().await;
    for path in [LOOP, OP] {
        site.send("POST", path, &[JSON], "{}").await.refused(401, "unauthenticated");
        live.send("POST", path, &[FULL], Body::from("{}")).await.refused(404, "not_found");
    }
    site.send("POST", OP, &[support::READER], "{}").await.refused(403, "forbidden");
    site.send("POST", LOOP, &[support::READER], r#"{"turns":1}"#).await.refused(403, "forbidden");
}
