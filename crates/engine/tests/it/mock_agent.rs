//! `core.conformance.mock-agent`: the events of an agent in their order, and no agent.

use crate::support;

use baton_engine::{Features, Plan, snapshot};
use baton_model::RunStatus;
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{features, plan};
use support::fixtures::fixture;
use support::second::second;
use support::{World, start_command, stored, workflow};

const MOCK: &str = "core.conformance.mock-agent";

fn definition(config: Value) -> Value {
    workflow(&[("mock", MOCK, config)], &[])
}

fn configured(config: Value, configurable: Value) -> World {
    let configurable = configurable.as_object().unwrap().clone();
    World::started(plan(definition(config)), {
        let mut start = start_command(json!({}));
        start.settings.configurable = configurable;
        start
    })
}

fn played(config: Value) -> World {
    configured(config, json!({}))
}

fn everything() -> Value {
    json!({
        "mockReasoning": {"summary": "s", "trace": "t", "tokenCount": 3, "streamChunks": ["One. ", "Two."]},
        "mockToolCalls": [
            {"toolId": "x:echo", "arguments": {"x": 1}, "result": {"x": 1}, "durationMs": 1},
            {"toolId": "x:echo", "error": {"error": "broken", "message": "No."}},
            {"toolId": "x:echo", "result": null},
        ],
        "mockHandoff": {"toAgentId": "core.other", "reason": "tired", "context": {"k": 1}},
        "mockDecision": {"decision": {"next": "done"}, "confidence": 1, "reasoning": "because"},
    })
}

