//! Looking back at a run, and what is said once that is no longer possible.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::{FULL, OTHER, READER, Site};

/// A site with `story`: a run that sets a variable, remembers something, and writes a file.
async fn site() -> Site {
    let site = Site::open().await;
    let nodes = [
        ("set", "core.setVariable", json!({"name": "mood", "value": "calm"})),
        ("keep", "vendor.baton.memory.put", json!({"content": "the tide turns at six", "tags": ["tide"]})),
        ("write", "vendor.baton.workspace.put", json!({"path": "notes/tide.md", "content": "six"})),
        ("end", "core.noop", json!({})),
    ];
    site.register_chain("story", &nodes).await;
    site
}

fn state(run: &str, query: &str) -> String {
    format!("/v1/host/baton/runs/{run}/state{query}")
}

/// The sequence of the first event of a type at a node.
fn seq_of(log: &[Value], kind: &str, node: &str) -> u64 {
    let event = log.iter().find(|event| event["type"] == kind && event["nodeId"] == node);
    event.unwrap_or_else(|| panic!("no {kind} at {node}"))["sequence"].as_u64().unwrap()
}

#[tokio::test]
async fn every_record_shows_the_run_with_its_memory_and_files_as_they_were() {
    let site = site().await;
    let run = site.completed("story").await;
    let log = site.log(&run).await;
    site.put("/v1/host/workspace/files/notes/tide.md", json!({"content": "seven"})).await;
    site.post(&format!("/v1/host/baton/memory/{run}"), json!({"content": "later"})).await;

    let first = site.get(&state(&run, "?at=0")).await.json();
    assert_eq!((&first["runId"], &first["seq"], &first["status"]), (&json!(run), &json!(0), &json!("running")));
    assert_eq!((&first["memory"], &first["workspace"]), (&json!([]), &json!([])));
    assert_eq!((&first["memoryVersion"], &first["workspaceVersion"]), (&json!(0), &json!(0)));
    assert_eq!((&first["variables"], &first["childRuns"]), (&json!({}), &json!([])));
    assert!(first.get("omitted").is_none() && first["at"].is_string() && first["channels"].is_object());

    let kept = seq_of(&log, "node.completed", "keep");
    let between = site.get(&state(&run, &format!("?at={kept}"))).await.json();
    assert_eq!(between["at"], log[kept as usize]["timestamp"]);
    assert_eq!(between["variables"], json!({"mood": "calm"}));
    assert_eq!(
        (&between["memory"][0]["content"], &between["memory"][0]["tags"]),
        (&json!("the tide turns at six"), &json!(["tide"]))
    );
    assert_eq!((&between["workspace"], &between["memoryScope"]), (&json!([]), &json!(run)));
    assert_eq!(between["nodeStates"]["keep"]["status"], "completed");
    assert_ne!(between["nodeStates"]["write"]["status"], "completed");

    let last = site.get(&state(&run, "")).await.json();
    assert_eq!((&last["seq"], &last["status"]), (&json!(log.len() - 1), &json!("completed")));
    assert_eq!((&last["workspace"][0]["path"], &last["workspace"][0]["version"]), (&json!("notes/tide.md"), &json!(1)));
    assert!(last["workspace"][0].get("content").is_none());
    assert_eq!(last["memory"].as_array().unwrap().len(), 1, "what came after the end was not there");
    assert_eq!((&last["memoryVersion"], &last["workspaceVersion"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn what_was_around_a_run_can_be_asked_for_alone() {
    let site = site().await;
    let run = site.completed("story").await;
    let length = site.log(&run).await.len();
    let around = |query: &str| format!("/v1/host/baton/runs/{run}/surroundings{query}");
    for seq in 0..length {
        let mut whole = site.get(&state(&run, &format!("?at={seq}"))).await.json();
        let alone = site.get(&around(&format!("?at={seq}"))).await.json();
        let shared = ["runId", "seq", "memoryScope", "memoryVersion", "workspaceVersion", "memory", "workspace"];
        whole.as_object_mut().unwrap().retain(|key, _| shared.contains(&key.as_str()));
        assert_eq!(alone, whole, "{seq}");
    }
    site.get(&around("")).await.refused(400, "validation_error");
    site.get(&around(&format!("?at={length}"))).await.refused(422, "invalid_from_seq");
}

#[tokio::test]
async fn a_file_is_read_as_the_run_had_it() {
    let site = site().await;
    let run = site.completed("story").await;
    let length = site.log(&run).await.len();
    site.put("/v1/host/workspace/files/notes/tide.md", json!({"content": "seven"})).await;
    let file = |query: &str| format!("/v1/host/baton/runs/{run}/files/notes/tide.md{query}");
    site.get(&file("?at=0")).await.refused(404, "not_found");
    for query in [String::new(), format!("?at={}", length - 1)] {
        let then = site.get(&file(&query)).await.json();
        assert_eq!((&then["content"], &then["version"]), (&json!("six"), &json!(1)), "{query}");
    }
    site.get(&file(&format!("?at={length}"))).await.refused(422, "invalid_from_seq");
    site.get(&format!("/v1/host/baton/runs/{run}/files/a/../b")).await.refused(400, "validation_error");
    site.get("/v1/host/baton/runs/run_unknown/files/notes/tide.md").await.refused(404, "run_not_found");
}

#[tokio::test]
async fn a_waiting_run_shows_its_question() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "Go?", "actions": ["accept", "reject"]})).await;
    let run = site.start("gate").await;
    site.reach(&run, "waiting-approval").await;
    let now = site.get(&state(&run, "")).await.json();
    assert_eq!((&now["status"], &now["interrupt"]["nodeId"]), (&json!("waiting-approval"), &json!("n")));
    assert!(now["interrupt"].get("interruptToken").is_none(), "looking back hands out no link");
    assert!(site.get(&state(&run, "?at=0")).await.json().get("interrupt").is_none());
}

