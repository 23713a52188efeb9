//! The seams around the loop and the workspace: real runs, real files, and nothing outside conformance mode.

use crate::support;
use baton_conformance::Conformance;

use axum::body::Body;
use baton_model::ContextBounds;
use baton_model::event::EscalationInterrupt;
use serde_json::{Value, json};
use support::{FULL, JSON, Site};

const LOOP: &str = "/v1/host/sample/agentloop/run";
const WINDOW: &str = "/v1/host/sample/agent/transcript-window";
const OP: &str = "/v1/host/sample/workspace/op";

async fn conformance() -> Site {
    Site::configured(|options| options.test_hooks = Conformance::hooks()).await
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
            options.test_hooks = Conformance::hooks();
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

/// What a turn was told of those before it: bounded, whole turns, in order, counted as advertised; and the same in a
/// replay, byte for byte.
#[tokio::test]
async fn a_turns_window_is_read_off_its_log() {
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        options.context = ContextBounds { transcript_chars: 2000, keep_last_turns: 5 };
    })
    .await;
    const TURNS: u64 = 40;
    let run = looped(&site, json!({"turns": TURNS})).await["runId"].as_str().unwrap().to_owned();
    let window = async |run: &str, turn: u64| {
        let answer = site.get(&format!("{WINDOW}?runId={run}&iteration={turn}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    };
    let log = site.log(&run).await;
    let mut shortened = 0;
    for turn in 1..=TURNS {
        let seen = window(&run, turn).await;
        let entries = seen["entries"].as_array().unwrap();
        let chars: usize = entries.iter().map(|entry| entry["rendered"].as_str().unwrap().chars().count()).sum();
        assert_eq!((&seen["tokenCounter"], &seen["tokenCount"]), (&json!("chars"), &json!(chars)));
        assert!(chars <= 2000 && seen["summarizedRanges"] == json!([]), "{seen}");
        let ids: Vec<&Value> = entries.iter().map(|entry| &entry["eventId"]).collect();
        assert_eq!(ids, seen["eventIds"].as_array().unwrap().iter().collect::<Vec<_>>());
        let decided = log
            .iter()
            .position(|event| event["type"] == "runOrchestrator.decided" && event["payload"]["iteration"] == turn);
        let place = |id: &Value| log.iter().position(|event| event["eventId"] == *id).expect("a real event");
        let places: Vec<usize> = ids.iter().map(|id| place(id)).collect();
        assert!(places.is_sorted() && places.iter().all(|place| *place < decided.unwrap()));
        assert_eq!(places.is_empty(), turn == 1);
        shortened += usize::from(places.first().is_some_and(|oldest| *oldest > 2));
    }
    assert!(shortened > 10, "the bound was felt: {shortened}");
    let replay = site.forked(&run, json!({"mode": "replay", "fromSeq": 0}), "completed").await;
    let middle = log.len() / 2;
    let later = site.forked(&run, json!({"mode": "replay", "fromSeq": middle}), "completed").await;
    for turn in [1, 2, 20, TURNS] {
        let texts = |seen: Value| -> Vec<String> {
            seen["entries"].as_array().unwrap().iter().map(|entry| entry["rendered"].to_string()).collect()
        };
        let source = texts(window(&run, turn).await);
        assert_eq!(texts(window(&replay, turn).await), source);
        assert_eq!(texts(window(&later, turn).await), source);
    }
    // Past the last turn, no such run, somebody else's run, nonsense.
    let asked = |query: &str| format!("{WINDOW}?{query}");
    site.get(&asked(&format!("runId={run}&iteration={}", TURNS + 1))).await.refused(422, "validation_error");
    site.get(&asked("runId=run_nowhere&iteration=1")).await.refused(404, "run_not_found");
    let theirs = site.send("GET", &asked(&format!("runId={run}&iteration=1")), &[support::OTHER], "").await;
    theirs.refused(404, "run_not_found");
    for bad in [format!("runId={run}"), format!("runId={run}&iteration=0"), "iteration=1".to_owned()] {
        site.get(&asked(&bad)).await.refused(400, "validation_error");
    }
    Site::open().await.get(&asked("runId=x&iteration=1")).await.refused(404, "not_found");
}

/// Real workers, real errors: a rule learns what a worker failed of and does something else about it.
#[tokio::test]
async fn a_rule_learns_why_its_worker_failed() {
    let site = conformance().await;
    site.register("broken-disk", "core.fail", json!({"code": "disk_full", "message": "No room left."})).await;
    site.register("make-room", "core.noop", json!({})).await;
    let next = |worker: &str| json!({"kind": "next-worker", "nextWorkerIds": [worker]});
    let full = "children.exists(c, has(c.error) && c.error.code == 'disk_full') && size(children) == 1";
    let told = "transcript.exists(t, t.type == 'node.completed' && t.text.contains('No room left.')) && iteration == 3";
    let rules = json!([
        {"when": "iteration == 1", "decide": next("broken-disk")},
        {"when": full, "decide": next("make-room")},
        {"when": told, "decide": {"kind": "terminate", "reason": "learnt"}},
    ]);
    let lead = json!({"rules": rules, "otherwise": {"kind": "terminate", "reason": "none-the-wiser"}});
    let nodes = [("lead", "core.orchestrator.supervisor", lead), ("hand-over", "core.dispatch", json!({}))];
    site.register_chain("learns", &nodes).await;
    let run = site.start("learns").await;
    site.reach(&run, "completed").await;
    let log = site.log(&run).await;
    let reason = log.iter().find(|event| event["type"] == "run.completed").unwrap()["payload"]["reason"].clone();
    assert_eq!(reason, "learnt");
    let seen = site.get(&format!("{WINDOW}?runId={run}&iteration=2")).await.json();
    let text = seen["entries"][1]["rendered"].as_str().unwrap();
    assert!(text.starts_with("Turn 1 came to: ") && text.contains("disk_full"), "{text}");
}

/// A bound on what models are told is claimed where models are told something, and nowhere else.
#[tokio::test]
async fn the_bound_on_the_transcript_is_advertised_where_a_model_reads_it() {
    let claimed = async |site: &Site| {
        let document = site.get("/.well-known/openwop").await.json();
        assert!(document["multiAgent"]["executionModel"].get("transcriptWindow").is_none());
        document["multiAgent"]["executionModel"].get("contextBudget").cloned()
    };
    assert_eq!(claimed(&conformance().await).await, None, "a script reads nothing");
    let site = Site::configured(|options| {
        let _ = support::agents::staffed(options, []);
        options.context.transcript_chars = 5000;
    })
    .await;
    let budget = json!({"transcriptTokenBudget": 5000, "tokenCounter": "chars", "summarization": {"supported": false}});
    assert_eq!(claimed(&site).await, Some(budget));
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
