//! What a stranger sees first: the discovery document, the need for a key, and refusals that all look alike.

use crate::support;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::test_server::test_server;
use support::{audit, web};

#[test]
fn discovery_needs_no_key_and_has_the_required_members() {
    let test_server = test_server();
    let answer = test_server.anonymous().get("/.well-known/openwop");
    let document = answer.expect(200);
    assert!(answer.header("content-type").unwrap().starts_with("application/json"));
    assert!(!answer.header("cache-control").unwrap().is_empty());
    let version = document["protocolVersion"].as_str().unwrap();
    assert_eq!(version, "1.0");
    assert!(document["supportedEnvelopes"].as_array().unwrap().contains(&json!("clarification.request")));
    assert!(document["schemaVersions"].is_object());
    for limit in ["clarificationRounds", "schemaRounds", "envelopesPerTurn"] {
        assert!(document["limits"][limit].is_u64(), "{limit}");
    }
    assert!(document["limits"]["maxRunDurationMs"].as_u64().unwrap() >= 1000);
    assert!(document["supportedTransports"].as_array().unwrap().contains(&json!("rest")));
    // The legacy name of an approval action must not appear anywhere.
    assert!(!answer.text().contains("\"edit\""));
    audit::protocol("capabilities.schema.json", &document);
}

#[test]
fn families_are_mirrored_where_older_clients_look() {
    let test_server = test_server();
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    for family in ["limits", "webhooks", "runs", "fixtures"] {
        assert_eq!(document["capabilities"][family], document[family], "{family}");
    }
}

