//! Nodes that need something of their model: who is asked in the end, and what is said about it.

use crate::support;

use baton_engine::{Plan, snapshot};
use baton_model::{ModelChoice, ModelClass, ModelPins, RunStatus};
use serde_json::{Value, json};
use support::agents::{FREE, features, one as agent, started_with};
use support::models::{CALL, asking, config, said, valid};
use support::{World, schemas, start_command, workflow};

fn choice(name: &str) -> ModelChoice {
    ModelChoice::read(name).unwrap()
}

/// What this host knows of models.
fn pins() -> ModelPins {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    ModelPins {
        classes: [(ModelClass::General, choice("somewhere/large")), (ModelClass::Coding, choice("mock/coder"))].into(),
        offers: [
            ("somewhere/large".to_owned(), words(&["reasoning"])),
            ("mock/able".to_owned(), words(&["reasoning", "structured-output"])),
            ("mock/coder".to_owned(), words(&[])),
        ]
        .into(),
    }
}

fn begun(definition: Value, configurable: Value) -> World {
    let configurable = configurable.as_object().unwrap().clone();
    started_with(definition, {
        let mut start = start_command(json!({"text": "Do it."}));
        start.settings.models = Box::new(pins());
        start.settings.configurable = configurable;
        start
    })
}

/// A node that asks for `{"valid": boolean}` and names no model, with these settings.
fn call(more: Value) -> Value {
    let mut settings = config();
    for name in ["provider", "model"] {
        settings.as_object_mut().unwrap().remove(name);
    }
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asking(workflow(&[("ask", CALL, settings)], &[]))
}

fn asked(world: &World) -> (String, String) {
    let call = world.call();
    (call.request.semantic.provider.clone(), call.request.semantic.model.clone())
}

fn pair(name: &str) -> (String, String) {
    let choice = choice(name);
    (choice.provider, choice.model)
}

#[test]
fn a_node_asks_what_it_names_else_what_the_run_names_else_what_the_host_has() {
    for (settings, configurable, expected) in [
        (json!({}), json!({}), "somewhere/large"),
        (json!({"modelClass": "coding"}), json!({}), "mock/coder"),
        (json!({}), json!({"ai.provider": "Mock", "ai.model": "m"}), "mock/m"),
        (json!({}), json!({"ai": {"model": "m"}}), "somewhere/m"),
        (json!({}), json!({"model": "old"}), "somewhere/old"),
        (json!({"provider": "MOCK", "model": "mine"}), json!({"ai.provider": "x", "ai.model": "m"}), "mock/mine"),
        (json!({"model": "mine"}), json!({"ai.provider": "x"}), "x/mine"),
    ] {
        let world = begun(call(settings.clone()), configurable);
        assert_eq!(asked(&world), pair(expected), "{settings}");
    }
}

#[test]
fn a_model_that_can_do_it_is_asked_without_a_word() {
    let mut world = begun(call(json!({"requiredModelCapabilities": ["reasoning"]})), json!({}));
    assert_eq!(asked(&world), pair("somewhere/large"));
    world.says(valid());
    assert_eq!(world.status(), RunStatus::Completed);
    assert!(!world.types().iter().any(|kind| kind.starts_with("model.")), "{:?}", world.types());
}

#[test]
fn another_model_is_asked_instead_and_the_log_says_so_first() {
    let needs = json!({
        "requiredModelCapabilities": ["reasoning", "structured-output"],
        "fallbackModel": {"provider": "MOCK", "model": "able"},
    });
    let mut world = begun(call(needs.clone()), json!({}));
    assert_eq!(asked(&world), pair("mock/able"));
    world.says(valid());
    let substituted = json!({
        "nodeId": "ask", "originalProvider": "somewhere", "originalModel": "large",
        "fallbackProvider": "mock", "fallbackModel": "able", "missingCapabilities": ["structured-output"],
    });
    assert_eq!(world.payloads("model.capability.substituted"), std::slice::from_ref(&substituted));
    assert_eq!(schemas::payload_violation("model.capability.substituted", &substituted), None);
    assert_eq!(world.types()[1..4], ["node.started", "model.capability.substituted", "provider.usage"]);
    // An agent is no different, and says which model it works with.
    let mut world = begun(agent(FREE, needs, json!({})), json!({"ai.provider": "somewhere", "ai.model": "large"}));
    assert_eq!(asked(&world), pair("mock/able"));
    let started = &world.payloads("agent.invocation.started")[0];
    assert_eq!((&started["resolvedProvider"], &started["resolvedModel"]), (&json!("mock"), &json!("able")));
    assert_eq!(world.types()[1..4], ["node.started", "model.capability.substituted", "agent.invocation.started"]);
    world.says(said("Done."));
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn where_nobody_can_do_it_nobody_is_asked() {
    for (fallback, attempted) in
        [(None, false), (Some("mock/coder"), true), (Some("mock/nobody"), true), (Some("elsewhere/able"), true)]
    {
        let mut needs = json!({"requiredModelCapabilities": ["structured-output"]});
        if let Some(name) = fallback {
            needs["fallbackModel"] = json!(choice(name));
        }
        let chosen = json!({"ai.provider": "somewhere", "ai.model": "large"});
        for definition in [call(needs.clone()), agent(FREE, needs.clone(), json!({"maxRetries": 3}))] {
            let world = begun(definition, chosen.clone());
            let insufficient = &world.payloads("model.capability.insufficient")[0];
            assert_eq!(insufficient["missingCapabilities"], json!(["structured-output"]));
            assert_eq!(
                (&insufficient["model"], &insufficient["fallbackAttempted"]),
                (&json!("large"), &json!(attempted))
            );
            assert_eq!(schemas::payload_violation("model.capability.insufficient", insufficient), None);
            let kinds = ["run.started", "node.started", "model.capability.insufficient", "node.failed", "run.failed"];
            assert_eq!(world.types(), kinds, "no bracket, no call, no other attempt");
            assert_eq!(world.error_code(), Some("capability_not_provided"));
            let error = snapshot(&world.state).unwrap().error.unwrap();
            assert!(error.message.contains("somewhere/large") && error.message.contains("structured-output"));
        }
    }
}

#[test]
fn a_supervisor_needs_a_model_like_anybody_else() {
    let needs = json!({"agentId": support::agents::PLANNER, "requiredModelCapabilities": ["telepathy"]});
    let nodes = [("lead", "core.orchestrator.supervisor", needs), ("hand", "core.dispatch", json!({}))];
    let world = begun(workflow(&nodes, &[]), json!({"ai.provider": "mock", "ai.model": "able"}));
    assert_eq!(world.error_code(), Some("capability_not_provided"));
    assert_eq!(world.payloads("model.capability.insufficient").len(), 1);
    assert!(world.question().is_none() && world.payloads("runOrchestrator.decided").is_empty());
}

#[test]
fn what_a_plan_asks_and_needs_can_be_looked_up() {
    let needs = json!({
        "requiredModelCapabilities": ["structured-output"], "fallbackModel": {"provider": "mock", "model": "able"},
    });
    let plan = Plan::compile(call(needs), features()).unwrap();
    assert_eq!(plan.model_nodes().collect::<Vec<_>>(), [("ask", ModelClass::General)]);
    assert_eq!(plan.model_needs("ask").unwrap().required, ["structured-output"]);
    let models: Vec<ModelChoice> = plan.models(&serde_json::Map::new(), &Default::default(), &pins()).collect();
    assert_eq!(models, [choice("mock/able")], "the one that is asked in the end");
}
