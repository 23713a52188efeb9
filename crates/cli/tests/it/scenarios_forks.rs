//! Forks, replays and comparisons as the protocol's own checks drive them.

use crate::support;

use serde_json::{Value, json};
use support::test_server::test_server;
use support::web::{Web, of_type, place};

fn fork_raw(web: &Web, run: &str, body: Value) -> support::http::Answer {
    web.post(&format!("/v1/runs/{run}:fork"), body)
}

/// Forks and checks what every 201 promises.
#[track_caller]
fn fork(web: &Web, run: &str, mode: &str, from: u64) -> String {
    let made = fork_raw(web, run, json!({"mode": mode, "fromSeq": from})).expect(201);
    let new = made["runId"].as_str().unwrap().to_owned();
    assert_ne!(new, run);
    let mut expected = json!({
        "runId": new, "sourceRunId": run, "fromSeq": from, "mode": mode, "status": "pending",
        "eventsUrl": format!("/v1/runs/{new}/events"), "statusUrl": format!("/v1/runs/{new}")
    });
    if mode == "branch" && made["fromSeq"] != from {
        // Inside a step it begins before that, and says so.
        assert!(made["fromSeq"].as_u64().unwrap() < from, "{made}");
        (expected["fromSeq"], expected["requestedFromSeq"]) = (made["fromSeq"].clone(), from.into());
    }
    assert_eq!(made, expected);
    new
}

/// The log with names and clock readings taken out, at any depth.
fn stripped(events: &[Value], keys: &[&str]) -> Value {
    fn strip(value: &mut Value, keys: &[&str]) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !keys.contains(&key.as_str()));
                map.values_mut().for_each(|value| strip(value, keys));
            }
            Value::Array(items) => items.iter_mut().for_each(|value| strip(value, keys)),
            _ => {}
        }
    }
    let mut all = Value::from(events.to_vec());
    strip(&mut all, keys);
    all
}

fn printed(events: &[Value]) -> Vec<(Value, Value, Value)> {
    events.iter().map(|event| (event["type"].clone(), event["nodeId"].clone(), event["payload"].clone())).collect()
}

#[test]
fn replay_fork() {
    let test_server = test_server();
    let web = test_server.web();
    let source = web.start("conformance-noop");
    let (_, events) = web.ended(&source, "completed");
    for mode in ["replay", "branch"] {
        web.ended(&fork(&web, &source, mode, 0), "completed");
    }
    // A replay may leave out where it begins; a branch may not.
    let whole = fork_raw(&web, &source, json!({"mode": "replay"})).expect(201);
    assert_eq!(whole["fromSeq"], 0);
    web.ended(whole["runId"].as_str().unwrap(), "completed");
    for body in [
        json!({"mode": "branch"}),
        json!({"mode": "replay", "fromSeq": -1}),
        json!({"mode": "replay", "fromSeq": "3"}),
        json!({"mode": "again", "fromSeq": 0}),
        json!({"mode": "replay", "fromSeq": 0, "runOptionsOverlay": {"inputs": {"a": 1}}}),
    ] {
        fork_raw(&web, &source, body).refused(400, "validation_error");
    }
    let beyond = fork_raw(&web, &source, json!({"mode": "replay", "fromSeq": 99_999})).refused(422, "invalid_from_seq");
    assert_eq!(beyond["details"]["fromSeq"], 99_999);
    let replay = json!({"mode": "replay", "fromSeq": 0});
    fork_raw(&web, "run_unknown", replay.clone()).refused(404, "run_not_found");
    fork_raw(&test_server.keyed("beta"), &source, replay.clone()).refused(404, "run_not_found");
    fork_raw(&test_server.keyed("reader"), &source, replay).refused(403, "forbidden");
    assert_eq!(web.events(&source), events, "nobody touches the source");
}

#[test]
fn replay_fork_arbitrary() {
    let test_server = test_server();
    let web = test_server.web();
    let source = web.start("conformance-multi-node");
    let (_, events) = web.ended(&source, "completed");
    let after_b = events.iter().find(|event| event["type"] == "node.completed" && event["nodeId"] == "b").unwrap();
    let from = after_b["sequence"].as_u64().unwrap() + 1;
    let tails: Vec<Vec<Value>> = (0..2)
        .map(|_| web.ended(&fork(&web, &source, "replay", from), "completed").1.split_off(from as usize))
        .collect();
    assert!(!tails[0].is_empty());
    assert_eq!(printed(&tails[0]), printed(&tails[1]));
    let (snapshot, branched) = web.ended(&fork(&web, &source, "branch", from), "completed");
    assert_eq!(snapshot["forkedFrom"]["fromSeq"], from, "between two steps nothing moves");
    assert_eq!(printed(&branched[..from as usize]), printed(&events[..from as usize]), "what came before is the same");
    assert_eq!(snapshot["forkedFrom"]["runId"], source);
    // At every other place too, the end of the log included.
    for from in 0..=events.len() as u64 {
        let (_, replayed) = web.ended(&fork(&web, &source, "replay", from), "completed");
        assert_eq!(printed(&replayed), printed(&events), "at {from}");
        web.ended(&fork(&web, &source, "branch", from), "completed");
    }
}

