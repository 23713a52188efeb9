//! The protocol's own fixture workflows, where a copy of them lies beside the repository: the host starts with them,
//! lists exactly those it can run, and runs them as the protocol expects.

use crate::support;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use support::audit::protocol_folder;
use support::test_server::conformance_host;
use support::web::{Web, is_terminal, nodes_of, of_type};

fn definitions(folder: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

#[test]
fn the_protocols_fixtures_run_from_their_files() {
    let Some(folder) = protocol_folder("fixtures") else { return };
    let here = tempfile::tempdir().unwrap();
    let host = conformance_host(here.path(), &["--workflows", folder.to_str().unwrap()]);
    let web = Web::new(&host.url, Some("alpha"));
    let document = web.get("/.well-known/openwop").expect(200);
    let listed: BTreeSet<String> =
        document["fixtures"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();

    let elsewhere = Web::new(&host.url, Some("beta"));
    for definition in definitions(&folder) {
        let id = definition["id"].as_str().unwrap();
        let served = web.get(&format!("/v1/workflows/{id}"));
        // Whoever registers the same file is told whether it can run here. One that leans on something that is not here
        // would run and show nothing; it is left out all the same.
        let leans = ["requiresAgentId", "requiresInstalledPack", "requiresWorkspaceAgent"]
            .iter()
            .any(|key| definition["metadata"].get(key).is_some());
        let taken = elsewhere.post("/v1/workflows", definition.clone()).status < 300 && !leans;
        if taken {
            assert!(listed.contains(id), "{id} can run and is not listed");
            assert_eq!(served.expect(200), definition, "{id} is not served word for word");
        } else {
            // A built-in of that name may still be there; the file is not.
            assert_ne!(served.json(), definition, "{id} is served and cannot run");
        }
        let started = web.post("/v1/runs", json!({"workflowId": id, "inputs": {"payload": {}, "nonce": "n"}}));
        if listed.contains(id) {
            let run = started.expect(201)["runId"].as_str().unwrap().to_owned();
            web.cancel(&run);
            web.until(&run, |snapshot| is_terminal(snapshot["status"].as_str().unwrap()));
        } else {
            started.refused(404, "workflow_not_found");
        }
    }
    plain(&web);
    asking(&web);
    together(&web);
    assert_eq!(host.stop(), 0);
}

fn plain(web: &Web) {
    web.ended(&web.start("conformance-noop"), "completed");
    let payload = json!({"deep": [{"list": [1, 2.5, null]}]});
    let run = web.start_with(json!({"workflowId": "conformance-identity", "inputs": {"payload": payload}}));
    assert_eq!(web.ended(&run, "completed").0["variables"]["payload"], payload);
    let run = web.start_with(json!({"workflowId": "conformance-delay", "inputs": {"delayMs": 50}}));
    web.ended(&run, "completed");
    let (snapshot, _) = web.ended(&web.start("conformance-failure"), "failed");
    assert_eq!(snapshot["error"]["code"], "conformance_test_failure");
    let (_, events) = web.ended(&web.start("conformance-multi-node"), "completed");
    assert_eq!(nodes_of(&events, "node.completed"), ["a", "b", "c"]);
    let body = json!({"workflowId": "conformance-cap-breach", "configurable": {"recursionLimit": 3}});
    let (snapshot, events) = web.ended(&web.start_with(body), "failed");
    assert_eq!(snapshot["error"]["code"], "recursion_limit_exceeded");
    assert_eq!(of_type(&events, "node.started").len(), 3);
    let (snapshot, _) = web.ended(&web.start("conformance-capability-missing"), "failed");
    assert_eq!(snapshot["error"]["code"], "capability_not_provided");
    let body = json!({"workflowId": "conformance-run-duration-breach", "configurable": {"runTimeoutMs": 1000}});
    assert_eq!(web.ended(&web.start_with(body), "failed").0["error"]["code"], "run_timeout");
}

fn asking(web: &Web) {
    let run = web.start("conformance-approval");
    assert_eq!(web.until_status(&run, "waiting-approval")["currentNodeId"], "gate");
    web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
    web.ended(&run, "completed");
    let run = web.start("conformance-clarification");
    assert_eq!(web.until_status(&run, "waiting-input")["currentNodeId"], "ask");
    web.resolve(&run, "ask", json!({"answers": {"q1": "green"}})).expect(200);
    web.ended(&run, "completed");
    let run = web.start("conformance-interrupt-quorum");
    web.until_status(&run, "waiting-approval");
    for voter in ["a", "b", "c"] {
        assert_eq!(web.snapshot(&run)["status"], "waiting-approval");
        web.resolve(&run, "gate", json!({"action": "accept", "voter": voter})).expect(200);
    }
    web.ended(&run, "completed");
    let run = web.start("conformance-interrupt-external-event");
    let snapshot = web.until_status(&run, "waiting-external");
    let path = format!("/v1/interrupts/{}", snapshot["interrupt"]["interruptToken"].as_str().unwrap());
    let answer = |status: &str| json!({"resumeValue": {"orderId": "fixture-order-1", "status": status}});
    assert!(matches!(web.post(&path, answer("lost")).status, 400 | 422));
    web.post(&path, answer("completed")).expect(200);
    web.ended(&run, "completed");
}

fn together(web: &Web) {
    let (snapshot, _) = web.ended(&web.start("conformance-subworkflow-parent"), "completed");
    assert_eq!(snapshot["variables"]["childOutcome"], "child-completed");
    web.ended(snapshot["childRuns"][0]["runId"].as_str().unwrap(), "completed");
    let (snapshot, _) = web.ended(&web.start("conformance-channel-ttl"), "completed");
    let kept: Vec<&Value> = snapshot["variables"]["events"].as_array().unwrap().iter().map(|e| &e["value"]).collect();
    assert_eq!(kept, ["d"]);
    let workflow = "conformance-configurable-schema";
    let bad = web.post("/v1/runs", json!({"workflowId": workflow, "configurable": {"recursionLimit": "x"}}));
    assert!(matches!(bad.status, 400 | 422), "{}", bad.text());
    let run = web.start_with(json!({"workflowId": workflow, "configurable": {"recursionLimit": 5}}));
    web.ended(&run, "completed");
    let run = web.start("conformance-interrupt-parent-child-cancel");
    let child = web.until_status(&run, "waiting-approval")["childRuns"][0]["runId"].as_str().unwrap().to_owned();
    web.cancel(&run);
    web.ended(&run, "cancelled");
    web.ended(&child, "cancelled");
}
