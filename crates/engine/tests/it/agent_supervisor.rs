//! A supervisor that is a live agent: an invocation in every turn, two rules about confidence that never mix, and
//! nothing decided before a human has ratified it.

use crate::support;

use baton_engine::{Start, snapshot};
use baton_model::RunStatus::{Completed, Failed, Running, WaitingApproval, WaitingClarification, WaitingInput};
use baton_model::event::EscalationInterrupt;
use baton_model::{Event, ModelReply, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{ENDER, PLANNER, ok, plan, wants};
use support::models::{asked, refused, said};
use support::script::News;
use support::{World, start_command, workflow};

fn definition(extra: Value) -> Value {
    let mut config = json!({"agentId": PLANNER});
    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    workflow(&[("sup", "core.orchestrator.supervisor", config), ("disp", "core.dispatch", json!({}))], &[])
}

fn looped() -> World {
    World::started(plan(definition(json!({}))), start_command(json!({})))
}

/// A supervisor's manifest has its say about what it decides, and whether it had is on the log.
#[test]
fn a_supervisor_keeps_what_its_manifest_promises() {
    let led_by = |agent: &str, rule: u32| {
        let mut world = World::started(plan(definition(json!({"agentId": agent}))), start_command(json!({})));
        world.under_rule(rule);
        world
    };
    let validated = |world: &World| world.payloads("agent.invocation.completed")[0].get("schemaValidated").cloned();
    // What the host asks for besides, and fields that are empty, are no matter of the manifest's.
    let end = json!({
        "kind": "terminate", "reason": "done", "nextWorkerIds": null, "prompt": null, "confidence": null,
        "reasoning": "Nothing is left.", "agentConfidence": 0.9
    });
    let mut world = led_by(ENDER, 3);
    world.says(decides(next()));
    assert!(decisions(&world).is_empty() && world.payloads("agent.decided").is_empty());
    assert_eq!(world.payloads("envelope.retry.attempted").len(), 1);
    world.says(decides(end.clone()));
    assert_eq!(
        (world.status(), world.outcomes(), validated(&world)),
        (Completed, vec!["completed".into()], Some(json!(true)))
    );
    Audit::check(&world.log);
    // It is not taken whatever it says.
    let mut world = led_by(ENDER, 3);
    for _ in 0..3 {
        world.says(decides(next()));
    }
    assert_eq!((world.status(), world.error_code()), (Failed, Some("handoff_return_schema_violation")));
    assert_eq!((world.outcomes(), validated(&world)), (vec!["failed".into()], None));
    Audit::check(&world.log);
    // A manifest that promises nothing is not said to be kept.
    let mut world = led_by(PLANNER, 3);
    world.says(decides(end.clone()));
    assert_eq!((world.status(), validated(&world)), (Completed, None));
    // Logs from before go on as they began.
    let mut world = led_by(ENDER, 2);
    world.says(decides(next()));
    assert_eq!((decisions(&world).len(), validated(&world)), (1, Some(json!(true))));
}

fn decides(decision: Value) -> ModelReply {
    said(&decision.to_string())
}

fn next() -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ["w"]})
}

fn with(mut decision: Value, key: &str, value: impl Into<Value>) -> Value {
    decision[key] = value.into();
    decision
}

/// What was decided, turn by turn.
fn decisions(world: &World) -> Vec<(u64, Value)> {
    let decided = world.payloads("runOrchestrator.decided");
    decided.iter().map(|event| (event["iteration"].as_u64().unwrap(), event["decision"].clone())).collect()
}

fn worker_ends(world: &mut World) {
    let child = world.child();
    world.tell(&child, News::Started);
    world.tell(&child, News::Ended(RunStatus::Completed));
}

