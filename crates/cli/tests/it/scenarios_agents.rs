//! Live agents as the protocol's own checks see them, against the real binary in conformance mode. What each claim rests
//! on is shown closer to the code, in the server's tests.

use crate::support;

use serde_json::{Value, json};
use support::audit;
use support::test_server::{conformance_host, test_server};
use support::web::{Web, of_type, place};

const SAMPLE: &str = "/v1/host/sample";
const DEFAULT: &str = "local.baton.conformance.default";

fn live_invoke(web: &Web, body: Value) -> (Value, Vec<Value>) {
    let invoked = web.post(&format!("{SAMPLE}/agents/live-invoke"), body).expect(200);
    let run = invoked["runId"].as_str().unwrap();
    let events = web.get(&format!("{SAMPLE}/test/runs/{run}/events")).expect(200)["events"].as_array().unwrap().clone();
    audit::ended(run, &events);
    (invoked, events)
}

#[test]
fn the_blocks_of_discovery_have_the_protocols_shape() {
    let test_server = test_server();
    let document = test_server.anonymous().get("/.well-known/openwop").expect(200);
    audit::protocol("capabilities.schema.json", &document);
    let agents = &document["agents"];
    assert_eq!(agents["supported"], true);
    assert_eq!(agents["liveRuntime"]["sources"], json!(["workflow-node", "run-api", "chat-mention"]));
    assert!(document["aiProviders"]["supported"].as_array().unwrap().contains(&json!("mock")));
    let events = document["envelopes"]["reliability"]["events"].as_array().unwrap();
    for mandatory in ["envelope.refusal", "envelope.retry.exhausted"] {
        assert!(events.contains(&json!(mandatory)), "{events:?}");
    }
    assert!(agents.get("modelClasses").is_none());
}

#[test]
fn the_inventory_is_the_protocols_and_each_agent_can_be_read() {
    let test_server = test_server();
    let web = test_server.web();
    let inventory = web.get("/v1/agents").expect(200);
    audit::protocol("agent-inventory-response.schema.json", &inventory);
    let agents = inventory["agents"].as_array().unwrap();
    assert_eq!(inventory["total"], agents.len());
    assert!(!agents.is_empty());
    let ids: Vec<&str> = agents.iter().map(|agent| agent["agentId"].as_str().unwrap()).collect();
    assert!(ids.is_sorted() && ids.contains(&DEFAULT), "{ids:?}");
    for agent in agents {
        let id = agent["agentId"].as_str().unwrap();
        assert_eq!(web.get(&format!("/v1/agents/{id}")).expect(200), *agent);
        let degraded = agent.get("degradedMemoryDimensions").is_some();
        assert_eq!(agent["memoryDegraded"] == json!(true), degraded, "{agent}");
    }
    for reserved in ["roster", "org-chart"] {
        web.get(&format!("/v1/agents/{reserved}")).refused(404, "not_found");
    }
    test_server.anonymous().get("/v1/agents").refused(401, "unauthenticated");
}

