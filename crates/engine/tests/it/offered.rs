//! Whatever a question offers is taken, by every name under which it is offered, and a question about a held decision
//! shows the decision.

use crate::budgets::{bounded, short, unpaid, waiting};
use crate::support;

use baton_model::RunStatus::Completed;
use baton_model::budget::Dimension;
use baton_model::event::{Escalation, EscalationInterrupt};
use serde_json::{Value, json};
use support::agents::{calling, one, started, unknown, wants};
use support::script::News;
use support::{World, plan, run, start_command, workflow};

fn unsure() -> Value {
    json!({"kind": "terminate", "reason": "enough", "confidence": 0.3})
}

fn held(interrupt: EscalationInterrupt) -> World {
    let config = json!({"mockDispatchPlan": [unsure()]});
    let nodes = [("sup", "core.orchestrator.supervisor", config), ("disp", "core.dispatch", json!({}))];
    let flow = workflow(&nodes, &[("sup", "disp", Value::Null), ("disp", "sup", Value::Null)]);
    let start = {
        let mut start = start_command(json!({}));
        start.settings.escalation = Box::new(Escalation { interrupt, ..Escalation::default() });
        start
    };
    World::started(plan(flow), start)
}

fn merge(nodes: &[(&str, &str, Value)], edges: &[(&str, &str, Value)]) -> World {
    let mut world = run(workflow(nodes, edges));
    let child = world.child();
    world.tell(&child, News::Started);
    world.tell(&child, News::Ended(Completed));
    world
}

/// What is asked, the node that asks, and a run that stands there.
type Asks = (&'static str, &'static str, fn() -> World);

/// Every kind of question that a run can ask, with whoever asks it.
fn every_kind() -> Vec<Asks> {
    const ALL: [&str; 5] = ["accept", "reject", "refine", "edit-accept", "ask"];
    vec![
        ("a gate", "gate", || run(workflow(&[("gate", "core.approvalGate", json!({"actions": ALL}))], &[]))),
        ("an interrupt", "ask", || {
            let config = json!({"kind": "approval", "data": {"title": "?", "actions": ALL}});
            run(workflow(&[("ask", "core.interrupt", config)], &[]))
        }),
        ("a clarification", "ask", || {
            let config = json!({"questions": [{"id": "q", "question": "?", "schema": {"enum": ["a", "b"]}}]});
            run(workflow(&[("ask", "core.clarificationGate", config)], &[]))
        }),
        ("held, as approval", "sup", || held(EscalationInterrupt::Approval)),
        ("held, as clarification", "sup", || held(EscalationInterrupt::Clarification)),
        ("held, as our own", "sup", || held(EscalationInterrupt::Vendor)),
        ("an unsure supervisor", "sup", || {
            let config = json!({"mockConfidence": 0.5, "mockPendingDecision": {"kind": "terminate"}});
            let nodes = [("sup", "core.orchestrator.supervisor", config), ("disp", "core.dispatch", json!({}))];
            run(workflow(&nodes, &[]))
        }),
        ("an unsure agent", "mock", || {
            let config = json!({"mockDecision": {"decision": {"go": 1}, "confidence": 0.5}});
            run(workflow(&[("mock", "core.conformance.mock-agent", config)], &[]))
        }),
        ("a merge", "disp", || {
            let plan = json!({"mockDispatchPlan": [{"kind": "next-worker", "nextWorkerIds": ["child"]}]});
            let gate = json!({"outputMapping": {"result": "result"}, "outputAttestation": {"requireApproval": true}});
            let nodes = [("sup", "core.orchestrator.supervisor", plan), ("disp", "core.dispatch", gate)];
            merge(&nodes, &[("sup", "disp", Value::Null), ("disp", "sup", Value::Null)])
        }),
        ("a sub-workflow's merge", "call", || {
            let config = json!({
                "workflowId": "child", "outputMapping": {"result": "result"}, "outputAttestation": {"requireApproval": true}
            });
            merge(&[("call", "core.subWorkflow", config)], &[])
        }),
        ("a budget", "ask", || {
            let mut world = waiting(bounded(json!({"maxTokens": 100}), json!({})));
            let command = unpaid(&world, short(Dimension::Tokens, 100, 100, 40, true));
            world.command(&command).unwrap();
            world
        }),
        ("a call in doubt", "work", || {
            let (mut world, call) = calling("mcp:mail");
            world.returns(&call, unknown());
            world
        }),
        ("an agent's question", "work", || {
            let mut world = started(one(support::agents::FREE, json!({}), json!({})));
            let payload = json!({"questions": [{"id": "q", "question": "?", "schema": {"enum": ["x"]}}]});
            let envelope = json!({"type": "clarification.request", "payload": payload});
            world.says(wants(&[("openwop:envelope", envelope)]));
            world
        }),
    ]
}