#[tokio::test]
async fn parts_that_a_key_may_not_read_are_left_out_and_named() {
    let host = site().await;
    let run = host.completed("story").await;
    let keys =
        "none:acme:runs:read,mem:acme:runs:read+memory:read,files:acme:runs:read+workspace:read,blind:acme:memory:read";
    let site = Site::over(host.host.clone(), |options| options.keys = baton_server::Keys::parse(keys).unwrap());
    let seen = async |key: &str| {
        let header = format!("Bearer {key}");
        site.send("GET", &state(&run, ""), &[("authorization", &header)], Body::empty()).await
    };
    let expected =
        [("none", json!(["memory", "workspace"])), ("mem", json!(["workspace"])), ("files", json!(["memory"]))];
    for (key, omitted) in expected {
        let body = seen(key).await.json();
        assert_eq!(body["omitted"], omitted, "{key}");
        for part in ["memory", "workspace"] {
            let hidden = omitted.as_array().unwrap().contains(&json!(part));
            assert_eq!(body.get(part).is_none(), hidden, "{key} {part}");
        }
        assert_eq!(body["variables"], json!({"mood": "calm"}), "{key}");
    }
    assert_eq!(seen("blind").await.refused(403, "forbidden")["scopeRequired"], "runs:read");
}

#[tokio::test]
async fn there_is_no_looking_beyond_the_log_or_at_somebody_else() {
    let site = site().await;
    let run = site.completed("story").await;
    let length = site.log(&run).await.len();
    let details = site.get(&state(&run, &format!("?at={length}"))).await.refused(422, "invalid_from_seq");
    assert_eq!((&details["fromSeq"], &details["sourceRunId"]), (&json!(length), &json!(run)));
    for bad in ["?at=-1", "?at=x", "?at=", "?at=1.5", "?at=1&at=2", "?seq=1"] {
        site.get(&state(&run, bad)).await.refused(400, "validation_error");
    }
    let foreign = site.send("GET", &state(&run, "?at=0"), &[OTHER], Body::empty()).await;
    let unknown = site.send("GET", &state("run_nobody", "?at=0"), &[OTHER], Body::empty()).await;
    foreign.refused(404, "run_not_found");
    assert_eq!(foreign.text, unknown.text);
}

