//! What agents look like from outside, as the protocol's own checks see it: workflows of conformance mode against the
//! real binary. Live invocations are in `scenarios_agents`.

use crate::support;

use serde_json::{Value, json};
use support::test_server::{conformance_host, test_server};
use support::web::{Web, of_type, place};

fn ran(web: &Web, workflow: &str, inputs: Value, status: &str) -> (Value, Vec<Value>) {
    web.ended(&web.start_with(json!({"workflowId": workflow, "inputs": inputs})), status)
}

/// agentMetadata, agentPackProvenance.
#[test]
fn a_run_says_who_works_on_it_and_where_they_came_from() {
    let test_server = test_server();
    let web = test_server.web();
    let (snapshot, events) = ran(&web, "conformance-agent-identity", json!({}), "completed");
    assert!(snapshot["agent"]["agentId"].as_str().unwrap().len() >= 3, "{snapshot}");
    assert!(events.iter().all(|event| !event["type"].as_str().unwrap().starts_with("agent.")), "nobody was asked");
    let (snapshot, events) = ran(&web, "conformance-agent-pack-provenance", json!({}), "completed");
    assert_eq!(snapshot["agent"]["sourceManifestId"], snapshot["agent"]["agentId"]);
    assert_eq!(of_type(&events, "agent.invocation.started").len(), 1);
}

/// agentReasoningEvents.
#[test]
fn the_family_of_an_agents_events_hangs_together() {
    let test_server = test_server();
    let (snapshot, events) = ran(&test_server.web(), "conformance-agent-reasoning", json!({}), "completed");
    let family: Vec<&Value> =
        events.iter().filter(|event| event["type"].as_str().unwrap().starts_with("agent.")).collect();
    let kinds: Vec<&str> = family.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let order = ["agent.reasoned", "agent.toolCalled", "agent.toolReturned", "agent.handoff", "agent.decided"];
    assert_eq!(kinds, order);
    for event in &family {
        for key in if event["type"] == "agent.handoff" { &["fromAgentId", "toAgentId"][..] } else { &["agentId"] } {
            assert!(event["payload"][key].as_str().is_some_and(|id| id.len() >= 3), "{event}");
        }
    }
    assert_eq!(family[1]["payload"]["callId"], family[2]["payload"]["callId"]);
    assert_eq!(family[2]["causationId"], family[1]["eventId"]);
    assert_eq!(snapshot["agent"]["agentId"], family[3]["payload"]["toAgentId"], "whoever has it now works on it");

    let body = json!({"workflowId": "conformance-agent-reasoning", "configurable": {"reasoningVerbosity": "off"}});
    let (_, quiet) = test_server.web().ended(&test_server.web().start_with(body), "completed");
    assert!(of_type(&quiet, "agent.reasoned").is_empty());
}