#[test]
fn every_turn_is_an_invocation_and_exactly_one_decision() {
    let mut world = looped();
    world.says(decides(with(next(), "reasoning", "First the worker.")));
    worker_ends(&mut world);
    let told = world.call().request.semantic.messages.last().unwrap().content().to_string();
    assert!(told.contains("children") && told.contains("decisions"), "turn 2 knows turn 1: {told}");
    world.says(decides(json!({"kind": "terminate", "reason": "done", "nextWorkerIds": null})));
    assert_eq!(world.status(), Completed);
    assert_eq!(decisions(&world), [(1, next()), (2, json!({"kind": "terminate", "reason": "done"}))]);
    assert_eq!(world.outcomes(), ["completed", "completed"]);
    let ids: Vec<Value> =
        world.payloads("agent.invocation.started").iter().map(|p| p["invocationId"].clone()).collect();
    assert_eq!(ids, ["run_test:sup:1:0", "run_test:sup:2:0"]);
    let turn: Vec<&str> = world.types().into_iter().skip(1).take(11).collect();
    assert_eq!(
        turn,
        [
            "node.started",
            "agent.invocation.started",
            "agent.promptResolved",
            "prompt.composed",
            "provider.usage",
            "agent.reasoned",
            "agent.decided",
            "agent.invocation.completed",
            "runOrchestrator.decided",
            "node.completed",
            "node.started",
        ]
    );
    assert_eq!(world.payloads("agent.reasoned")[0]["reasoning"], "First the worker.");
    let view = snapshot(&world.state).unwrap();
    assert_eq!(view.run_orchestrator.map(|agent| agent.agent_id), Some(PLANNER.to_owned()));
    assert_eq!(view.agent, None, "who decides is not who works");
    Audit::check(&world.log);
}