#[tokio::test]
async fn a_fork_is_checked_in_the_protocols_order() {
    let site = site().await;
    let run = site.completed("story").await;
    let length = site.log(&run).await.len();
    let path = format!("/v1/runs/{run}:fork");
    let bad = [
        (json!({}), ""),
        (json!({"mode": "rewind"}), "/mode"),
        (json!({"mode": "replay", "fromSeq": -1}), "/fromSeq"),
        (json!({"mode": "replay", "fromSeq": 1.5}), "/fromSeq"),
        (json!({"mode": "replay", "fromSeq": "0"}), "/fromSeq"),
        (json!({"mode": "branch"}), "/fromSeq"),
        (json!({"mode": "branch", "fromSeq": null}), "/fromSeq"),
        (json!({"mode": "replay", "runOptionsOverlay": {"variables": {"x": 1}}}), "/runOptionsOverlay"),
        (json!({"mode": "replay", "runOptionsOverlay": {"sideEffects": "real"}}), "/runOptionsOverlay"),
        (json!({"mode": "branch", "fromSeq": 0, "runOptionsOverlay": {"tags": ["x"]}}), "/runOptionsOverlay/tags"),
        (json!({"mode": "branch", "fromSeq": 0, "runOptionsOverlay": {"inputs": 1}}), "/runOptionsOverlay/inputs"),
        (
            json!({"mode": "branch", "fromSeq": 0, "runOptionsOverlay": {"sideEffects": "some"}}),
            "/runOptionsOverlay/sideEffects",
        ),
        (json!({"mode": "branch", "fromSeq": 0, "runOptionsOverlay": 1}), "/runOptionsOverlay"),
        (json!({"mode": "replay", "fromseq": 1}), "/fromseq"),
    ];
    for (body, pointer) in bad {
        let details = site.post(&path, body.clone()).await.refused(400, "validation_error");
        assert_eq!(details["pointer"], pointer, "{body}");
    }
    site.post("/v1/runs/run_nobody:fork", json!({"mode": "replay"})).await.refused(404, "run_not_found");
    let beyond = json!({"mode": "replay", "fromSeq": length + 1});
    let details = site.post(&path, beyond.clone()).await.refused(422, "invalid_from_seq");
    assert_eq!(details["fromSeq"], json!(length + 1));
    let fine = [
        json!({"mode": "replay"}),
        json!({"mode": "replay", "fromSeq": 0, "runOptionsOverlay": {}}),
        json!({"mode": "replay", "fromSeq": length}),
        json!({"mode": "branch", "fromSeq": 3, "runOptionsOverlay": {"variables": {"x": 1}, "sideEffects": "real"}}),
    ];
    for body in fine {
        assert_eq!(site.post(&path, body).await.status, 201);
    }
    let body = json!({"mode": "replay"}).to_string();
    site.send("POST", &path, &[OTHER], body.clone()).await.refused(404, "run_not_found");
    let details = site.send("POST", &path, &[READER], body).await.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
}

