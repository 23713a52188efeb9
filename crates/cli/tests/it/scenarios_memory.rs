//! Memory as a client sees it: the protocol's own checks, who sees which write and when, and going back.

use crate::support;

use serde_json::{Value, json};
use support::audit::protocol_folder;
use support::flow::{chain, hand_to, node, team};
use support::test_server::test_server;
use support::web::{Web, is_terminal, of_type};

const DECIDED: &str = "runOrchestrator.decided";

/// The closed form of an entry.
#[track_caller]
fn check_entry(entry: &Value) {
    let members = entry.as_object().unwrap_or_else(|| panic!("{entry}"));
    let known = ["id", "content", "tags", "createdAt", "expiresAt"];
    assert!(members.keys().all(|key| known.contains(&key.as_str())), "{entry}");
    assert!(entry["id"].is_string() && entry["content"].is_string() && entry["createdAt"].is_string(), "{entry}");
    assert!(entry["tags"].as_array().unwrap().iter().all(Value::is_string), "{entry}");
}

fn contents(entries: &Value) -> Vec<String> {
    let list = entries.as_array().unwrap_or_else(|| panic!("{entries}"));
    list.iter().map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
}

fn scope(web: &Web, scope: &str) -> Value {
    web.get(&format!("/v1/host/baton/memory/{scope}")).expect(200)["entries"].clone()
}

fn register(web: &Web, definition: Value) {
    assert_eq!(web.post("/v1/workflows", definition).status, 201);
}

fn done() -> Value {
    json!({"kind": "terminate", "reason": "done"})
}

fn remember(id: &str, content: &str) -> Value {
    node(id, "vendor.baton.memory.put", json!({"content": content}))
}

fn recall(id: &str, into: &str) -> Value {
    node(id, "vendor.baton.memory.list", json!({"into": into}))
}

fn check_fixtures(web: &Web, fixtures: &[&str; 4]) {
    let [roundtrip, ttl, cross_tenant, redaction] = fixtures;
    let (snapshot, events) = web.ended(&web.start(roundtrip), "completed");
    check_entry(&snapshot["variables"]["memoryReadback"]);
    let written = of_type(&events, "memory.written");
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["payload"]["memoryId"], snapshot["variables"]["memoryReadback"]["id"]);
    assert!(written[0]["payload"].get("content").is_none());

    let (snapshot, _) = web.ended(&web.start(ttl), "completed");
    let list = snapshot["variables"]["memoryList"].as_array().unwrap();
    list.iter().for_each(check_entry);
    let listed = |name: &str| list.iter().any(|entry| entry["id"] == snapshot["variables"][name]);
    assert!(listed("freshId") && !listed("expiredId"), "{snapshot}");

    let (snapshot, _) = web.ended(&web.start(cross_tenant), "completed");
    let variables = &snapshot["variables"];
    assert_eq!(variables["crossTenantProbe"], json!([]));
    let owner = variables["ownerProbe"].as_array().unwrap();
    assert!(owner.iter().any(|entry| entry["id"] == variables["ownerEntryId"]), "{variables}");

    let (snapshot, events) = web.ended(&web.start(redaction), "completed");
    let content = snapshot["variables"]["memoryReadback"]["content"].as_str().unwrap();
    assert!(content.contains("[REDACTED:conformance-test-secret]"), "{content}");
    assert!(!json!([snapshot, events]).to_string().contains("conformance-secret-value"), "{events:?}");
}

const FIXTURES: [&str; 4] = [
    "conformance-agent-memory-roundtrip",
    "conformance-agent-memory-ttl",
    "conformance-agent-memory-cross-tenant",
    "conformance-agent-memory-redaction",
];

