//! Forking over HTTP: what a replay repeats, what a branch may change, and what a key makes sure of.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_model::{RunId, TenantId};
use baton_runtime::Host;
use baton_store::MemoryStore;
use serde_json::{Value, json};
use support::{FULL, OTHER, Site, host_options};

/// The log without what names this run or a moment; all else counts, causes (by their place) and order included.
fn comparable(log: &[Value]) -> Vec<Value> {
    const NAMES: [&str; 7] = ["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"];
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !NAMES.contains(&key.as_str()));
                if let Some(Value::String(cause)) = map.get_mut("causationId") {
                    *cause = cause.rsplit('.').next().unwrap().to_owned();
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut log = log.to_vec();
    log.iter_mut().for_each(strip);
    log
}

/// The log by `(type, nodeId, payload)`.
fn told(log: &[Value], from: u64) -> Vec<Value> {
    let tail = log.iter().filter(|event| event["sequence"].as_u64().unwrap() >= from);
    tail.map(|event| json!([event["type"], event["nodeId"], event["payload"]])).collect()
}

fn seq_after(log: &[Value], kind: &str, node: &str) -> u64 {
    let event = log.iter().find(|event| event["type"] == kind && event["nodeId"] == node).unwrap();
    event["sequence"].as_u64().unwrap() + 1
}