/// The agents' own rule and the decision's floor, side by side: which of them speaks, and how.
#[test]
fn two_rules_about_confidence_never_mix() {
    // The kind of question, the threshold, what was observed, and whether the decision's rule spoke.
    type Held = Option<(&'static str, f64, f64, bool)>;
    let table: [(Value, Held); 9] = [
        (next(), None),
        (with(next(), "confidence", 0.5), None),
        (with(next(), "agentConfidence", 0.7), None),
        // Between the two numbers only one rule speaks.
        (with(next(), "confidence", 0.6), None),
        (with(next(), "agentConfidence", 0.6), Some(("low-confidence", 0.7, 0.6, false))),
        (with(next(), "confidence", 0.4), Some(("approval", 0.5, 0.4, true))),
        (with(with(next(), "confidence", 0.9), "agentConfidence", 0.3), Some(("low-confidence", 0.7, 0.3, false))),
        // Both: one escalation, one question, the decision's.
        (with(with(next(), "confidence", 0.4), "agentConfidence", 0.3), Some(("approval", 0.5, 0.4, true))),
        (json!({"kind": "ask-user", "prompt": "?", "agentConfidence": 0.2}), Some(("low-confidence", 0.7, 0.2, false))),
    ];
    for (decision, held) in table {
        let mut world = looped();
        world.says(decides(decision.clone()));
        let Some((kind, threshold, observed, escalated)) = held else {
            assert_eq!((world.status(), decisions(&world).len()), (Running, 1), "{decision}");
            continue;
        };
        assert_eq!(world.status(), WaitingApproval, "{decision}");
        assert_eq!(decisions(&world), [], "nothing is decided before it is ratified: {decision}");
        assert!(world.payloads("core.workflowChain.event").is_empty());
        assert_eq!(world.payloads("core.workflowChain.confidence-escalated").len(), usize::from(escalated));
        let suspended = &world.payloads("node.suspended")[0];
        assert_eq!((&suspended["kind"], &suspended["reason"]), (&json!(kind), &json!("low-confidence")));
        assert_eq!(
            (suspended["threshold"].as_f64(), suspended["observed"].as_f64()),
            (Some(threshold), Some(observed))
        );
        let unsure = decision["agentConfidence"].as_f64().is_some_and(|confidence| confidence < 0.7);
        assert_eq!(world.outcomes(), [if unsure { "escalated" } else { "completed" }], "{decision}");
        world.answer("sup", json!({"action": "accept"})).unwrap();
        assert_eq!(decisions(&world).len(), 1, "exactly one, at the same turn");
        assert_eq!(decisions(&world)[0].0, 1);
        assert_eq!(decisions(&world)[0].1["kind"], decision["kind"]);
        assert_eq!(world.payloads("agent.decided").len(), 1, "a bare ratification is nobody at work");
        world.cancel();
        Audit::check(&world.log);
    }
}

#[test]
fn what_a_human_may_say_about_a_held_decision() {
    let unsure = || with(next(), "agentConfidence", 0.1);
    let other = json!({"kind": "terminate"});
    for (value, decided) in [
        (json!({"action": "accept"}), Some(next())),
        (json!("accept"), Some(next())),
        (next(), Some(next())),
        (other.clone(), Some(other.clone())),
        (json!({"action": "edit-accept", "editedArtifactData": other}), Some(other.clone())),
        (json!({"action": "reject"}), None),
    ] {
        let mut world = looped();
        world.says(decides(unsure()));
        world.answer("sup", value.clone()).unwrap();
        match decided {
            Some(decision) => assert_eq!(decisions(&world), [(1, decision)], "{value}"),
            None => assert_eq!((world.status(), world.error_code()), (Failed, Some("approval_rejected"))),
        }
    }
    let mut world = looped();
    world.says(decides(unsure()));
    world.answer("sup", json!({"action": "refine", "refineFeedback": {"scope": "whole"}})).unwrap();
    assert_eq!(asked(&world.state).len(), 1, "the turn is taken again, by a new invocation");
    world.says(decides(next()));
    assert_eq!(decisions(&world), [(1, next())]);
    assert_eq!(world.outcomes(), ["escalated", "completed"]);
    world.cancel();
    Audit::check(&world.log);
}

#[test]
fn the_kind_of_question_is_the_operators_choice() {
    for (interrupt, status) in [
        (EscalationInterrupt::Approval, WaitingApproval),
        (EscalationInterrupt::Clarification, WaitingClarification),
        (EscalationInterrupt::Vendor, WaitingApproval),
    ] {
        let mut start = start_command(json!({}));
        start.settings.escalation.interrupt = interrupt;
        let mut world = World::started(plan(definition(json!({}))), start);
        world.says(decides(with(next(), "confidence", 0.1)));
        assert_eq!(world.status(), status);
        assert_eq!(decisions(&world), []);
    }
}

#[test]
fn a_held_decision_that_nobody_ratifies_is_rejected() {
    let mut world = World::started(plan(definition(json!({"escalationTimeoutMs": 50}))), start_command(json!({})));
    world.says(decides(with(next(), "agentConfidence", 0.1)));
    world.wait(50);
    assert_eq!((world.status(), world.error_code(), decisions(&world).len()), (Failed, Some("approval_rejected"), 0));
}

#[test]
fn an_answer_that_is_no_decision_is_asked_for_again_in_the_hosts_words() {
    let table = [
        (json!({"kind": "next-worker", "nextWorkerIds": []}), "names at least one worker"),
        (
            json!({"kind": "next-worker", "nextWorkerIds": ["sauce"], "nextWorkerInputs": [{}, {}]}),
            "one object for each worker",
        ),
        (json!({"kind": "ask-user", "reason": "sauce"}), "`prompt`"),
        (json!({"kind": "terminate", "reason": ""}), "`reason`"),
        (json!({"kind": "sauce"}), "breaks the schema's rule /properties/kind"),
        (json!({"kind": "terminate", "confidence": 3, "reason": "sauce"}), "/properties/confidence"),
        (json!({"kind": "terminate", "sauce": 1}), "/additionalProperties"),
    ];
    for (bad, why) in table {
        let mut world = looped();
        world.says(decides(bad.clone()));
        let retry = world.payloads("envelope.retry.attempted")[0].clone();
        assert!(retry["previousError"].as_str().unwrap().contains(why), "{bad}: {retry}");
        assert!(!retry.to_string().contains("sauce"));
        let nudge = world.call().request.semantic.messages.last().unwrap().content().to_string();
        assert!(nudge.contains("Your last answer could not be used") && !nudge.contains("sauce"), "{nudge}");
        world.says(decides(bad.clone()));
        world.says(decides(bad));
        assert_eq!((world.status(), world.error_code()), (Failed, Some("envelope_invalid")));
        assert_eq!((world.outcomes(), decisions(&world).len()), (vec!["failed".to_owned()], 0));
        Audit::check(&world.log);
    }
}

#[test]
fn what_a_turn_writes_shows_in_the_next_one_also_through_its_tools() {
    let mut world = looped();
    world.says(wants(&[
        ("openwop:memory.put", json!({"content": "Tea."})),
        ("openwop:memory.list", json!({})),
        ("openwop:workspace.put", json!({"path": "plan.md", "content": "Tea."})),
        ("openwop:workspace.get", json!({"path": "plan.md"})),
    ]));
    let seen = |world: &World, at: usize| world.payloads("agent.toolReturned")[at]["outcome"].clone();
    assert_eq!(
        (seen(&world, 1), seen(&world, 3)),
        (json!({"entries": []}), json!({"file": null})),
        "never in its own turn"
    );
    world.says(decides(next()));
    worker_ends(&mut world);
    let told = serde_json::to_string(&world.call().request.semantic.messages).unwrap();
    assert!(told.contains("Tea.") && told.contains("plan.md"), "{told}");
    world.says(wants(&[("openwop:memory.list", json!({})), ("openwop:workspace.get", json!({"path": "plan.md"}))]));
    assert_eq!(seen(&world, 4)["entries"][0]["content"], "Tea.");
    assert_eq!(seen(&world, 5)["file"]["content"], "Tea.");
}

#[test]
fn a_turn_may_use_tools_and_they_do_not_count_as_turns() {
    let mut start = start_command(json!({}));
    start.settings.max_loop_iterations = 1;
    let mut world = World::started(plan(definition(json!({}))), start);
    for _ in 0..3 {
        world.says(wants(&[("mcp:look", json!({}))]));
        let call = world.tool();
        world.returns(&call, ok(json!(1)));
    }
    world.says(decides(json!({"kind": "terminate"})));
    assert_eq!((world.status(), decisions(&world).len()), (Completed, 1));
    Audit::check(&world.log);
}

#[test]
fn an_agents_bad_day_is_tried_again_and_a_refusal_is_not() {
    let mut definition = definition(json!({}));
    definition["nodes"][0]["settings"] = json!({"maxRetries": 1, "retryDelayMs": 10, "timeout": 100});
    let fresh = || World::started(plan(definition.clone()), start_command(json!({})));
    let mut world = fresh();
    world.wait(100);
    assert_eq!((world.outcomes(), world.nodes_of("node.retried")), (vec!["failed".to_owned()], vec!["sup"]));
    world.wait(10);
    world.says(decides(json!({"kind": "terminate"})));
    assert_eq!((world.status(), decisions(&world).len()), (Completed, 1));
    Audit::check(&world.log);
    let mut world = fresh();
    world.says(refused());
    assert_eq!(
        (world.status(), world.error_code(), world.outcomes()),
        (Failed, Some("envelope_refusal"), vec!["refused".to_owned()])
    );
}

#[test]
fn a_supervisor_is_told_its_task_and_no_secret() {
    let mut definition = definition(json!({}));
    definition["nodes"][0]["inputs"] = json!({
        "goal": {"type": "static", "value": "Ship it."},
        "token": {"type": "variable", "variableName": "token"},
    });
    definition["variables"] = json!([
        {"name": "token", "type": "string", "defaultValue": "hunter2-hunter2", "sensitive": true},
        {"name": "topic", "type": "string", "defaultValue": "tides"}
    ]);
    let world = World::started(plan(definition.clone()), start_command(json!({})));
    let told = serde_json::to_string(&world.call().request.semantic).unwrap();
    assert!(told.contains("Ship it.") && told.contains("tides") && !told.contains("hunter2"), "{told}");
    // One whose input cannot be had starts and fails; above all it does not hang.
    definition["nodes"][0]["inputs"] = json!({"goal": {"type": "expression", "expression": "variables.nowhere.deep"}});
    let world = World::started(plan(definition), start_command(json!({})));
    assert_eq!((world.status(), world.error_code()), (Failed, Some("expression_error")));
}

#[test]
fn a_question_to_the_user_and_its_answer() {
    let mut world = World::started(plan(definition(json!({}))), Start { ..start_command(json!({})) });
    world.says(decides(json!({"kind": "ask-user", "prompt": "Which colour?"})));
    assert_eq!((world.status(), decisions(&world).len()), (WaitingInput, 1));
    world.answer("disp", json!({"answers": {"answer": "red"}})).unwrap();
    let told = serde_json::to_string(&world.call().request.semantic).unwrap();
    assert!(told.contains("red"), "the next turn knows it: {told}");
    world.says(decides(json!({"kind": "terminate"})));
    let starts = world.log.iter().filter(|record| matches!(record.event, Event::AgentInvocationStarted(_))).count();
    assert_eq!((world.status(), starts), (Completed, 2));
}