#[test]
fn the_memory_checks_of_the_suite_pass() {
    let test_server = test_server();
    let web = test_server.web();
    let document = web.get("/.well-known/openwop").expect(200);
    assert_eq!(document["memory"]["supported"], true);
    assert_eq!(document["memory"]["attribution"]["emitsWriteEvents"], true);
    assert!(document["agents"]["memoryBackends"].as_array().unwrap().contains(&json!("long-term")));
    let concurrency = &document["multiAgent"]["executionModel"]["crossChildMemoryConcurrency"];
    assert!(*concurrency == "strict" || *concurrency == "advisory", "{concurrency}");
    let listed = document["fixtures"].as_array().unwrap();
    assert!(FIXTURES.iter().all(|id| listed.contains(&json!(id))), "{listed:?}");
    check_fixtures(&web, &FIXTURES);
}

#[test]
fn the_protocols_own_files_run_word_for_word() {
    let Some(folder) = protocol_folder("fixtures") else { return };
    let test_server = test_server();
    let web = test_server.keyed("beta");
    for id in FIXTURES {
        let text = std::fs::read_to_string(folder.join(format!("{id}.json"))).unwrap();
        let definition: Value = serde_json::from_str(&text).unwrap();
        let registered = web.post("/v1/workflows", definition.clone());
        assert!(matches!(registered.status, 200 | 201), "{}", registered.text());
        assert_eq!(web.get(&format!("/v1/workflows/{id}")).expect(200), definition);
    }
    check_fixtures(&web, &FIXTURES);
}

#[test]
fn a_run_sees_its_scope_as_of_its_start_and_its_own_writes() {
    let test_server = test_server();
    let web = test_server.web();
    let steps = vec![
        recall("before", "before"),
        node("gate", "core.approvalGate", json!({"title": "go on?"})),
        recall("later", "later"),
        remember("mine", "mine"),
        recall("after", "after"),
    ];
    register(&web, chain("mem-sight", steps));
    let put =
        |content: &str| web.post("/v1/host/baton/memory/mem-sight-scope", json!({"content": content})).expect(201);
    put("early");
    let run = web.start_with(json!({"workflowId": "mem-sight", "scopeId": "mem-sight-scope"}));
    web.until_status(&run, "waiting-approval");
    put("late");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    let (snapshot, _) = web.ended(&run, "completed");
    for (name, expected) in [("before", &["early"][..]), ("later", &["early"]), ("after", &["mine", "early"])] {
        assert_eq!(contents(&snapshot["variables"][name]), expected, "{name}");
    }
    assert_eq!(contents(&scope(&web, "mem-sight-scope")), ["mine", "late", "early"]);
    // The next run sees all of it.
    let next = web.start_with(json!({"workflowId": "mem-sight", "scopeId": "mem-sight-scope"}));
    let waiting = web.until_status(&next, "waiting-approval");
    assert_eq!(contents(&waiting["variables"]["before"]), ["mine", "late", "early"]);
    web.cancel(&next);
}

#[test]
fn a_child_shares_its_parents_memory_unless_it_is_isolated() {
    let test_server = test_server();
    let web = test_server.web();
    register(&web, chain("mem-child", vec![remember("note", "from the child"), recall("look", "seen")]));
    let rules = json!([{"when": "children.size() < 2", "decide": hand_to("mem-child")}]);
    register(&web, team("mem-shared", rules.clone(), done(), json!({})));
    register(&web, team("mem-isolated", rules, done(), json!({"memoryScopeIsolation": "isolated"})));

    let (snapshot, _) = web.ended(&web.start("mem-shared"), "completed");
    let run = snapshot["runId"].as_str().unwrap();
    assert_eq!(contents(&scope(&web, run)), ["from the child"; 2]);
    let seen = |snapshot: &Value, at: usize| {
        let child = web.snapshot(snapshot["childRuns"][at]["runId"].as_str().unwrap());
        child["variables"]["seen"].as_array().unwrap().len()
    };
    assert_eq!((seen(&snapshot, 0), seen(&snapshot, 1)), (1, 2));

    let (snapshot, _) = web.ended(&web.start("mem-isolated"), "completed");
    assert_eq!(scope(&web, snapshot["runId"].as_str().unwrap()), json!([]));
    assert_eq!((seen(&snapshot, 0), seen(&snapshot, 1)), (1, 1));
    let child = snapshot["childRuns"][0]["runId"].as_str().unwrap();
    assert_eq!(contents(&scope(&web, child)), ["from the child"]);
}