#[test]
fn the_order_of_events_is_fixed() {
    let world = played(everything());
    assert_eq!(
        world.types(),
        [
            "run.started",
            "node.started",
            "agent.reasoning.delta",
            "agent.reasoning.delta",
            "agent.reasoned",
            "agent.toolCalled",
            "agent.toolReturned",
            "agent.toolCalled",
            "agent.toolReturned",
            "agent.toolCalled",
            "agent.toolReturned",
            "agent.handoff",
            "agent.decided",
            "node.completed",
            "run.completed",
        ]
    );
    let deltas = world.payloads("agent.reasoning.delta");
    assert_eq!(deltas.iter().map(|delta| delta["sequence"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(world.payloads("agent.reasoned")[0]["reasoning"], "One. Two.", "the whole is what the pieces make");
    let returned = world.payloads("agent.toolReturned");
    assert_eq!((&returned[0]["outcome"], &returned[0]["durationMs"]), (&json!({"x": 1}), &json!(1)));
    assert_eq!(returned[1]["error"], json!({"code": "broken", "message": "No."}));
    assert_eq!(returned[2].get("outcome"), Some(&Value::Null));
    assert_eq!(world.payloads("agent.handoff")[0]["toAgentId"], "core.other");
    assert_eq!(
        world.payloads("agent.decided")[0],
        json!({"agentId": "host:mock-agent:mock", "decision": {"next": "done"}, "confidence": 1.0})
    );
    assert_eq!(world.payloads("node.completed"), [json!({"nodeId": "mock"})], "it has no outputs");
    assert_eq!(snapshot(&world.state).unwrap().agent.unwrap().agent_id, "core.other", "who took over works now");
    Audit::check(&world.log);
    let log: Vec<_> = world.log.iter().map(stored).collect();
    let again = second(&world.state.run, world.state.plan(), &log, 0, 3);
    assert_eq!((again.difference, again.log.len()), (None, log.len()));
}

#[test]
fn who_it_is_and_how_much_it_says() {
    let id = |world: &World| world.payloads("agent.reasoned")[0]["agentId"].clone();
    assert_eq!(id(&played(json!({"mockReasoning": true}))), "host:mock-agent:mock");
    assert_eq!(id(&played(json!({"mockReasoning": true, "agentId": "core.named"}))), "core.named");
    let mut pinned = definition(json!({"mockReasoning": true}));
    pinned["nodes"][0]["agent"] = json!({"agentId": "core.pinned"});
    assert_eq!(id(&World::started(plan(pinned), start_command(json!({})))), "core.pinned");
    let thinking = json!({"mockReasoning": {"summary": "short", "trace": "long"}});
    for (verbosity, said) in [("summary", Some("short")), ("full", Some("long")), ("off", None)] {
        let world = configured(thinking.clone(), json!({"reasoningVerbosity": verbosity}));
        let reasoned = world.payloads("agent.reasoned");
        assert_eq!(reasoned.first().map(|event| event["reasoning"].as_str().unwrap()), said);
    }
    let world = configured(everything(), json!({"reasoningVerbosity": "off"}));
    assert!(world.payloads("agent.reasoning.delta").is_empty());
    assert!(played(json!({})).agent_types().is_empty(), "nothing is said by one that is told nothing");
}

#[test]
fn one_that_is_not_sure_waits_for_a_human() {
    let decided = |confidence: f64| json!({"mockDecision": {"decision": {"go": 1}, "confidence": confidence}});
    assert_eq!(played(decided(0.7)).status(), RunStatus::Completed, "equal is enough");
    let mut world = played(decided(0.5));
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    let suspended = &world.payloads("node.suspended")[0];
    assert_eq!(
        (&suspended["reason"], &suspended["threshold"], &suspended["observed"], &suspended["agentId"]),
        (&json!("low-confidence"), &json!(0.7), &json!(0.5), &json!("host:mock-agent:mock"))
    );
    assert_eq!(world.payloads("interrupt.requested")[0]["data"]["decision"], json!({"go": 1}));
    world.answer("mock", json!({"go": 1})).unwrap();
    assert_eq!((world.status(), world.payloads("node.completed").len()), (RunStatus::Completed, 1));
    Audit::check(&world.log);
    let mut world = played(json!({"mockDecision": {"decision": 1, "confidence": 1}, "mockConfidence": 0.1}));
    assert_eq!(world.payloads("agent.decided")[0]["confidence"], 0.1, "the one laid over counts");
    world.answer("mock", json!({"action": "reject"})).unwrap();
    assert_eq!(world.error_code(), Some("approval_rejected"));
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let table = [
        (json!({"mockToolCalls": [{"toolId": "x", "result": 1}, {"toolId": "x"}]}), "mockToolCalls/1"),
        (json!({"mockToolCalls": [{"toolId": "x", "result": 1, "error": {"error": "e"}}]}), "mockToolCalls/0"),
        (json!({"mockToolCalls": [{"toolId": "", "result": 1}]}), "mockToolCalls/0/toolId"),
        (json!({"mockToolCalls": [{"result": 1}]}), "mockToolCalls"),
        (json!({"mockReasoning": {"trace": "t"}}), "mockReasoning"),
        (json!({"mockReasoning": {"summary": "s", "more": 1}}), "mockReasoning"),
        (json!({"mockHandoff": {"reason": "r"}}), "mockHandoff"),
        (json!({"mockHandoff": {"toAgentId": "x"}}), "mockHandoff/toAgentId"),
        (json!({"mockDecision": {"confidence": 1}}), "mockDecision"),
        (json!({"mockDecision": {"decision": 1, "confidence": 2}}), "mockDecision/confidence"),
        (json!({"mockConfidence": -1}), "mockConfidence"),
        (json!({"agentId": "x"}), "agentId"),
        (json!({"mockPlan": []}), "mockPlan"),
    ];
    for (config, place) in table {
        let problems = Plan::compile(definition(config.clone()), features()).map(|_| ()).expect_err("refused");
        assert_eq!(problems[0].pointer, format!("/nodes/0/config/{place}"), "{config}");
    }
    let problems = Plan::compile(definition(json!({})), Features::default()).map(|_| ()).expect_err("refused");
    assert_eq!(problems[0].pointer, "/nodes/0/typeId", "a test's node is no production node");
}

/// The protocol's own workflows.
#[test]
fn the_protocols_fixtures_do_what_their_scenarios_say() {
    let Some(world) = fixture("conformance-agent-reasoning") else { return };
    assert_eq!(world.status(), RunStatus::Completed);
    assert_eq!(
        world.agent_types(),
        ["agent.reasoned", "agent.toolCalled", "agent.toolReturned", "agent.handoff", "agent.decided"]
    );
    assert!(
        world.payloads("agent.reasoned").iter().all(|event| event["agentId"] == "core.conformance.reasoning-agent")
    );
    let world = fixture("conformance-agent-reasoning-streaming").unwrap();
    let pieces: String = world
        .payloads("agent.reasoning.delta")
        .iter()
        .map(|delta| delta["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        world.agent_types(),
        ["agent.reasoning.delta", "agent.reasoning.delta", "agent.reasoning.delta", "agent.reasoned"]
    );
    assert_eq!(world.payloads("agent.reasoned")[0]["reasoning"], pieces);
    let world = fixture("conformance-agent-low-confidence").unwrap();
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    assert_eq!(world.payloads("node.suspended")[0]["reason"], "low-confidence");
    for (id, agent) in [
        ("conformance-agent-identity", "core.conformance.identity-agent"),
        ("conformance-agent-pack-provenance", "core.conformance.pack-installed-agent"),
    ] {
        let view = snapshot(&fixture(id).unwrap().state).unwrap().agent.unwrap();
        assert_eq!(view.agent_id, agent);
        assert_eq!(view.source_manifest_id.is_some(), id.ends_with("provenance"));
    }
}
