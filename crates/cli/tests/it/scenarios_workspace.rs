//! The workspace as a client sees it: files, versions, owners, and what a run and a loop see of them.

use crate::support;

use serde_json::{Value, json};
use support::flow::{chain, node};
use support::test_server::test_server;
use support::web::{Web, of_type};

const FILES: &str = "/v1/host/workspace/files";

fn put(web: &Web, path: &str, content: &str) -> Value {
    web.send("PUT", &format!("{FILES}/{path}"), &[], Some(&json!({"content": content}))).expect(200)
}

fn paths(list: &Value) -> Vec<String> {
    let files = list["files"].as_array().unwrap_or_else(|| panic!("{list}"));
    files.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_capability_says_what_is_enforced() {
    let test_server = test_server();
    let web = test_server.web();
    let workspace = web.get("/.well-known/openwop").expect(200)["workspace"].clone();
    assert_eq!(workspace["supported"], true);
    for bound in ["maxFileBytes", "maxFiles"] {
        assert!(workspace[bound].as_u64().is_some_and(|most| most > 0), "{workspace}");
    }
    let most = workspace["maxFileBytes"].as_u64().unwrap() as usize;
    let write =
        |content: String| web.send("PUT", &format!("{FILES}/ws-size.md"), &[], Some(&json!({"content": content})));
    write("x".repeat(most + 1)).refused(413, "workspace_too_large");
    // The worst case on the wire: each byte takes six.
    write("\u{1}".repeat(most)).expect(200);
    write("x".repeat(6 * most + 9999)).refused(413, "workspace_too_large");
}

#[test]
fn files_have_versions_and_etags() {
    let test_server = test_server();
    let web = test_server.web();
    // The slash of a path may be sent either way.
    let first = put(&web, "ws-behaviour%2FCRUD.md", "one");
    assert_eq!((&first["path"], &first["version"]), (&json!("ws-behaviour/CRUD.md"), &json!(1)));
    assert!(first["etag"].as_str().is_some_and(|etag| !etag.is_empty()));
    let members: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(members, ["content", "contentType", "etag", "path", "updatedAt", "version"]);
    let path = format!("{FILES}/ws-behaviour/CRUD.md");
    assert_eq!(web.get(&path).expect(200), first);
    let list = web.get(&format!("{FILES}?prefix=ws-behaviour/")).expect(200);
    assert_eq!(paths(&list), ["ws-behaviour/CRUD.md"]);
    assert!(list["files"][0].get("content").is_none(), "{list}");

    let matching =
        |etag: &str, content: &str| web.send("PUT", &path, &[("If-Match", etag)], Some(&json!({"content": content})));
    let stale = matching("\"definitely-stale\"", "no").refused(409, "workspace_conflict");
    assert_eq!(stale["details"]["currentVersion"], 1);
    let second = matching(first["etag"].as_str().unwrap(), "two").expect(200);
    assert_eq!(second["version"], 2);
    assert_eq!(
        matching(first["etag"].as_str().unwrap(), "no").refused(409, "workspace_conflict")["details"]["currentVersion"],
        2
    );
    assert_eq!(web.get(&format!("{path}?version=1")).expect(200), first);
    web.get(&format!("{path}?version=3")).refused(404, "not_found");

    web.send("DELETE", &path, &[], None).expect(204);
    web.get(&path).refused(404, "not_found");
    web.send("DELETE", &path, &[], None).refused(404, "not_found");
    let missing = matching(second["etag"].as_str().unwrap(), "no").refused(409, "workspace_conflict");
    assert_eq!(missing["details"]["currentVersion"], 0);
    // Made anew: version 1 again, and an etag nobody has seen.
    let again = put(&web, "ws-behaviour/CRUD.md", "three");
    assert_eq!(again["version"], 1);
    assert!(again["etag"] != first["etag"] && again["etag"] != second["etag"], "{again}");
    web.get(&format!("{path}?version=2")).refused(404, "not_found");
}

#[test]
fn paths_that_climb_and_bodies_that_are_none_are_refused() {
    let test_server = test_server();
    let web = test_server.web();
    for bad in ["%2e%2e%2fup", "a%2F..%2Fb", "%2Fetc%2Fpasswd", "-a", "a%20b"] {
        let answer = web.send("PUT", &format!("{FILES}/{bad}"), &[], Some(&json!({"content": "x"})));
        assert!(matches!(answer.status, 400 | 404), "{bad}: {}", answer.text());
    }
    for body in [json!({}), json!({"content": 1}), json!({"content": "x", "more": 1}), json!("x")] {
        web.send("PUT", &format!("{FILES}/ws-body.md"), &[], Some(&body)).refused(400, "validation_error");
    }
    web.get(&format!("{FILES}/ws-body.md")).refused(404, "not_found");
}

#[test]
fn an_owner_is_alone_with_its_files() {
    let test_server = test_server();
    let (web, other) = (test_server.web(), test_server.keyed("beta"));
    put(&web, "ws-private.md", "ours alone");
    let path = format!("{FILES}/ws-private.md");
    for answer in [other.get(&path), other.send("DELETE", &path, &[], None)] {
        assert!(!answer.text().contains("ours alone"));
        answer.refused(404, "not_found");
    }
    assert!(!paths(&other.get(FILES).expect(200)).contains(&"ws-private.md".to_owned()));
    assert_eq!(put(&other, "ws-private.md", "theirs")["version"], 1, "a file of their own");
    assert_eq!(web.get(&path).expect(200)["content"], "ours alone");
    test_server.keyed("reader").get(&path).refused(403, "forbidden");
    test_server.anonymous().get(&path).refused(401, "unauthenticated");

    // The same through the suite's seam, where the owner is named.
    let op = |tenant: &str, workspace: &str, op: &str, content: Option<&str>| {
        let mut body = json!({"tenant": tenant, "workspace": workspace, "op": op, "path": "seam.md"});
        if let Some(content) = content {
            body["content"] = content.into();
        }
        web.post("/v1/host/sample/workspace/op", body)
    };
    op("t1", "w1", "put", Some("secret of t1")).expect(200);
    for (tenant, workspace) in [("t1", "w2"), ("t2", "w1")] {
        let answer = op(tenant, workspace, "get", None);
        assert!(matches!(answer.status, 403 | 404) && !answer.text().contains("secret of t1"), "{}", answer.text());
        assert_eq!(paths(&op(tenant, workspace, "list", None).expect(200)), Vec::<String>::new());
        assert!(matches!(op(tenant, workspace, "delete", None).status, 403 | 404));
    }
    assert_eq!(op("t1", "w1", "get", None).expect(200)["content"], "secret of t1");
}

#[test]
fn a_run_sees_the_files_there_were_when_it_started() {
    let test_server = test_server();
    let web = test_server.web();
    let steps = vec![
        node("gate", "core.approvalGate", json!({"title": "go on?"})),
        node("read", "vendor.baton.workspace.get", json!({"path": "ws-run.md", "into": "file"})),
        node("write", "vendor.baton.workspace.put", json!({"path": "ws-run.md", "content": "by the run"})),
        node("again", "vendor.baton.workspace.get", json!({"path": "ws-run.md", "into": "later"})),
        node("list", "vendor.baton.workspace.list", json!({"prefix": "ws-run", "into": "files"})),
    ];
    assert_eq!(web.post("/v1/workflows", chain("ws-run", steps)).status, 201);
    put(&web, "ws-run.md", "before");
    let run = web.start("ws-run");
    let waiting = web.until_status(&run, "waiting-approval");
    let listed: Vec<&Value> = waiting["workspace"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert!(listed.contains(&&json!("ws-run.md")), "{waiting}");
    put(&web, "ws-run.md", "meanwhile");
    put(&web, "ws-run-2.md", "meanwhile");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    let (snapshot, events) = web.ended(&run, "completed");
    let variables = &snapshot["variables"];
    assert_eq!(variables["file"]["content"], "before");
    assert_eq!(variables["later"]["content"], "before", "its own writes are for later runs");
    assert_eq!(variables["files"].as_array().unwrap().len(), 1);
    let updated = of_type(&events, "workspace.updated");
    assert_eq!(updated.len(), 1);
    assert_eq!(updated[0]["payload"], json!({"path": "ws-run.md", "version": 3}));
    assert_eq!(web.get(&format!("{FILES}/ws-run.md")).expect(200)["content"], "by the run");
}

#[test]
fn a_turn_sees_what_the_turn_before_wrote() {
    let test_server = test_server();
    let web = test_server.web();
    let write = node("write", "vendor.baton.workspace.put", json!({"path": "ws-turn.md", "content": "written"}));
    assert_eq!(web.post("/v1/workflows", chain("ws-turn-worker", vec![write])).status, 201);
    let config = json!({
        "agentId": "lead",
        "rules": [{"when": "!('ws-turn.md' in workspace)",
            "decide": {"kind": "next-worker", "nextWorkerIds": ["ws-turn-worker"]}}],
        "otherwise": {"kind": "terminate", "reason": "it is there"}
    });
    let nodes =
        vec![node("lead", "core.orchestrator.supervisor", config), node("hand-over", "core.dispatch", json!({}))];
    assert_eq!(web.post("/v1/workflows", chain("ws-turn", nodes)).status, 201);
    let run = web.start("ws-turn");
    let (_, events) = web.ended(&run, "completed");
    let decided = of_type(&events, "runOrchestrator.decided");
    assert_eq!(decided.len(), 2);
    let visible = |at: &Value| {
        let state = web.get(&format!("/v1/host/baton/runs/{run}/state?at={at}")).expect(200);
        state["workspace"].as_array().unwrap().iter().any(|file| file["path"] == "ws-turn.md")
    };
    assert!(!visible(&decided[0]["sequence"]) && visible(&decided[1]["sequence"]));
}

#[test]
fn the_loop_the_suite_drives_is_a_real_one() {
    let test_server = test_server();
    let web = test_server.web();
    let drive = |body: Value| web.post("/v1/host/sample/agentloop/run", body).expect(200);
    let plain = drive(json!({"turns": 3}));
    let turns: Vec<&Value> = plain["decisions"].as_array().unwrap().iter().map(|turn| &turn["iteration"]).collect();
    assert_eq!(turns, [1, 2, 3]);
    for turn in plain["decisions"].as_array().unwrap() {
        assert!(turn["agentId"].is_string() && turn["decision"]["kind"].is_string(), "{turn}");
    }
    let written = drive(json!({"turns": 3, "workspaceWriteAtTurn": 1}));
    assert_eq!(written["workspaceVisible"], json!({"atWriteTurn": false, "atNextTurn": true}));
    let resumed = drive(json!({"turns": 3, "suspendAtTurn": 2, "resume": true}));
    assert_eq!(resumed["resumedIteration"], 2);
    let turns: Vec<&Value> = resumed["decisions"].as_array().unwrap().iter().map(|turn| &turn["iteration"]).collect();
    assert_eq!(turns, [1, 2, 3]);
    assert!(matches!(
        test_server.anonymous().post("/v1/host/sample/agentloop/run", json!({"turns": 1})).status,
        401 | 403
    ));
}