/// agentReasoningStreaming.
#[test]
fn thoughts_come_in_pieces_and_then_whole() {
    let test_server = test_server();
    let (_, events) = ran(&test_server.web(), "conformance-agent-reasoning-streaming", json!({}), "completed");
    let pieces = of_type(&events, "agent.reasoning.delta");
    let whole = of_type(&events, "agent.reasoned");
    assert_eq!((pieces.len(), whole.len()), (3, 1));
    let numbers: Vec<u64> = pieces.iter().map(|piece| piece["payload"]["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let together: String = pieces.iter().map(|piece| piece["payload"]["delta"].as_str().unwrap()).collect();
    assert_eq!(whole[0]["payload"]["reasoning"], together);
    assert!(pieces.iter().all(|piece| piece["sequence"].as_u64() < whole[0]["sequence"].as_u64()));
    assert!(pieces.iter().all(|piece| piece["payload"]["agentId"] == whole[0]["payload"]["agentId"]));
}

/// agentConfidenceEscalation.
#[test]
fn an_agent_below_its_threshold_waits() {
    let test_server = test_server();
    let web = test_server.web();
    let run = web.start("conformance-agent-low-confidence");
    web.until_status(&run, "waiting-approval");
    let events = web.events(&run);
    let asked = &of_type(&events, "node.suspended")[0]["payload"];
    assert_eq!(asked["reason"], "low-confidence");
    assert!(asked["agentId"].is_string());
    assert!(asked["observed"].as_f64().unwrap() < asked["threshold"].as_f64().unwrap(), "{asked}");
    // As sure as it had to be is sure enough.
    let body = json!({"workflowId": "conformance-agent-low-confidence", "configurable": {"escalationThreshold": 0.5}});
    web.ended(&web.start_with(body), "completed");
}

/// agentPackHandoffSchemaValidation.
#[test]
fn tasks_and_answers_are_held_against_their_schemas() {
    let test_server = test_server();
    let web = test_server.web();
    let workflow = "conformance-agent-pack-handoff-schema-validation";
    let task = json!({"text": "Bill 7 of the mill, 12 crowns", "extractionFields": ["sum"]});
    ran(&web, workflow, task, "completed");
    let (_, events) = ran(&web, workflow, json!({"text": "Bill 7"}), "failed");
    assert_eq!(of_type(&events, "node.failed")[0]["payload"]["error"]["code"], "handoff_task_schema_violation");
    assert!(of_type(&events, "provider.usage").is_empty(), "no model saw it");
    let contrary = json!({"scenario": "mock-return-violation", "text": "x", "extractionFields": ["a"]});
    let (snapshot, events) = ran(&web, workflow, contrary, "failed");
    assert_eq!(of_type(&events, "node.failed")[0]["payload"]["error"]["code"], "handoff_return_schema_violation");
    assert!(snapshot["variables"].get("result").is_none(), "{snapshot}");
}

/// prompt-end-to-end-events, prompt-resolution-chain-event.
#[test]
fn the_way_to_a_prompt_and_the_prompt_are_on_the_log() {
    const LAYERS: [&str; 7] = [
        "run-configurable",
        "node",
        "agent-intrinsic",
        "agent-overrides",
        "agent-library-default",
        "workflow-defaults",
        "host-defaults",
    ];
    let test_server = test_server();
    let web = test_server.web();
    let document = web.get("/.well-known/openwop").expect(200);
    assert_eq!(document["prompts"]["observability"], "full");
    let (_, events) = ran(&web, "conformance-prompt-end-to-end", json!({}), "completed");
    let resolved = &of_type(&events, "agent.promptResolved")[0]["payload"];
    assert_eq!((&resolved["nodeId"], &resolved["kind"]), (&json!("writer"), &json!("system")));
    let chain = resolved["chain"].as_array().unwrap();
    assert!(chain.iter().all(|entry| LAYERS.contains(&entry["layer"].as_str().unwrap())), "{chain:?}");
    let applied: Vec<&Value> = chain.iter().filter(|entry| entry["applied"] == true).collect();
    assert_eq!((applied.len(), &applied[0]["layer"]), (1, &json!("node")));
    assert_eq!(resolved["resolved"], applied[0]["source"]);
    assert_eq!(resolved["resolved"], "prompt:conformance.prompt.writer-system@1.0.0");
    let composed = &of_type(&events, "prompt.composed")[0]["payload"];
    assert_eq!(composed["kind"], "system-only");
    assert!(composed["composed"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(composed["systemPrompt"], composed["composed"]);
    assert!(place(&events, "agent.promptResolved") < place(&events, "prompt.composed"));
}

/// prompt-all-four-kinds-events.
#[test]
fn every_kind_of_prompt_is_found_and_put_together() {
    let test_server = test_server();
    let (_, events) = ran(&test_server.web(), "conformance-prompt-all-four-kinds", json!({}), "completed");
    let resolved = of_type(&events, "agent.promptResolved");
    for kind in ["system", "user", "schema-hint", "few-shot"] {
        assert!(resolved.iter().any(|event| event["payload"]["kind"] == kind), "{kind}");
    }
    let composed: Vec<&Value> =
        of_type(&events, "prompt.composed").iter().map(|event| &event["payload"]["refs"][0]).collect();
    for name in ["writer-system", "writer-user", "schema-hint", "few-shot", "few-shot-2"] {
        let reference = json!(format!("prompt:conformance.prompt.{name}@1.0.0"));
        assert!(resolved.iter().any(|event| event["payload"]["resolved"] == reference), "{name}");
        assert!(composed.contains(&&reference), "{name}: {composed:?}");
    }
    assert_eq!(composed.len(), 5);
}

/// agent-channel-dispatch: without deployments a channel names nothing, and is refused instead of guessed.
#[test]
fn a_channel_is_refused_where_there_are_no_deployments() {
    let test_server = test_server();
    let definition = json!({
        "id": "by-channel", "name": "by channel", "version": "1", "edges": [], "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
        "nodes": [{"id": "n", "typeId": "core.identity", "name": "n", "position": {"x": 0, "y": 0}, "config": {},
                   "inputs": {}, "agent": {"agentId": "vendor.some.agent", "channel": "stable"}}],
    });
    let refused = test_server.web().post("/v1/workflows", definition).refused(400, "validation_error");
    assert!(refused.to_string().contains("/nodes/0/agent/channel"), "{refused}");
}

/// A fixture that leans on a pack or an agent that is not here is left out, and the host's own of that name stays.
#[test]
fn a_fixture_that_would_show_nothing_is_not_listed() {
    let here = tempfile::tempdir().unwrap();
    let fixtures = here.path().join("fixtures");
    std::fs::create_dir(&fixtures).unwrap();
    let plain = |id: &str, metadata: Value| {
        json!({"id": id, "name": id, "version": "1", "edges": [], "triggers": [], "variables": [], "settings": {},
            "metadata": metadata,
            "nodes": [{"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}]})
    };
    for definition in [
        plain("conformance-agent-pack-install", json!({"requiresInstalledPack": "vendor.not.here"})),
        plain("conformance-agent-pack-export", json!({"requiresWorkspaceAgent": "vendor.not.here.either"})),
        plain("conformance-agent-pack-handoff-schema-validation", json!({"requiresAgentId": "vendor.not.here.at-all"})),
        plain("conformance-of-ours", json!({"tags": ["conformance"]})),
    ] {
        let file = fixtures.join(format!("{}.json", definition["id"].as_str().unwrap()));
        std::fs::write(file, definition.to_string()).unwrap();
    }
    let host = conformance_host(here.path(), &["--workflows", fixtures.to_str().unwrap()]);
    let web = Web::new(&host.url, Some("alpha"));
    let listed = web.get("/.well-known/openwop").expect(200)["fixtures"].clone();
    let listed: Vec<&str> = listed.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert!(listed.contains(&"conformance-of-ours"), "{listed:?}");
    assert!(!listed.contains(&"conformance-agent-pack-install") && !listed.contains(&"conformance-agent-pack-export"));
    let own = web.get("/v1/workflows/conformance-agent-pack-handoff-schema-validation").expect(200);
    assert!(own["nodes"].as_array().unwrap().len() > 1, "{own}");
    for path in ["/v1/packs", "/v1/packs/export"] {
        web.get(path).refused(404, "not_found");
    }
    assert_eq!(host.stop(), 0);
}