/// What is offered, wherever a client may find it, as answers.
fn offered(world: &World) -> Vec<Value> {
    let requested = &world.payloads("interrupt.requested")[0];
    let data = &requested["data"];
    let subject = data.get("artifactData").or_else(|| data.get("decision"));
    let subject = subject.or_else(|| data.pointer("/questions/0/schema/default")).cloned().unwrap_or(json!({}));
    let words = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut actions = words(data.get("actions"));
    actions.extend(words(requested.pointer("/resumeSchema/properties/action/enum")));
    actions.extend(
        world.payloads("approval.requested").first().map(|event| words(event.get("actions"))).into_iter().flatten(),
    );
    if requested["kind"] == "low-confidence" {
        actions.extend(["accept", "reject", "edit-accept"].map(Value::from));
    }
    let said = |action: Value| {
        json!({
            "action": action, "editedArtifactData": subject, "refineFeedback": {"scope": "whole", "text": "shorter"},
            "feedback": "as it should be",
        })
    };
    let mut answers: Vec<Value> = actions.into_iter().map(said).collect();
    if let Some(question) = data.pointer("/questions/0") {
        let schema = &question["schema"];
        let choices = words(schema.get("enum").or_else(|| schema.pointer("/anyOf/0/enum")));
        let id = question["id"].as_str().unwrap();
        for choice in choices.into_iter().chain(schema.get("default").cloned()) {
            answers.push(json!({"answers": {id: choice}}));
        }
    }
    answers
}

#[test]
fn every_action_that_is_offered_is_taken() {
    let mut walked = 0;
    for (kind, node, make) in every_kind() {
        let answers = offered(&make());
        assert!(!answers.is_empty(), "{kind} offers nothing");
        for answer in answers {
            let mut world = make();
            let taken = world.answer(node, answer.clone());
            assert!(taken.is_ok(), "{kind} refuses {answer}: {taken:?}");
            walked += 1;
        }
    }
    assert!(walked > 40, "{walked}");
}

#[test]
fn what_is_not_offered_is_not_taken() {
    for (kind, node, make) in every_kind() {
        for bad in [json!({"action": "nonsense"}), json!({"action": "timeout"}), json!({}), json!(null)] {
            let mut world = make();
            let refused = world.answer(node, bad.clone());
            // A mock agent takes whatever it is told in place of its own answer.
            if kind != "an unsure agent" || bad.get("action").is_some() {
                assert_eq!(
                    refused.map_err(|refusal| refusal.fault.code),
                    Err("validation_error".to_owned()),
                    "{kind}, {bad}"
                );
            }
        }
    }
}

#[test]
fn a_held_decision_is_shown_whatever_kind_of_question_holds_it() {
    for interrupt in [EscalationInterrupt::Approval, EscalationInterrupt::Clarification, EscalationInterrupt::Vendor] {
        let mut world = held(interrupt);
        let open = baton_engine::snapshot(&world.state).unwrap().interrupt.unwrap();
        let shown = open.data.get("artifactData").or_else(|| open.data.pointer("/questions/0/schema/default"));
        assert_eq!(shown, Some(&unsure()), "{interrupt:?}");
        if interrupt == EscalationInterrupt::Clarification {
            let words = open.data["questions"][0]["question"].as_str().unwrap();
            assert!(words.contains("0.30") && words.contains("terminate, because \"enough\""), "{words}");
            let asked = &world.payloads("clarification.requested")[0]["questions"][0];
            assert_eq!(asked["question"], words, "and whoever reads the older event sees it too");
        }
        world.answer("sup", json!({"action": "accept"})).unwrap();
        assert_eq!(world.payloads("runOrchestrator.decided")[0]["decision"], unsure(), "{interrupt:?}");
    }
}

#[test]
fn a_long_decision_is_cut_in_words_and_whole_in_its_schema() {
    let reason = "because ".repeat(1000);
    let wanted = json!({"kind": "terminate", "reason": reason, "confidence": 0.1});
    let config = json!({"mockDispatchPlan": [wanted]});
    let nodes = [("sup", "core.orchestrator.supervisor", config), ("disp", "core.dispatch", json!({}))];
    let flow = workflow(&nodes, &[("sup", "disp", Value::Null), ("disp", "sup", Value::Null)]);
    let interrupt = EscalationInterrupt::Clarification;
    let start = {
        let mut start = start_command(json!({}));
        start.settings.escalation = Box::new(Escalation { interrupt, ..Escalation::default() });
        start
    };
    let world = World::started(plan(flow), start);
    let question = &world.payloads("interrupt.requested")[0]["data"]["questions"][0];
    assert!(question["question"].as_str().unwrap().chars().count() < 700);
    assert_eq!(question["schema"]["default"], wanted);
}