#[test]
fn a_turn_is_frozen_and_the_next_one_sees_what_was_written() {
    let test_server = test_server();
    let web = test_server.web();
    register(&web, chain("mem-worker", vec![remember("note", "a finding")]));
    // Three turns by memory alone: were a turn to see what was written in it, there would be fewer.
    let rules = json!([{"when": "memory.size() < 3", "decide": hand_to("mem-worker")}]);
    register(&web, team("mem-turns", rules, done(), json!({})));
    let (snapshot, events) = web.ended(&web.start("mem-turns"), "completed");
    let run = snapshot["runId"].as_str().unwrap();
    let decided = of_type(&events, DECIDED);
    assert_eq!(decided.len(), 4);
    for (turn, event) in decided.iter().enumerate() {
        let at = event["sequence"].as_u64().unwrap();
        let state = web.get(&format!("/v1/host/baton/runs/{run}/state?at={at}")).expect(200);
        assert_eq!(state["memory"].as_array().unwrap().len(), turn, "{state}");
    }
}

#[test]
fn a_held_turn_is_taken_again_with_the_memory_it_had() {
    let test_server = test_server();
    let web = test_server.web();
    let unsure = json!({"kind": "terminate", "reason": "nothing known", "confidence": 0.1});
    let rules = json!([{"when": "memory.size() == 0", "decide": unsure}]);
    register(&web, team("mem-held", rules, json!({"kind": "terminate", "reason": "something known"}), json!({})));
    let run = web.start_with(json!({"workflowId": "mem-held", "scopeId": "mem-held-scope"}));
    let first = web.until_status(&run, "waiting-approval")["interrupt"]["key"].clone();
    web.post("/v1/host/baton/memory/mem-held-scope", json!({"content": "late"})).expect(201);
    let refine = json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "again"}});
    web.resolve(&run, "lead", refine).expect(200);
    // The same turn comes to the same decision, and is held again.
    web.until(&run, |snapshot| {
        assert!(!is_terminal(snapshot["status"].as_str().unwrap()), "{snapshot}");
        snapshot["status"] == "waiting-approval" && snapshot["interrupt"]["key"] != first
    });
    web.resolve_open(&run, "lead", json!({"action": "accept"})).expect(200);
    let (_, events) = web.ended(&run, "completed");
    assert_eq!(of_type(&events, DECIDED)[0]["payload"]["decision"]["reason"], "nothing known");
}

#[test]
fn writes_of_side_by_side_workers_are_all_there() {
    let test_server = test_server();
    let web = test_server.web();
    for name in ["a", "b", "c"] {
        register(&web, chain(&format!("mem-side-{name}"), vec![remember("note", name), remember("more", name)]));
    }
    let all = json!({"kind": "next-worker", "nextWorkerIds": ["mem-side-a", "mem-side-b", "mem-side-c"]});
    let rules = json!([{"when": "memory.size() == 0", "decide": all}]);
    register(&web, team("mem-side", rules, done(), json!({"fanOutPolicy": "parallel"})));
    let (snapshot, events) = web.ended(&web.start("mem-side"), "completed");
    let mut found = contents(&scope(&web, snapshot["runId"].as_str().unwrap()));
    found.sort();
    assert_eq!(found, ["a", "a", "b", "b", "c", "c"]);
    assert_eq!(of_type(&events, DECIDED).len(), 2);
}