#[tokio::test]
async fn a_replay_from_the_start_is_the_same_log_under_another_name() {
    let site = Site::conforming().await;
    let source = site.completed("conformance-noop").await;
    let answer = site.post(&format!("/v1/runs/{source}:fork"), json!({"mode": "replay", "fromSeq": 0})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let body = answer.json();
    let fork = body["runId"].as_str().unwrap().to_owned();
    assert_ne!(fork, source);
    let expected = json!({
        "runId": fork, "sourceRunId": source, "fromSeq": 0, "mode": "replay", "status": "pending",
        "eventsUrl": format!("/v1/runs/{fork}/events"), "statusUrl": format!("/v1/runs/{fork}"),
    });
    assert_eq!(body, expected);
    site.reach(&fork, "completed").await;
    let (first, second) = (site.log(&source).await, site.log(&fork).await);
    assert_eq!(comparable(&first), comparable(&second));
    assert!(second.iter().all(|event| event["runId"] == json!(fork)), "every event is the fork's own");
    let ids = |log: &[Value]| log.iter().map(|event| event["eventId"].clone()).collect::<Vec<_>>();
    assert!(ids(&first).iter().all(|id| !ids(&second).contains(id)));
    let seen = site.get(&format!("/v1/runs/{fork}")).await.json();
    assert_eq!(seen["forkedFrom"], json!({"runId": source, "fromSeq": 0, "mode": "replay"}));
    assert!(seen.get("parentRunId").is_none());
    assert_eq!(site.log(&source).await, first, "the source is as it was");
}

#[tokio::test]
async fn two_replays_of_one_point_are_equal_wherever_it_lies() {
    let site = Site::conforming().await;
    let source = site.completed("conformance-multi-node").await;
    let log = site.log(&source).await;
    for from in 0..log.len() as u64 {
        let body = json!({"mode": "replay", "fromSeq": from});
        let first = site.forked(&source, body.clone(), "completed").await;
        let second = site.forked(&source, body, "completed").await;
        let (first, second) = (site.log(&first).await, site.log(&second).await);
        assert_eq!(told(&first, from), told(&second, from), "from {from}");
        assert_eq!(comparable(&first), comparable(&log), "from {from}");
        let numbered: Vec<_> = first.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert_eq!(numbered, (0..first.len() as u64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_fork_in_the_middle_keeps_the_numbering_in_both_modes() {
    let site = Site::conforming().await;
    let source = site.completed("conformance-multi-node").await;
    let log = site.log(&source).await;
    let from = seq_after(&log, "node.completed", "b");
    for mode in ["replay", "branch"] {
        let fork = site.forked(&source, json!({"mode": mode, "fromSeq": from}), "completed").await;
        let forked = site.log(&fork).await;
        let prefix = usize::try_from(from).unwrap();
        assert_eq!(comparable(&forked[..prefix]), comparable(&log[..prefix]), "{mode}");
        assert_eq!(forked[prefix]["sequence"], json!(from), "{mode}");
        let ended = |log: &[Value]| log.iter().filter(|event| event["type"] == "node.completed").count();
        assert_eq!((ended(&forked[..prefix]), ended(&forked)), (2, 3), "{mode}");
        let seen = site.get(&format!("/v1/runs/{fork}")).await.json();
        assert_eq!(seen["forkedFrom"]["fromSeq"], json!(from));
        assert_eq!(seen["owner"], site.get(&format!("/v1/runs/{source}")).await.json()["owner"]);
    }
}

#[tokio::test]
async fn a_replay_of_a_supervised_tree_starts_no_child() {
    let site = Site::conforming().await;
    let source = site.completed("conformance-dispatch-loop").await;
    let listed = async || site.get("/v1/runs?limit=100").await.json()["runs"].as_array().unwrap().len();
    let before = listed().await;
    let fork = site.forked(&source, json!({"mode": "replay"}), "completed").await;
    assert_eq!(listed().await, before + 1, "only the replay itself is new");
    assert_eq!(comparable(&site.log(&source).await), comparable(&site.log(&fork).await));
    let children = site.get(&format!("/v1/runs?parentRunId={fork}")).await.json();
    assert_eq!(children["runs"], json!([]));
}

#[tokio::test]
async fn an_answer_once_given_is_not_asked_for_again() {
    let site = Site::conforming().await;
    let source = site.start("conformance-approval").await;
    site.reach(&source, "waiting-approval").await;
    let path = format!("/v1/runs/{source}/interrupts/gate");
    assert_eq!(site.post(&path, json!({"resumeValue": {"action": "accept"}})).await.status, 200);
    site.reach(&source, "completed").await;
    let fork = site.forked(&source, json!({"mode": "replay"}), "completed").await;
    assert_eq!(comparable(&site.log(&source).await), comparable(&site.log(&fork).await));
    let open = site.get("/v1/interrupts").await.json();
    assert_eq!(open["interrupts"], json!([]), "nobody is asked");

    // A branch from before the answer asks, and may be told otherwise.
    let asked = seq_after(&site.log(&source).await, "node.suspended", "gate");
    let branch = site.forked(&source, json!({"mode": "branch", "fromSeq": asked}), "waiting-approval").await;
    let path = format!("/v1/runs/{branch}/interrupts/gate");
    assert_eq!(site.post(&path, json!({"resumeValue": {"action": "reject"}})).await.status, 200);
    site.reach(&branch, "failed").await;
    assert_eq!(site.get(&format!("/v1/runs/{source}")).await.json()["status"], "completed");
}

/// `greet`: sets `said` to what `name` is, and remembers it.
async fn greeter() -> Site {
    let site = Site::open().await;
    let nodes = [
        ("wait", "core.noop", json!({})),
        ("say", "core.setVariable", json!({"name": "said", "expression": "'hello ' + variables.name"})),
    ];
    site.register_chain("greet", &nodes).await;
    site
}

#[tokio::test]
async fn a_branch_takes_its_overlay_from_the_fork_point_on() {
    let site = greeter().await;
    let started = site.post("/v1/runs", json!({"workflowId": "greet", "inputs": {"name": "Ada"}})).await.json();
    let source = started["runId"].as_str().unwrap();
    site.reach(source, "completed").await;
    let said = async |run: &str| site.get(&format!("/v1/runs/{run}")).await.json()["variables"]["said"].clone();
    assert_eq!(said(source).await, "hello Ada");
    let from = seq_after(&site.log(source).await, "node.completed", "wait");
    let points = [
        (0, json!({"inputs": {"name": "Bea"}})),
        (from, json!({"inputs": {"name": "Bea"}})),
        (from, json!({"variables": {"name": "Bea"}, "configurable": {"recursionLimit": 9}, "sideEffects": "real"})),
    ];
    for (from, overlay) in points {
        let body = json!({"mode": "branch", "fromSeq": from, "runOptionsOverlay": overlay});
        let branch = site.forked(source, body, "completed").await;
        assert_eq!(said(&branch).await, "hello Bea", "{overlay}");
        let seen = site.get(&format!("/v1/runs/{branch}")).await.json();
        let kind = if overlay.get("inputs").is_some() { "inputs.name" } else { "variables.name" };
        assert!(seen["forkedFrom"]["overlaid"].as_array().unwrap().contains(&json!(kind)), "{seen}");
        let effects = overlay.get("sideEffects").cloned().unwrap_or(json!("simulated"));
        assert_eq!(seen["forkedFrom"]["sideEffects"], effects);
    }
    assert_eq!(said(source).await, "hello Ada", "the source is as it was");
}

#[tokio::test]
async fn an_overlay_is_bounded_like_what_a_new_run_is_given() {
    let site = greeter().await;
    let started = site.post("/v1/runs", json!({"workflowId": "greet", "inputs": {"name": "Ada"}})).await.json();
    let source = started["runId"].as_str().unwrap();
    site.reach(source, "completed").await;
    let path = format!("/v1/runs/{source}:fork");
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    for member in ["inputs", "variables"] {
        let body = json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": {member: {"a/b": deep}}});
        let details = site.post(&path, body).await.refused(400, "validation_error");
        assert_eq!(details["pointer"], format!("/runOptionsOverlay/{member}/a~1b"));
    }
    let overlay = json!({"configurable": {"recursionLimit": 0}});
    let body = json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": overlay});
    site.post(&path, body).await.refused(400, "validation_error");
    let overlay = json!({"configurable": {"mockProvider": {"id": "stream-text"}}});
    let body = json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": overlay});
    site.post(&path, body).await.refused(403, "mock_provider_forbidden");
}

#[tokio::test]
async fn one_key_makes_one_fork_also_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let host = Host::open(store.clone(), host_options()).await.unwrap();
    let site = Site::over(host, |_| {});
    site.register("noop", "core.noop", json!({})).await;
    let source = site.completed("noop").await;
    let path = format!("/v1/runs/{source}:fork");
    let body = json!({"mode": "replay"});
    let first = site.keyed("k", &path, body.clone()).await;
    assert_eq!((first.status.as_u16(), first.header("openwop-idempotent-replay")), (201, "false"));
    let again = site.keyed("k", &path, body.clone()).await;
    assert_eq!((again.status.as_u16(), again.header("openwop-idempotent-replay")), (201, "true"));
    assert_eq!(first.text, again.text);
    let other = json!({"mode": "replay", "fromSeq": 1});
    site.keyed("k", &path, other).await.refused(409, "idempotency_key_mismatch");

    // Equal requests at the same time share one fork.
    let many = futures_util::future::join_all((0..8).map(|_| site.keyed("at-once", &path, body.clone()))).await;
    assert!(many.iter().all(|answer| answer.status == 201 && answer.text == many[0].text));
    let runs = site.get("/v1/runs?limit=100").await.json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 3, "the source and one fork for each key");

    // The answer went to disk with the fork.
    site.host.shutdown().await;
    let host = Host::open(Arc::new(MemoryStore::from_disk(store.disk())), host_options()).await.unwrap();
    let site = Site::over(host, |_| {});
    let later = site.keyed("k", &path, body).await;
    assert_eq!((later.header("openwop-idempotent-replay"), &later.text), ("true", &first.text));
    site.reach(first.json()["runId"].as_str().unwrap(), "completed").await;
}

#[tokio::test]
async fn a_fork_belongs_to_its_sources_tenant_and_needs_both_scopes() {
    let site = Site::conforming().await;
    let source = site.completed("conformance-noop").await;
    let path = format!("/v1/runs/{source}:fork");
    let body = json!({"mode": "branch", "fromSeq": 0}).to_string();
    let foreign = site.send("POST", &path, &[OTHER], body.clone()).await;
    let unknown = site.send("POST", "/v1/runs/run_nobody:fork", &[OTHER], body.clone()).await;
    foreign.refused(404, "run_not_found");
    assert_eq!(foreign.text, unknown.text);
    let keys = "blind:acme:runs:create,idle:acme:runs:read";
    let narrow = Site::over(site.host.clone(), |options| options.keys = baton_server::Keys::parse(keys).unwrap());
    for (key, missing) in [("Bearer blind", "runs:read"), ("Bearer idle", "runs:create")] {
        let answer = narrow.send("POST", &path, &[("authorization", key)], body.clone()).await;
        assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], missing);
    }
    site.send("POST", &path, &[], body.clone()).await.refused(401, "unauthenticated");
    let answer = site.send("GET", &path, &[FULL], Body::empty()).await;
    answer.refused(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "POST");
}

#[tokio::test]
async fn what_retention_took_cannot_be_forked_and_says_so() {
    let site = Site::conforming().await;
    let source = site.completed("conformance-noop").await;
    assert_eq!(site.post(&format!("/v1/runs/{source}:prune"), json!({})).await.status, 200);
    let path = format!("/v1/runs/{source}:fork");
    for (body, from) in [(json!({"mode": "replay"}), 0), (json!({"mode": "branch", "fromSeq": 2}), 2)] {
        let details = site.post(&path, body).await.refused(422, "replay_memory_snapshot_unavailable");
        assert_eq!(details, json!({"fromSeq": from, "sourceRunId": source, "reason": "retention_expired"}));
    }
    let beyond = json!({"mode": "replay", "fromSeq": 99_999});
    site.post(&path, beyond).await.refused(422, "invalid_from_seq");
}

#[tokio::test]
async fn a_log_that_this_build_wrote_verifies() {
    let site = Site::conforming().await;
    for workflow in ["conformance-multi-node", "conformance-dispatch-loop", "conformance-subworkflow-parent"] {
        let run = site.completed(workflow).await;
        let answer = site.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let body = answer.json();
        let length = site.log(&run).await.len();
        assert_eq!((&body["runId"], &body["events"], &body["equal"]), (&json!(run), &json!(length), &json!(true)));
        let decided = usize::try_from(body["decided"].as_u64().unwrap()).unwrap();
        assert!(decided > 0 && decided < length && body.get("difference").is_none(), "{body}");
    }
    let run = site.completed("conformance-noop").await;
    let path = format!("/v1/host/baton/runs/{run}/verify");
    assert_eq!(site.send("POST", &path, &[support::READER], Body::empty()).await.status, 200, "reading is enough");
    let details = site.post(&path, json!({"deep": true})).await.refused(400, "validation_error");
    assert_eq!(details["pointer"], "/deep");
    site.send("POST", &path, &[OTHER], "{}").await.refused(404, "run_not_found");
    site.post("/v1/host/baton/runs/run_nobody/verify", json!({})).await.refused(404, "run_not_found");
    site.send("GET", &path, &[FULL], Body::empty()).await.refused(405, "method_not_allowed");
    let tenant = TenantId::new("acme");
    let before = site.host.events(&tenant, &RunId::new(run.as_str()), None, 100).await.unwrap();
    site.post(&path, json!({})).await;
    assert_eq!(site.host.events(&tenant, &RunId::new(run.as_str()), None, 100).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fork_can_be_looked_at_as_soon_as_it_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(baton_store_sqlite::SqliteStore::open(folder.path()).unwrap());
    let site = Site::over(Host::open(store, host_options()).await.unwrap(), |_| {});
    site.register("noop", "core.noop", json!({})).await;
    let source = site.completed("noop").await;
    let length = site.log(&source).await.len();
    for (mode, from) in [("replay", 0), ("replay", 1), ("replay", length), ("branch", 0), ("branch", 1)] {
        let answer = site.post(&format!("/v1/runs/{source}:fork"), json!({"mode": mode, "fromSeq": from})).await;
        let fork = answer.json()["runId"].as_str().unwrap().to_owned();
        for path in [format!("/v1/runs/{fork}"), format!("/v1/runs/{fork}/events"), format!("/v1/runs/{fork}/ancestry")]
        {
            let answer = site.get(&path).await;
            assert_eq!(answer.status, 200, "{mode} from {from}: {path}: {}", answer.text);
        }
        site.reach(&fork, "completed").await;
    }
}

/// Whether something was done again cannot be seen in the log: it is counted where it leaves the host.
#[tokio::test]
async fn what_a_replay_does_to_the_world_can_be_counted() {
    let site = Site::conforming().await;
    let count = async |run: &str| {
        let answer = site.get(&format!("/v1/host/sample/replay/effect-count?runId={run}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json()["runId"], run);
        answer.json()["effectCount"].as_u64().unwrap()
    };
    let source = site.completed("conformance-replay-effect").await;
    assert_eq!(count(&source).await, 1);
    for from in [0, 2] {
        let replay = site.forked(&source, json!({"mode": "replay", "fromSeq": from}), "completed").await;
        assert_eq!(comparable(&site.log(&replay).await), comparable(&site.log(&source).await));
        assert_eq!(count(&replay).await, 0);
    }
    let branch = |effects: &str| json!({"mode": "branch", "fromSeq": 0, "runOptionsOverlay": {"sideEffects": effects}});
    assert_eq!(count(&site.forked(&source, branch("simulated"), "completed").await).await, 0);
    assert_eq!(count(&site.forked(&source, branch("real"), "completed").await).await, 1);
    assert_eq!(count(&source).await, 1, "nothing was added to the source");
    assert_eq!(count(&site.completed("conformance-noop").await).await, 0);
    site.get("/v1/host/sample/replay/effect-count").await.refused(400, "invalid_argument");
    site.get("/v1/host/sample/replay/effect-count?runId=run_nobody").await.refused(404, "run_not_found");
    let path = format!("/v1/host/sample/replay/effect-count?runId={source}");
    site.send("GET", &path, &[OTHER], Body::empty()).await.refused(404, "run_not_found");
    Site::open().await.get(&path).await.refused(404, "not_found");
}

/// Somebody's cancellation is nothing that the workflow did. A replay goes on, does nothing to the world, and fails
/// where it needs what its source never got.
#[tokio::test]
async fn a_replay_of_a_cancelled_run_goes_on_and_fails_at_an_effect_without_a_record() {
    let site = Site::conforming().await;
    let cancelled = async |workflow: &str, status: &str| {
        let run = site.start(workflow).await;
        site.reach(&run, status).await;
        assert_eq!(site.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.status, 200);
        site.reach(&run, "cancelled").await;
        run
    };
    let source = cancelled("conformance-replay-side-effect", "running").await;
    let first = site.forked(&source, json!({"mode": "replay"}), "failed").await;
    let log = site.log(&first).await;
    let at = |node: &str, kind: &str| log.iter().filter(|e| e["nodeId"] == node && e["type"] == kind).count();
    assert_eq!((at("wait", "node.completed"), at("effect", "node.completed")), (1, 0), "{log:?}");
    let failed = log.iter().find(|event| event["type"] == "node.failed" && event["nodeId"] == "effect").unwrap();
    assert_eq!(failed["payload"]["error"]["code"], "replay_source_missing");
    assert!(!log.iter().any(|event| event["type"] == "replay.diverged"), "nothing came out otherwise");
    let count = site.get(&format!("/v1/host/sample/replay/effect-count?runId={first}")).await.json();
    assert_eq!(count["effectCount"], 0);
    // It is the same every time, and proves itself; so does the source, which ended where it ended.
    let second = site.forked(&source, json!({"mode": "replay"}), "failed").await;
    assert_eq!(comparable(&log), comparable(&site.log(&second).await));
    for run in [&source, &first] {
        let proof = site.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({})).await.json();
        assert_eq!(proof["equal"], true, "{proof}");
    }
    assert_eq!(site.log(&source).await.last().unwrap()["type"], "run.cancelled");

    // Where nothing is missing it comes to the end that the source did not.
    let waited = cancelled("conformance-cancellable", "running").await;
    site.forked(&waited, json!({"mode": "replay"}), "completed").await;
    // Who waited for a human, or for a child, never got what it waited for: the replay ends as its source did.
    for workflow in ["conformance-approval", "conformance-interrupt-parent-child-cancel"] {
        let asked = cancelled(workflow, "waiting-approval").await;
        let replay = site.forked(&asked, json!({"mode": "replay"}), "cancelled").await;
        assert_eq!(comparable(&site.log(&asked).await), comparable(&site.log(&replay).await), "{workflow}");
    }
}