#[test]
fn the_first_agent_can_be_dispatched() {
    let test_server = test_server();
    let web = test_server.web();
    let inventory = web.get("/v1/agents").expect(200);
    let agent = inventory["agents"][0]["agentId"].as_str().unwrap();
    let body = json!({"task": {}, "validateHandoff": false, "availableTools": []});
    let answer = web.post(&format!("{SAMPLE}/agents/{agent}/dispatch"), body).expect(200);
    assert!(answer["status"] == "completed" || answer["status"] == "escalated", "{answer}");
    let events = answer["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["agentId"] == agent), "{events:?}");
    for kind in ["agent.reasoned", "agent.decided"] {
        assert!(events.iter().any(|event| event["type"] == kind), "{events:?}");
    }
}

#[test]
fn the_bracket_is_first_and_last_whichever_door() {
    let test_server = test_server();
    let web = test_server.web();
    for source in ["workflow-node", "run-api", "chat-mention"] {
        let (invoked, events) = live_invoke(&web, json!({"source": source}));
        let family: Vec<&Value> =
            events.iter().filter(|event| event["type"].as_str().unwrap().starts_with("agent.")).collect();
        let (first, last) = (family[0], family[family.len() - 1]);
        assert_eq!(first["type"], "agent.invocation.started");
        assert_eq!(last["type"], "agent.invocation.completed");
        assert_eq!(first["payload"]["source"], source);
        assert_eq!(first["payload"]["invocationId"], invoked["invocationId"]);
        assert_eq!(last["payload"]["invocationId"], invoked["invocationId"]);
        assert_eq!(last["payload"]["outcome"], "completed");
        for event in [first, last] {
            for key in ["prompt", "result", "body", "input", "output", "apiKey", "secret", "credentials", "token"] {
                assert!(event["payload"].get(key).is_none(), "{event}");
            }
        }
        assert!(place(&events, "provider.usage") < place(&events, "node.completed"));
        assert!(place(&events, "agent.promptResolved") < place(&events, "prompt.composed"));
    }
}

#[test]
fn a_result_that_breaks_its_schema_fails_the_invocation() {
    let test_server = test_server();
    let body =
        json!({"source": "run-api", "returnSchemaRef": "conformance-strict-handoff", "forceInvalidResult": true});
    let (_, events) = live_invoke(&test_server.web(), body);
    let completed = of_type(&events, "agent.invocation.completed");
    let last = &completed.last().unwrap()["payload"];
    assert!(last["outcome"] == "failed" && last["schemaValidated"] != true, "{last}");
    assert_eq!(of_type(&events, "envelope.retry.exhausted").len(), 1);
    assert!(place(&events, "envelope.retry.exhausted") < place(&events, "node.failed"));
}

#[test]
fn a_tool_outside_the_allowlist_is_never_called() {
    let test_server = test_server();
    let (_, events) = live_invoke(&test_server.web(), json!({"attemptTool": "conformance-disallowed-tool"}));
    // By the name that the log has, not by one of those that it has not.
    assert!(
        of_type(&events, "agent.toolCalled").iter().all(|e| e["payload"]["toolName"] != "conformance-disallowed-tool")
    );
    let refused = of_type(&events, "agent.toolReturned");
    assert_eq!((refused.len(), &refused[0]["payload"]["status"]), (1, &json!("forbidden")), "it was asked for");
    assert_eq!(of_type(&events, "run.completed").len(), 1);
}

#[test]
fn an_unsure_agent_waits_and_goes_on() {
    let test_server = test_server();
    let web = test_server.web();
    let body = json!({"simulateConfidence": 0.2});
    let answer = web.post(&format!("{SAMPLE}/agents/{DEFAULT}/dispatch"), body).expect(200);
    assert_eq!((&answer["status"], &answer["confidence"]), (&json!("escalated"), &json!(0.2)));
    let run = answer["runId"].as_str().unwrap();
    assert_eq!(web.until_status(run, "waiting-approval")["interrupt"]["kind"], "low-confidence");
    web.resolve(run, "agent", json!({"answer": "ratified"})).expect(200);
    let (snapshot, _) = web.ended(run, "completed");
    assert_eq!(snapshot["variables"]["result"], json!({"answer": "ratified"}));
}

#[test]
fn an_agent_is_started_by_id_and_by_name() {
    // A host of its own: on the shared one it could be given what a seam has told the mock to say to another.
    let folder = tempfile::tempdir().unwrap();
    let host = conformance_host(folder.path(), &[]);
    let web = Web::new(&host.url, Some("alpha"));
    let run = web.start_with(json!({"agentId": DEFAULT, "inputs": {"task": "x"}}));
    let (snapshot, events) = web.ended(&run, "completed");
    assert_eq!(snapshot["workflowId"], format!("agent:{DEFAULT}"));
    assert_eq!(of_type(&events, "agent.invocation.started")[0]["payload"]["source"], "run-api");
    let said = web.post("/v1/host/baton/chat", json!({"text": format!("@{DEFAULT} hello"), "conversationId": "c"}));
    let (_, events) = web.ended(said.expect(201)["runId"].as_str().unwrap(), "completed");
    assert_eq!(of_type(&events, "agent.invocation.started")[0]["payload"]["source"], "chat-mention");
    let both = web.post("/v1/runs", json!({"agentId": DEFAULT, "workflowId": "conformance-noop"}));
    both.refused(400, "validation_error");
    let unknown = web.post("/v1/runs", json!({"agentId": "vendor.no.such.agent"})).refused(400, "validation_error");
    assert_eq!(unknown["details"]["agentId"], "vendor.no.such.agent");
}

#[test]
fn tools_and_prompts_have_the_protocols_shape() {
    let test_server = test_server();
    let web = test_server.web();
    for tool in web.get("/v1/tools").expect(200).as_array().unwrap() {
        audit::protocol("tool-descriptor.schema.json", tool);
        let id = tool["toolId"].as_str().unwrap();
        assert_eq!(web.get(&format!("/v1/tools/{}", id.replace(':', "%3A"))).expect(200), *tool);
    }
    let prompts = web.get("/v1/prompts").expect(200);
    let items = prompts["items"].as_array().unwrap();
    assert!(!items.is_empty());
    for template in items {
        audit::protocol("prompt-template.schema.json", template);
        let (id, version) = (template["templateId"].as_str().unwrap(), template["version"].as_str().unwrap());
        assert_eq!(web.get(&format!("/v1/prompts/{id}?version={version}")).expect(200), *template);
    }
    let body = json!({"ref": "prompt:conformance.prompt.trust-marker", "variables": {"userPayload": "x"}});
    let once = web.post("/v1/prompts:render", body.clone()).expect(200);
    assert_eq!(web.post("/v1/prompts:render", body).expect(200), once);
    web.post("/v1/prompts", json!({})).refused(501, "capability_not_provided");
}

#[test]
fn an_open_test_endpoint_still_asks_who_is_there() {
    let test_server = test_server();
    let nobody = test_server.anonymous();
    for path in [
        "test/mock-ai/last-dispatch-budget?nodeId=probe",
        "test/runs/__probe__/events",
        "agents/live-invoke",
        "envelope/accept",
        "toolhooks/invoke",
    ] {
        let answer = nobody.get(&format!("{SAMPLE}/{path}"));
        assert!([401, 403, 404, 405, 501].contains(&answer.status), "{path}: {}", answer.status);
        let answer = nobody.post(&format!("{SAMPLE}/{path}"), json!({}));
        assert!([401, 403, 404, 405, 501].contains(&answer.status), "{path}: {}", answer.status);
    }
    let probe = test_server.web().get(&format!("{SAMPLE}/test/runs/__probe__/events")).expect(200);
    assert_eq!(probe, json!({"events": []}));
}