#[test]
fn entries_expire_and_are_forgotten_for_later_runs_only() {
    let test_server = test_server();
    let web = test_server.web();
    let steps = vec![
        node("gate", "core.approvalGate", json!({"title": "go on?"})),
        recall("look", "seen"),
        node("forget", "vendor.baton.memory.delete", json!({"idExpression": "variables.seen[0].id"})),
        recall("again", "left"),
    ];
    register(&web, chain("mem-forget", steps));
    let path = "/v1/host/baton/memory/mem-forget-scope";
    let entry = web.post(path, json!({"content": "note", "tags": ["t"], "ttlSeconds": 3600})).expect(201);
    check_entry(&entry);
    assert!(entry["expiresAt"].as_str().unwrap() > entry["createdAt"].as_str().unwrap());
    let id = entry["id"].as_str().unwrap();
    let run = web.start_with(json!({"workflowId": "mem-forget", "scopeId": "mem-forget-scope"}));
    web.until_status(&run, "waiting-approval");
    // Somebody takes it away while the run waits: what it started with stays in its sight.
    web.send("DELETE", &format!("{path}/{id}"), &[], None).expect(204);
    web.get(&format!("{path}/{id}")).refused(404, "not_found");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(contents(&snapshot["variables"]["seen"]), ["note"]);
    assert_eq!(of_type(&events, "baton.memory.deleted").len(), 0, "it was gone already");

    let entry = web.post(path, json!({"content": "another"})).expect(201);
    let run = web.start_with(json!({"workflowId": "mem-forget", "scopeId": "mem-forget-scope"}));
    web.until_status(&run, "waiting-approval");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(snapshot["variables"]["left"], json!([]), "a run sees that it forgot");
    let deleted = of_type(&events, "baton.memory.deleted");
    assert_eq!(deleted[0]["payload"]["memoryId"], entry["id"]);
    assert_eq!(scope(&web, "mem-forget-scope"), json!([]));
}

#[test]
fn somebody_elses_memory_is_an_empty_one_of_ones_own() {
    let test_server = test_server();
    let (web, other) = (test_server.web(), test_server.keyed("beta"));
    let path = "/v1/host/baton/memory/mem-private";
    let entry = web.post(path, json!({"content": "ours alone"})).expect(201);
    let id = entry["id"].as_str().unwrap();
    assert_eq!(scope(&other, "mem-private"), json!([]));
    other.get(&format!("{path}/{id}")).refused(404, "not_found");
    other.send("DELETE", &format!("{path}/{id}"), &[], None).refused(404, "not_found");
    let scopes = other.get("/v1/host/baton/memory").expect(200);
    assert!(!scopes.to_string().contains("mem-private"), "{scopes}");
    test_server.keyed("reader").get(path).refused(403, "forbidden");
    test_server.anonymous().get(path).refused(401, "unauthenticated");
    assert_eq!(web.get(&format!("{path}/{id}")).expect(200), entry);
}

#[test]
fn a_pruned_run_cannot_be_gone_back_to() {
    let test_server = test_server();
    let web = test_server.web();
    register(&web, chain("mem-pruned", vec![remember("note", "x")]));
    let run = web.start("mem-pruned");
    let (_, events) = web.ended(&run, "completed");
    let last = events.len() as u64 - 1;
    let fork = |from: u64| web.post(&format!("/v1/runs/{run}:fork"), json!({"mode": "replay", "fromSeq": from}));
    let beyond = fork(last + 5).refused(422, "invalid_from_seq");
    assert_eq!(beyond["details"]["fromSeq"], last + 5);
    let pruned = web.post(&format!("/v1/runs/{run}:prune"), json!({})).expect(200);
    assert_eq!(pruned, json!({"runId": run, "prunedRuns": 1, "log": false}));
    for from in [0, last] {
        let refused = fork(from).refused(422, "replay_memory_snapshot_unavailable");
        let details = json!({"fromSeq": from, "sourceRunId": run, "reason": "retention_expired"});
        assert_eq!(refused["details"], details);
    }
    // Bounds come first.
    fork(last + 5).refused(422, "invalid_from_seq");
    assert_eq!(web.events(&run), events, "the log stays");
    assert!(web.snapshot(&run)["retention"]["prunedAt"].is_string());
    test_server.keyed("beta").post(&format!("/v1/runs/{run}:prune"), json!({})).refused(404, "run_not_found");
    test_server.keyed("reader").post(&format!("/v1/runs/{run}:prune"), json!({})).refused(403, "forbidden");
}
