//! Which question an answer is for: a node asks one thing after the other, and nobody who answers twice, late or in
//! another's name answers the next.

use crate::support;

use baton_engine::{Command, Refusal, RefusalKind, snapshot};
use baton_model::RunStatus::{self, Completed, Failed, WaitingApproval};
use baton_model::{NodeId, RunId};
use serde_json::{Value, json};
use support::script::{self, News};
use support::{World, run, workflow};

fn unsure(decision: Value) -> Value {
    let mut decision = decision;
    decision["confidence"] = json!(0.3);
    decision
}

fn next() -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ["child"]})
}

/// A supervisor that decides this, turn by turn.
fn looped(script: Value, dispatch: Value) -> World {
    let nodes = [
        ("sup", "core.orchestrator.supervisor", json!({"mockDispatchPlan": script})),
        ("disp", "core.dispatch", dispatch),
    ];
    run(workflow(&nodes, &[("sup", "disp", Value::Null), ("disp", "sup", Value::Null)]))
}

/// The open question of a node, as everybody sees it.
fn open(world: &World, node: &str) -> String {
    let id = world.state.interrupt_at(&NodeId::new(node)).map(|open| open.interrupt_id.clone());
    id.unwrap_or_else(|| panic!("{node} asks nothing"))
}

fn accept_unnamed(world: &mut World, node: &str) -> Result<(), Refusal> {
    world.command(&script::resolve(&NodeId::new(node), json!({"action": "accept"}), "ann"))
}

fn accept(world: &mut World, node: &str, interrupt: &str) -> Result<(), Refusal> {
    let named = Command::Resolve {
        node: NodeId::new(node),
        interrupt: Some(interrupt.to_owned()),
        value: json!({"action": "accept"}),
        actor: baton_engine::Actor { subject: Some("ann".to_owned()) },
    };
    world.command(&named)
}

/// A late answer, and the question that it says is open.
fn late(result: Result<(), Refusal>) -> Option<String> {
    let refusal = result.unwrap_err();
    assert_eq!((refusal.kind, refusal.fault.code.as_str()), (RefusalKind::Conflict, "interrupt_already_resolved"));
    Some(refusal.fault.details?.get("openInterruptId")?.as_str()?.to_owned())
}

fn end_child(world: &mut World) {
    let child = world.child();
    world.tell(&child, News::Started);
    world.tell(&child, News::Ended(Completed));
}

#[test]
fn answering_twice_does_not_ratify_the_next_turn() {
    let mut world = looped(json!([unsure(next()), unsure(json!({"kind": "terminate"}))]), json!({}));
    let first = open(&world, "sup");
    assert_eq!(snapshot(&world.state).unwrap().interrupt.unwrap().interrupt_id, first);
    accept_unnamed(&mut world, "sup").unwrap();
    end_child(&mut world);
    let second = open(&world, "sup");
    assert_ne!(first, second);
    let before = world.log.len();
    assert_eq!(late(accept_unnamed(&mut world, "sup")), Some(second.clone()), "the double click");
    assert_eq!(late(accept(&mut world, "sup", &first)), Some(second.clone()), "the same, by name");
    assert_eq!((world.log.len(), world.status()), (before, WaitingApproval));
    // A process that folds the log again knows as much.
    world.state = world.refolded();
    assert_eq!(late(accept_unnamed(&mut world, "sup")), Some(second.clone()));
    accept(&mut world, "sup", &second).unwrap();
    assert_eq!(world.status(), Completed);
    for id in [&first, &second] {
        assert_eq!(late(accept(&mut world, "sup", id)), None, "the run is over, and so is the question");
    }
}

#[test]
fn a_late_answer_is_too_late_and_not_unknown() {
    let mut world = looped(json!([unsure(next()), next(), json!({"kind": "terminate"})]), json!({}));
    let first = open(&world, "sup");
    accept_unnamed(&mut world, "sup").unwrap();
    end_child(&mut world);
    // Turn 2 was sure, so the supervisor asks nothing any more; its worker is under way.
    assert_eq!(world.status(), RunStatus::Running);
    assert_eq!(late(accept_unnamed(&mut world, "sup")), None);
    assert_eq!(late(accept(&mut world, "sup", &first)), None);
    for never in ["disp", "nobody"] {
        let refusal = accept_unnamed(&mut world, never).unwrap_err();
        assert_eq!((refusal.kind, refusal.fault.code.as_str()), (RefusalKind::NotFound, "interrupt_not_found"));
    }
}