#[tokio::test]
async fn pruning_takes_the_past_first_and_the_log_when_asked() {
    let site = site().await;
    let run = site.completed("story").await;
    let prune = format!("/v1/runs/{run}:prune");
    let fork = async |seq: u64| {
        let body = json!({"mode": "replay", "fromSeq": seq});
        site.post(&format!("/v1/runs/{run}:fork"), body).await
    };
    let unavailable = async |reason: &str| {
        let details = fork(2).await.refused(422, "replay_memory_snapshot_unavailable");
        assert_eq!(details, json!({"fromSeq": 2, "sourceRunId": run, "reason": reason}));
        fork(99_999).await.refused(422, "invalid_from_seq");
        let details = site.get(&state(&run, "?at=2")).await.refused(422, "replay_memory_snapshot_unavailable");
        assert_eq!(details["reason"], reason);
    };
    let pruned = site.post(&prune, json!({})).await;
    assert_eq!((pruned.status.as_u16(), pruned.json()), (200, json!({"runId": run, "prunedRuns": 1, "log": false})));
    unavailable("retention_expired").await;
    assert!(!site.log(&run).await.is_empty(), "the events are still there");
    assert!(site.get(&format!("/v1/runs/{run}")).await.json()["retention"]["prunedAt"].is_string());
    let again = site.send("POST", &prune, &[FULL], Body::empty()).await;
    assert_eq!(again.json()["prunedRuns"], 0, "nothing was left to take");

    assert_eq!(
        site.post(&prune, json!({"log": true})).await.json(),
        json!({"runId": run, "prunedRuns": 1, "log": true})
    );
    unavailable("event_log_unavailable").await;
    let details = site.get(&format!("/v1/runs/{run}/events")).await.refused(410, "run_pruned");
    assert!(details["prunedAt"].is_string());
    site.get(&format!("/v1/runs/{run}/events/poll?timeout=1")).await.refused(410, "run_pruned");
    site.get(&format!("/v1/runs/{run}")).await.refused(410, "run_pruned");
    let listed = site.get("/v1/runs").await.json();
    assert_eq!(listed["runs"][0]["runId"], json!(run), "it stays in the list");
}

#[tokio::test]
async fn only_the_top_of_an_ended_tree_is_pruned() {
    let site = site().await;
    site.register("slow", "core.delay", json!({"ms": 60_000})).await;
    site.register("parent", "core.subWorkflow", json!({"workflowId": "story"})).await;
    let slow = site.start("slow").await;
    let details = site.post(&format!("/v1/runs/{slow}:prune"), json!({})).await.refused(409, "run_conflict");
    assert_eq!(details["runId"], json!(slow));
    let parent = site.completed("parent").await;
    let children = site.get(&format!("/v1/runs?parentRunId={parent}")).await.json();
    let child = children["runs"][0]["runId"].as_str().unwrap().to_owned();
    let details = site.post(&format!("/v1/runs/{child}:prune"), json!({})).await.refused(409, "run_conflict");
    assert_eq!(details["rootRunId"], json!(parent));
    assert_eq!(site.get(&state(&child, "?at=1")).await.status, 200);
    assert_eq!(site.post(&format!("/v1/runs/{parent}:prune"), json!({})).await.json()["prunedRuns"], 2);
    site.get(&state(&child, "?at=1")).await.refused(422, "replay_memory_snapshot_unavailable");

    let path = format!("/v1/runs/{parent}:prune");
    site.post(&path, json!({"log": 1})).await.refused(400, "validation_error");
    let details = site.post(&path, json!({"logs": true})).await.refused(400, "validation_error");
    assert_eq!(details["pointer"], "/logs");
    site.send("POST", &path, &[OTHER], "{}").await.refused(404, "run_not_found");
    site.post("/v1/runs/run_nobody:prune", json!({})).await.refused(404, "run_not_found");
    let details = site.send("POST", &path, &[READER], "{}").await.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:prune");
}

#[tokio::test]
async fn memory_and_file_events_are_streamed_as_updates() {
    let site = Site::open().await;
    let nodes = [
        ("keep", "vendor.baton.memory.put", json!({"content": "x"})),
        ("drop", "vendor.baton.memory.delete", json!({"idExpression": "nodes.keep.entry.id"})),
        ("write", "vendor.baton.workspace.put", json!({"path": "a", "content": "x"})),
    ];
    site.register_chain("all", &nodes).await;
    let run = site.completed("all").await;
    for mode in ["updates", "debug"] {
        let frames = site.stream(&format!("/v1/runs/{run}/events?streamMode={mode}"), &[]).await.all().await;
        for kind in ["memory.written", "baton.memory.deleted", "workspace.updated"] {
            assert_eq!(frames.iter().filter(|frame| frame.event == kind).count(), 1, "{mode} {kind}");
        }
    }
    let frames = site.stream(&format!("/v1/runs/{run}/events?streamMode=messages"), &[]).await.all().await;
    assert!(frames.is_empty());
}