#[test]
fn replay_determinism() {
    const DROPPED: [&str; 7] = ["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"];
    let test_server = test_server();
    let web = test_server.web();
    for workflow in ["conformance-noop", "conformance-dispatch-loop", "conformance-phase4-nondet-tool"] {
        let source = web.start(workflow);
        let (_, events) = web.ended(&source, "completed");
        let logs: Vec<Vec<Value>> =
            (0..2).map(|_| web.ended(&fork(&web, &source, "replay", 0), "completed").1).collect();
        assert_eq!(printed(&logs[0]), printed(&logs[1]), "{workflow}");
        assert_eq!(printed(&logs[0]), printed(&events), "{workflow}");
        if workflow != "conformance-dispatch-loop" {
            // The causes between the events of a loop name events of their own run.
            assert_eq!(stripped(&logs[0], &DROPPED), stripped(&events, &DROPPED), "{workflow}");
        }
    }
}

#[test]
fn run_diff() {
    let test_server = test_server();
    let web = test_server.web();
    let source = web.start("conformance-dispatch-loop");
    web.ended(&source, "completed");
    let replay = fork(&web, &source, "replay", 0);
    web.ended(&replay, "completed");
    let diff = |a: &str, b: &str| web.get(&format!("/v1/runs/{a}:diff?against={b}"));
    let same = json!({"a": source, "b": replay, "divergedAtSeq": null, "eventDiffs": [], "stateDiff": {}});
    assert_eq!(diff(&source, &replay).expect(200), same);
    assert_eq!(diff(&source, &source).expect(200)["eventDiffs"], json!([]));

    let other = web.start("conformance-noop");
    let (_, others) = web.ended(&other, "completed");
    let found = diff(&source, &other).expect(200);
    let entries = found["eventDiffs"].as_array().unwrap();
    assert_eq!(found["divergedAtSeq"], entries[0]["seq"]);
    let longer = web.events(&source).len();
    assert_eq!(entries.last().unwrap()["seq"], longer - 1);
    for entry in entries {
        let beyond = entry["seq"].as_u64().unwrap() >= others.len() as u64;
        assert_eq!(entry["op"], if beyond { "removed" } else { "changed" }, "{entry}");
        assert_eq!((entry["aEvent"].is_object(), entry["bEvent"].is_object()), (true, !beyond), "{entry}");
    }
    let turned = diff(&other, &source).expect(200);
    assert_eq!(turned["eventDiffs"].as_array().unwrap().last().unwrap()["op"], "added");

    // One that has not ended: only what both have.
    let waiting = web.start("conformance-approval");
    web.until_status(&waiting, "waiting-approval");
    assert_eq!(diff(&source, &waiting).expect(200)["truncated"], true);
    web.cancel(&waiting);

    web.get(&format!("/v1/runs/{source}:diff")).refused(400, "validation_error");
    diff(&source, "run_unknown").refused(404, "run_not_found");
    test_server.keyed("beta").get(&format!("/v1/runs/{source}:diff?against={replay}")).refused(404, "run_not_found");
}

#[test]
fn multi_agent_memory_lifecycle_of_an_expired_run() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-agent-memory-roundtrip");
    web.ended(&run, "completed");
    web.post(&format!("/v1/runs/{run}:prune"), json!({})).expect(200);
    for (mode, from) in [("replay", 0), ("branch", 0), ("replay", 1), ("branch", 1)] {
        let refused = fork_raw(&web, &run, json!({"mode": mode, "fromSeq": from}));
        let body = refused.refused(422, "replay_memory_snapshot_unavailable");
        assert_eq!(body["details"], json!({"fromSeq": from, "sourceRunId": run, "reason": "retention_expired"}));
    }
}

#[test]
fn memory_attribution_replay_stable() {
    let test_server = test_server();
    let web = test_server.web();
    let source = web.start("conformance-agent-memory-roundtrip");
    let (_, events) = web.ended(&source, "completed");
    let written = of_type(&events, "memory.written");
    assert_eq!(written.len(), 1);
    for from in [0, place(&events, "memory.written") as u64] {
        let (_, replayed) = web.ended(&fork(&web, &source, "replay", from), "completed");
        let again = of_type(&replayed, "memory.written");
        assert_eq!(again.len(), 1);
        assert_eq!((&again[0]["payload"], &again[0]["sequence"]), (&written[0]["payload"], &written[0]["sequence"]));
    }
    // It was told again, not written again.
    let memory = web.get(&format!("/v1/host/baton/memory/{source}")).expect(200);
    assert_eq!(memory["entries"].as_array().unwrap().len(), 1, "{memory}");
}