#[test]
fn every_event_of_a_question_has_its_name() {
    let mut world = looped(json!([unsure(json!({"kind": "terminate"}))]), json!({}));
    let id = open(&world, "sup");
    accept(&mut world, "sup", &id).unwrap();
    let kinds = ["node.suspended", "interrupt.requested", "approval.requested", "node.resumed", "interrupt.resolved"];
    for kind in kinds {
        assert_eq!(world.payloads(kind)[0]["interruptId"], json!(id), "{kind}");
    }
}

#[test]
fn names_of_strangers_answer_nothing() {
    let mut world = run(workflow(&[("gate", "core.approvalGate", json!({}))], &[]));
    let id = open(&world, "gate");
    let long = id.repeat(100_000);
    for odd in ["", " ", "int:gate:2", "int:other:1", "INT:GATE:1", "int:gate:1\0", "int:gate:1 ", "…\u{202e}", &long]
    {
        assert_eq!(late(accept(&mut world, "gate", odd)), Some(id.clone()), "{:.20}", odd);
    }
    assert_eq!(world.status(), WaitingApproval);
    accept(&mut world, "gate", &id).unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn a_vote_leaves_the_first_question_open_for_whoever_names_none() {
    let mut world = run(workflow(&[("gate", "core.approvalGate", json!({"requiredApprovals": 2}))], &[]));
    for who in ["ann", "ben"] {
        world.command(&script::resolve(&NodeId::new("gate"), json!({"action": "accept", "voter": who}), who)).unwrap();
    }
    assert_eq!(world.status(), Completed);
}

#[test]
fn a_question_that_nobody_answered_was_one_too() {
    let mut flow = workflow(&[("gate", "core.approvalGate", json!({}))], &[]);
    flow["nodes"][0]["settings"] = json!({"timeout": 100, "maxRetries": 1, "retryDelayMs": 10});
    let mut world = run(flow);
    let first = open(&world, "gate");
    world.wait(100);
    world.wait(10);
    let second = open(&world, "gate");
    assert_ne!(first, second, "another attempt asks another question");
    // Whoever answers now may still mean the first.
    assert_eq!(late(accept(&mut world, "gate", &first)), Some(second.clone()));
    assert_eq!(late(accept_unnamed(&mut world, "gate")), Some(second.clone()));
    accept(&mut world, "gate", &second).unwrap();
    assert_eq!(world.status(), Completed);

    let mut expired = run(workflow(&[("gate", "core.approvalGate", json!({"timeoutMs": 50}))], &[]));
    let id = open(&expired, "gate");
    expired.wait(50);
    assert_eq!(expired.status(), Failed);
    assert_eq!(late(accept(&mut expired, "gate", &id)), None);
    assert_eq!(late(accept_unnamed(&mut expired, "gate")), None);
}

#[test]
fn an_answer_to_a_cancelled_run_hears_of_the_cancellation() {
    let mut world = looped(json!([unsure(next()), unsure(json!({"kind": "terminate"}))]), json!({}));
    let id = open(&world, "sup");
    world.cancel();
    for result in [accept(&mut world, "sup", &id), accept_unnamed(&mut world, "sup")] {
        assert_eq!(result.unwrap_err().fault.code, "interrupt_cancelled");
    }
}

#[test]
fn a_branch_keeps_the_names_of_its_source_and_its_own_count() {
    let mut world = looped(json!([unsure(next()), unsure(json!({"kind": "terminate"}))]), json!({}));
    accept_unnamed(&mut world, "sup").unwrap();
    end_child(&mut world);
    let second = open(&world, "sup");
    let origin = crate::branch::origin(&world.state, world.log.len(), Default::default());
    world.state = world.refolded().branch(RunId::new("run_branch"), &origin);
    assert_eq!(late(accept_unnamed(&mut world, "sup")), Some(second.clone()));
    accept(&mut world, "sup", &second).unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn runs_of_earlier_rules_are_answered_as_they_were() {
    let mut world = looped(json!([unsure(next()), unsure(json!({"kind": "terminate"}))]), json!({}));
    world.under_rule(3);
    accept_unnamed(&mut world, "sup").unwrap();
    end_child(&mut world);
    let second = open(&world, "sup");
    assert_eq!(late(accept(&mut world, "sup", "int:sup:1")), Some(second), "a name counts under any rule");
    accept_unnamed(&mut world, "sup").unwrap();
    assert_eq!(world.status(), Completed);
    let requested = world.payloads("interrupt.requested");
    assert_eq!(requested[1].get("interruptId"), None, "what is on old logs comes out as it was: {requested:?}");
}