#[test]
fn fixtures_are_unique_and_can_be_started_at_once() {
    let test_server = test_server();
    let web = test_server.web();
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    let fixtures: Vec<&str> = document["fixtures"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let unique: BTreeSet<&str> = fixtures.iter().copied().collect();
    assert!(!fixtures.is_empty() && unique.len() == fixtures.len(), "{fixtures:?}");
    for fixture in fixtures {
        let definition = web.get(&format!("/v1/workflows/{fixture}")).expect(200);
        assert_eq!(definition["id"], fixture);
        let inputs = json!({"payload": {}, "nonce": "n", "delayMs": 1});
        let run = web.start_with(json!({"workflowId": fixture, "inputs": inputs}));
        web.cancel(&run);
        web.until(&run, |snapshot| web::is_terminal(snapshot["status"].as_str().unwrap()));
        audit::ended(&run, &web.events(&run));
    }
}

#[test]
fn an_unchanged_document_is_not_sent_twice() {
    let test_server = test_server();
    let web = test_server.anonymous();
    let first = web.get("/.well-known/openwop");
    let tag = first.header("etag").unwrap().to_owned();
    let again = web.send("GET", "/.well-known/openwop", &[("If-None-Match", &tag)], None);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let other = web.send("GET", "/.well-known/openwop", &[("If-None-Match", "\"other\"")], None);
    assert_eq!(other.expect(200), first.json());
    assert_eq!(other.header("capabilities-etag"), first.header("capabilities-etag"));
    // Fifty in a row: discovery is never shed.
    for _ in 0..50 {
        assert_eq!(web.get("/.well-known/openwop").status, 200);
    }
}

#[test]
fn the_openapi_document_needs_no_key() {
    let test_server = test_server();
    let document = test_server.anonymous().get("/v1/openapi.json").expect(200);
    let version = document["openapi"].as_str().unwrap();
    assert!(version.starts_with("3.") && version != "3.0" && !version.starts_with("3.0."), "{version}");
    assert!(document["paths"]["/v1/runs"]["post"].is_object());
}

#[test]
fn without_a_good_key_everything_is_401() {
    let test_server = test_server();
    let body = json!({"workflowId": "conformance-noop"});
    let bogus = "no-such-key-5f1c";
    for web in [test_server.anonymous(), test_server.keyed(bogus)] {
        let refusal = web.post("/v1/runs", body.clone()).refused(401, "unauthenticated");
        assert!(!refusal.to_string().contains(bogus), "{refusal}");
        // Before any look at what exists.
        for path in ["/v1/runs/nope", "/v1/runs/nope/events", "/v1/runs/nope/artifacts/a", "/v1/workflows/nope"] {
            let answer = web.get(path);
            answer.refused(401, "unauthenticated");
            assert!(answer.header("location").is_none());
        }
    }
    for scheme in ["Basic alpha", "alpha", "Bearer", "Bearer "] {
        let answer = test_server.anonymous().send("POST", "/v1/runs", &[("Authorization", scheme)], Some(&body));
        answer.refused(401, "unauthenticated");
    }
}

#[test]
fn a_key_does_only_what_its_scopes_allow() {
    let test_server = test_server();
    let refusal = test_server.keyed("reader").post("/v1/runs", json!({"workflowId": "conformance-noop"}));
    refusal.refused(403, "forbidden");
    let run = test_server.web().start("conformance-approval");
    test_server.web().until_status(&run, "waiting-approval");
    let reader = test_server.keyed("reader");
    assert_eq!(reader.snapshot(&run)["status"], "waiting-approval");
    reader.post(&format!("/v1/runs/{run}/cancel"), json!({})).refused(403, "forbidden");
    reader.resolve(&run, "gate", json!({"action": "accept"})).refused(403, "forbidden");
    test_server.web().cancel(&run);
    test_server.web().ended(&run, "cancelled");
}

#[test]
fn another_tenant_sees_nothing_and_cannot_tell_that_there_is_something() {
    let test_server = test_server();
    let run = test_server.web().start("conformance-approval");
    test_server.web().until_status(&run, "waiting-approval");
    let stranger = test_server.keyed("beta");
    let there = stranger.get(&format!("/v1/runs/{run}")).refused(404, "run_not_found");
    let nowhere = stranger.get("/v1/runs/run_nowhere").refused(404, "run_not_found");
    assert_eq!(there, nowhere);
    stranger.get(&format!("/v1/runs/{run}/events")).refused(404, "run_not_found");
    stranger.get(&format!("/v1/runs/{run}/events/poll?timeout=1")).refused(404, "run_not_found");
    stranger.post(&format!("/v1/runs/{run}/cancel"), json!({})).refused(404, "run_not_found");
    stranger.resolve(&run, "gate", json!({"action": "accept"})).refused(404, "run_not_found");
    assert!(!stranger.get("/v1/runs").expect(200).to_string().contains(&run));
    assert!(!stranger.get("/v1/interrupts").expect(200).to_string().contains(&run));
    let body = json!({"workflowId": "conformance-noop", "tenantId": "acme"});
    stranger.post("/v1/runs", body).refused(403, "forbidden");
    test_server.web().cancel(&run);
    test_server.web().ended(&run, "cancelled");
}

#[test]
fn what_does_not_exist_is_404_in_the_envelope() {
    let test_server = test_server();
    let web = test_server.web();
    web.get("/v1/runs/run_nowhere").refused(404, "run_not_found");
    web.get("/v1/runs/run_nowhere/events").refused(404, "run_not_found");
    web.post("/v1/runs/run_nowhere/cancel", json!({})).refused(404, "run_not_found");
    web.post("/v1/runs/run_nowhere:pause", json!({})).refused(404, "run_not_found");
    web.get("/v1/workflows/nowhere").refused(404, "workflow_not_found");
    web.post("/v1/runs", json!({"workflowId": "nowhere"})).refused(404, "workflow_not_found");
    web.get("/v1/runs/run_nowhere/debug-bundle").refused(404, "run_not_found");
    let run = web.start("conformance-noop");
    web.ended(&run, "completed");
    assert_eq!(web.get(&format!("/v1/runs/{run}/artifacts/none")).status, 404);
    audit::envelope(&web.get(&format!("/v1/runs/{run}/artifacts/none")).json());
    assert_eq!(web.get("/v1/nothing-here").status, 404);
    // Outside the versioned tree is a mistake of the caller, not a missing thing.
    web.get("/runs").refused(400, "validation_error");
}

#[test]
fn a_wrong_body_is_refused_with_its_place() {
    let test_server = test_server();
    let web = test_server.web();
    let wrong = [
        (json!({}), "/workflowId"),
        (json!({"workflowId": ""}), "/workflowId"),
        (json!({"workflowId": "conformance-noop", "inputs": []}), "/inputs"),
        (json!({"workflowId": "conformance-noop", "surprise": 1}), "/surprise"),
        (json!({"workflowId": "conformance-noop", "tags": vec!["t"; 101]}), "/tags"),
        (json!({"workflowId": "conformance-noop", "tags": [""]}), "/tags/0"),
        (json!({"workflowId": "conformance-noop", "metadata": {"a": {"b": {"c": {"d": {}}}}}}), "/metadata"),
        (json!({"workflowId": "conformance-noop", "metadata": {"a": "x".repeat(9000)}}), "/metadata"),
    ];
    for (body, pointer) in wrong {
        let refusal = web.post("/v1/runs", body).refused(400, "validation_error");
        assert_eq!(refusal["details"]["pointer"], pointer, "{refusal}");
    }
    for text in ["", "{", "[]", "null", "\"x\""] {
        let headers = [("Authorization", "Bearer alpha"), ("Content-Type", "application/json")];
        let raw = support::http::exchange(&web.address, "POST", "/v1/runs", &headers, text.as_bytes()).unwrap();
        raw.refused(400, "validation_error");
    }
    let unsupported = web.post("/v1/runs", json!({"mode": "eval", "evalSuiteRef": "s"}));
    unsupported.refused(501, "capability_not_provided");
    web.send("DELETE", "/v1/runs", &[], None).refused(405, "method_not_allowed");
}

#[test]
fn a_workflow_is_given_back_as_registered() {
    let test_server = test_server();
    let definition = test_server.web().get("/v1/workflows/conformance-multi-node").expect(200);
    assert_eq!(definition["id"], "conformance-multi-node");
    let nodes: Vec<&Value> = definition["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
    assert_eq!(nodes, ["a", "b", "c"]);
}

#[test]
fn webhooks_refuse_urls_that_do_not_leave_the_machine() {
    let test_server = test_server();
    let web = test_server.web();
    let register = |url: Value| web.post("/v1/webhooks", json!({"url": url, "events": ["run.completed"]}));
    for url in ["https://127.0.0.1/h", "https://localhost/h", "http://example.com/h", "https://169.254.169.254/h"] {
        register(json!(url)).refused(400, "webhook_url_rejected");
    }
    for url in ["https://10.1.2.3/h", "https://192.168.0.1/h", "https://[::1]/h", "https://[fe80::1]/h"] {
        register(json!(url)).refused(400, "webhook_url_rejected");
    }
    register(json!("not a url")).refused(400, "validation_error");
    register(Value::Null).refused(400, "validation_error");
    web.post("/v1/webhooks", json!({"events": ["run.completed"]})).refused(400, "validation_error");
    web.post("/v1/webhooks", json!({"url": "https://example.com/h", "events": []})).refused(400, "validation_error");
    let misspelt = json!({"url": "https://example.com/h", "events": ["run.failed", "run.complete"]});
    web.post("/v1/webhooks", misspelt).refused(400, "validation_error");
    web.send("DELETE", "/v1/webhooks/wh_nowhere", &[], None).refused(404, "subscription_not_found");
    let kept = register(json!("https://example.com/h")).expect(201);
    let (secret, print) = (kept["secret"].as_str().unwrap(), kept["secretFingerprint"].as_str().unwrap());
    assert!(secret.len() == 64 && secret.chars().all(|c| c.is_ascii_hexdigit()), "a secret of 64 hex digits");
    assert_eq!(print.len(), 8);
    let path = format!("/v1/webhooks/{}", kept["webhookId"].as_str().unwrap());
    assert_eq!(web.send("DELETE", &path, &[], None).status, 204);
    web.send("DELETE", &path, &[], None).refused(404, "subscription_not_found");
}

#[test]
fn what_is_not_provided_says_so() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-noop");
    web.ended(&run, "completed");
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    if document.get("replay").is_none() {
        let refusal = web.post(&format!("/v1/runs/{run}:fork"), json!({"mode": "replay"}));
        refusal.refused(501, "capability_not_provided");
    }
    if document.get("debugBundle").is_none() {
        web.get(&format!("/v1/runs/{run}/debug-bundle")).refused(404, "not_found");
    }
}
