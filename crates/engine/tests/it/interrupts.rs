//! Questions to people and systems: what counts as an answer, what it does, and what happens without one.

use crate::support;

use baton_engine::{Actor, Command, Refusal, RefusalKind, snapshot};
use baton_model::RunStatus::{Cancelled, Completed, Failed, WaitingApproval, WaitingExternal, WaitingInput};
use baton_model::{NodeId, RunId};
use serde_json::{Value, json};
use support::script;
use support::{World, run, workflow};

const NONE: Value = Value::Null;
const ALL_ACTIONS: [&str; 5] = ["accept", "reject", "refine", "edit-accept", "ask"];

fn gate(config: Value) -> World {
    run(workflow(&[("gate", "core.approvalGate", config), ("next", "core.noop", json!({}))], &[("gate", "next", NONE)]))
}

fn asking(type_id: &str, config: Value) -> World {
    run(workflow(&[("ask", type_id, config)], &[]))
}

fn vote(world: &mut World, who: &str, action: &str) -> Result<(), Refusal> {
    world.answer("gate", json!({"action": action, "voter": who}))
}

fn code(result: Result<(), Refusal>) -> (RefusalKind, String) {
    let refusal = result.unwrap_err();
    (refusal.kind, refusal.fault.code)
}

#[test]
fn a_gate_shows_what_it_waits_for() {
    let world = gate(json!({"title": "Ship it?", "actions": ["accept", "edit-accept"]}));
    assert_eq!(world.status(), WaitingApproval);
    assert_eq!(
        world.types(),
        ["run.started", "node.started", "node.suspended", "interrupt.requested", "approval.requested"]
    );
    let view = snapshot(&world.state).unwrap();
    assert_eq!(view.current_node_id, Some(NodeId::new("gate")));
    let interrupt = view.interrupt.unwrap();
    assert_eq!((interrupt.kind.as_str(), interrupt.key.as_str()), ("approval", "gate:1"));
    assert_eq!(interrupt.data["actions"], json!(["accept", "edit-accept"]));
    assert_eq!(interrupt.data["title"], "Ship it?");
    assert_eq!(world.payloads("approval.requested")[0]["actions"], json!(["accept", "edit"]));
}

#[test]
fn accepting_goes_on() {
    let mut world = gate(json!({}));
    world.answer("gate", json!({"action": "accept"})).unwrap();
    assert_eq!(world.status(), Completed);
    let after = world.types();
    assert_eq!(&after[5..9], ["node.resumed", "interrupt.resolved", "approval.received", "node.completed"]);
    assert_eq!(
        world.payloads("approval.received")[0],
        json!({"nodeId": "gate", "action": "accept", "decidedBy": "ann"})
    );
    assert_eq!(world.payloads("interrupt.resolved")[0]["outcome"], "accepted");
    assert_eq!(world.nodes_of("node.completed"), ["gate", "next"]);
}

#[test]
fn rejecting_fails_the_run_where_nobody_takes_it_up() {
    let mut world = gate(json!({}));
    world.answer("gate", json!({"action": "reject"})).unwrap();
    assert_eq!((world.status(), world.error_code()), (Failed, Some("approval_rejected")));
    assert_eq!(world.payloads("interrupt.resolved")[0]["outcome"], "rejected");
}

#[test]
fn a_rejection_can_be_taken_up_by_an_edge_or_a_port() {
    let nodes = [
        ("gate", "core.approvalGate", json!({"timeoutMs": 50})),
        ("next", "core.noop", json!({})),
        ("handler", "core.noop", json!({})),
    ];
    for (extra, failed) in [(json!({"triggerRule": "any_failed"}), true), (json!({"sourceOutput": "reject"}), false)] {
        for by_timeout in [false, true] {
            let mut world = run(workflow(&nodes, &[("gate", "next", NONE), ("gate", "handler", extra.clone())]));
            if by_timeout {
                world.wait(50);
            } else {
                world.answer("gate", json!({"action": "reject"})).unwrap();
            }
            assert_eq!(world.status(), Completed, "{extra} {by_timeout}");
            assert_eq!(world.nodes_of("node.failed").len(), usize::from(failed));
            assert!(world.nodes_of("node.completed").contains(&"handler"));
            assert_eq!(world.nodes_of("node.skipped"), ["next"]);
        }
    }
}

#[test]
fn refining_needs_to_say_what() {
    let mut world = gate(json!({"actions": ALL_ACTIONS}));
    for bad in [NONE, json!("more"), json!({}), json!({"scope": "half"}), json!({"scope": "items", "itemIds": [1]})] {
        let answer = world.answer("gate", json!({"action": "refine", "refineFeedback": bad}));
        assert_eq!(code(answer), (RefusalKind::Invalid, "validation_error".to_owned()), "{bad}");
    }
    assert_eq!(world.status(), WaitingApproval);
    let feedback = json!({"scope": "section", "sectionPath": "2.1", "tags": ["tone"], "text": "shorter"});
    world.answer("gate", json!({"action": "refine", "refineFeedback": feedback})).unwrap();
    assert_eq!(world.status(), Completed);
    let outputs = &world.payloads("node.completed")[0]["outputs"];
    assert_eq!((&outputs["action"], &outputs["refineFeedback"]), (&json!("refine"), &feedback));
    assert_eq!(world.payloads("interrupt.resolved")[0]["outcome"], "answered");
}

#[test]
fn editing_needs_the_edited_thing_which_may_be_null() {
    let mut world = gate(json!({"actions": ALL_ACTIONS}));
    assert_eq!(code(world.answer("gate", json!({"action": "edit-accept"}))).0, RefusalKind::Invalid);
    world.answer("gate", json!({"action": "edit-accept", "editedArtifactData": null})).unwrap();
    assert_eq!(world.status(), Completed);
    assert_eq!(world.payloads("approval.received")[0].get("editedArtifactData"), Some(&NONE));
    assert_eq!(world.payloads("interrupt.resolved")[0]["outcome"], "accepted");
}

#[test]
fn asking_back_keeps_the_gate_open() {
    let mut world = gate(json!({"actions": ALL_ACTIONS}));
    world.answer("gate", json!({"action": "ask", "feedback": "Which one?"})).unwrap();
    assert_eq!(world.status(), WaitingApproval);
    let asked = json!({"nodeId": "gate", "question": "Which one?", "askedBy": "ann"});
    assert_eq!(world.payloads("baton.approval.asked"), [asked]);
    world.answer("gate", json!({"action": "accept"})).unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn only_offered_actions_count_and_the_refusal_lists_them() {
    let mut world = gate(json!({"actions": ["accept"]}));
    let bad = [
        json!({"action": "reject"}),
        json!({"action": "timeout"}),
        json!({"action": 1}),
        json!({}),
        json!("accept"),
        NONE,
    ];
    for value in bad {
        assert_eq!(code(world.answer("gate", value.clone())).0, RefusalKind::Invalid, "{value}");
    }
    let refusal = world.answer("gate", json!({"action": "reject"})).unwrap_err();
    assert_eq!(refusal.fault.details.unwrap()["actions"], json!(["accept"]));
    assert_eq!(world.status(), WaitingApproval);
}

#[test]
fn the_older_words_still_work() {
    let table = [
        (json!({"decision": "approved"}), "accept", Completed),
        (json!({"decision": "rejected"}), "reject", Failed),
        (json!({"decision": "rejected", "feedback": "too long"}), "refine", Completed),
    ];
    for (value, action, status) in table {
        let mut world = gate(json!({"actions": ALL_ACTIONS}));
        world.answer("gate", value.clone()).unwrap();
        assert_eq!((world.payloads("approval.received")[0]["action"].as_str(), world.status()), (Some(action), status));
    }
    let mut world = gate(json!({"actions": ["accept", "edit"]}));
    world.answer("gate", json!({"action": "edit", "editedArtifactData": {}})).unwrap();
    assert_eq!(world.payloads("approval.received")[0]["action"], "edit-accept");
}

#[test]
fn a_quorum_counts_people_not_answers() {
    let mut world = gate(json!({"requiredApprovals": 2}));
    vote(&mut world, "ann", "accept").unwrap();
    vote(&mut world, "ann", "accept").unwrap();
    assert_eq!(world.status(), WaitingApproval);
    vote(&mut world, "ben", "accept").unwrap();
    assert_eq!(world.status(), Completed);
    assert_eq!(world.nodes_of("approval.received").len(), 3);
    assert_eq!(world.nodes_of("interrupt.resolved").len(), 1);
    assert_eq!(world.payloads("node.completed")[0]["outputs"]["decidedBy"], "quorum:2-of-2");
}

#[test]
fn one_veto_ends_a_quorum_unless_the_majority_decides() {
    let mut veto = gate(json!({"requiredApprovals": 3}));
    vote(&mut veto, "ann", "accept").unwrap();
    vote(&mut veto, "ben", "reject").unwrap();
    assert_eq!(veto.error_code(), Some("approval_rejected"));

    let mut majority = gate(json!({"requiredApprovals": 3, "rejectionPolicy": "majority"}));
    vote(&mut majority, "ann", "reject").unwrap();
    assert_eq!(majority.status(), WaitingApproval);
    vote(&mut majority, "ben", "reject").unwrap();
    assert_eq!(majority.error_code(), Some("approval_rejected"));
}

#[test]
fn a_second_vote_replaces_the_first() {
    let mut world = gate(json!({"requiredApprovals": 2, "rejectionPolicy": "majority"}));
    vote(&mut world, "ann", "reject").unwrap();
    vote(&mut world, "ann", "accept").unwrap();
    vote(&mut world, "ben", "reject").unwrap();
    assert_eq!(world.status(), WaitingApproval);
    vote(&mut world, "ben", "accept").unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn only_listed_approvers_may_decide() {
    let mut world = gate(json!({"approversList": ["ben"]}));
    assert_eq!(code(vote(&mut world, "ann", "accept")), (RefusalKind::Forbidden, "forbidden".to_owned()));
    assert_eq!(world.payloads("approval.requested")[0]["approversList"], json!(["ben"]));
    vote(&mut world, "ben", "accept").unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn a_gate_may_insist_on_a_key() {
    let mut world = gate(json!({"profile": "openwop-interrupt-auth-required"}));
    let by_link = Command::Resolve {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        actor: Actor::default(),
    };
    assert_eq!(code(world.command(&by_link)).0, RefusalKind::Forbidden);
    world.answer("gate", json!({"action": "accept"})).unwrap();

    let mut open = gate(json!({}));
    open.command(&by_link).unwrap();
    assert_eq!(open.payloads("approval.received")[0]["decidedBy"], "link");
}

#[test]
fn every_question_needs_an_answer_in_either_form() {
    let questions = json!({"questions": [{"id": "a", "question": "A?"}, {"id": "b", "question": "B?"}]});
    for config in [
        ("core.clarificationGate", questions.clone()),
        ("core.interrupt", json!({"kind": "clarification", "data": questions})),
    ] {
        let mut world = asking(config.0, config.1);
        assert_eq!(world.status(), WaitingInput);
        let refusal = world.answer("ask", json!({"answers": {"a": 1}})).unwrap_err();
        assert_eq!(refusal.fault.details.unwrap()["missing"], json!(["b"]));
        for bad in [NONE, json!({}), json!({"answers": 1}), json!({"answers": [{"id": "a"}, {"id": "b"}]})] {
            assert_eq!(code(world.answer("ask", bad)).0, RefusalKind::Invalid);
        }
        world.answer("ask", json!({"answers": [{"id": "a", "answer": 1}, {"id": "b", "answer": null}]})).unwrap();
        assert_eq!(world.status(), Completed);
        let resolved = json!({"nodeId": "ask", "answers": {"a": 1, "b": null}, "answeredBy": "ann"});
        assert_eq!(world.payloads("clarification.resolved"), [resolved]);
    }
    let mut object = asking("core.clarificationGate", json!({"questions": [{"id": "a", "question": "A?"}]}));
    object.answer("ask", json!({"answers": {"a": "yes", "extra": true}})).unwrap();
    assert_eq!(object.payloads("node.completed")[0]["outputs"]["answers"]["a"], "yes");
}

#[test]
fn an_external_event_must_carry_the_correlation() {
    let config = json!({"kind": "external-event", "data": {"eventType": "paid", "correlation": {"order": {"id": 7}}}});
    for (good, event) in [
        (json!({"order": {"id": 7}, "sum": 3}), json!({"order": {"id": 7}, "sum": 3})),
        (json!({"eventPayload": {"order": {"id": 7}}}), json!({"order": {"id": 7}})),
    ] {
        let mut world = asking("core.interrupt", config.clone());
        assert_eq!(world.status(), WaitingExternal);
        for bad in [NONE, json!({}), json!({"order": {"id": 8}}), json!({"order": {"id": 7, "x": 1}}), json!([1])] {
            let refused = code(world.answer("ask", bad));
            assert_eq!(refused, (RefusalKind::Unprocessable, "validation_error".to_owned()));
        }
        assert_eq!(world.status(), WaitingExternal);
        world.answer("ask", good).unwrap();
        assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"event": event}));
    }
}

#[test]
fn a_custom_question_checks_answers_by_its_schema() {
    let schema = json!({"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}});
    let mut world = asking("core.interrupt", json!({"kind": "custom", "data": {"hint": 1}, "resumeSchema": schema}));
    assert_eq!(world.status(), WaitingApproval);
    let asked = &world.payloads("interrupt.requested")[0];
    assert_eq!(asked["data"], json!({"customKind": "ask", "payload": {"hint": 1}}));
    assert_eq!(asked["resumeSchema"], schema);
    let refusal = world.answer("ask", json!({"ok": "maybe"})).unwrap_err();
    assert_eq!((refusal.kind, &refusal.fault.details.unwrap()["path"]), (RefusalKind::Invalid, &json!("/ok")));
    world.answer("ask", json!({"ok": true})).unwrap();
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"value": {"ok": true}}));

    let mut free = asking("core.interrupt", json!({"kind": "custom"}));
    free.answer("ask", NONE).unwrap();
    assert_eq!(free.payloads("node.resumed")[0].get("resumeValue"), Some(&NONE));
}

#[test]
fn silence_grants_nothing() {
    let table = [
        ("core.approvalGate", json!({"timeoutMs": 50}), "approval_rejected"),
        ("core.interrupt", json!({"kind": "approval", "timeoutMs": 50}), "approval_rejected"),
        (
            "core.clarificationGate",
            json!({"timeoutMs": 50, "questions": [{"id": "q", "question": "?"}]}),
            "interrupt_timeout",
        ),
        (
            "core.interrupt",
            json!({"kind": "external-event", "timeoutMs": 50, "data": {"eventType": "e"}}),
            "interrupt_timeout",
        ),
        ("core.interrupt", json!({"kind": "custom", "timeoutMs": 50}), "interrupt_timeout"),
    ];
    for (type_id, config, error) in table {
        let mut definition = workflow(&[("ask", type_id, config)], &[]);
        // Trying again cannot mend silence.
        definition["settings"] = json!({"maxRetries": 3});
        let mut world = run(definition);
        world.wait(49);
        assert!(world.status().is_waiting(), "{type_id}");
        world.wait(1);
        assert_eq!((world.status(), world.error_code()), (Failed, Some(error)));
        let resolved = &world.payloads("interrupt.resolved")[0];
        assert_eq!((&resolved["outcome"], &resolved["reason"]), (&json!("rejected"), &json!("timeout")));
        if error == "approval_rejected" {
            assert_eq!(world.payloads("approval.received"), [json!({"nodeId": "ask", "action": "timeout"})]);
        }
    }
}

#[test]
fn no_timeout_means_no_timeout() {
    for config in [json!({"kind": "custom"}), json!({"kind": "custom", "timeoutMs": 0})] {
        let mut world = asking("core.interrupt", config);
        world.wait(900_000);
        assert_eq!(world.status(), WaitingApproval);
    }
}

#[test]
fn a_node_out_of_time_withdraws_its_question_and_asks_anew() {
    let mut definition = workflow(&[("gate", "core.approvalGate", json!({}))], &[]);
    definition["nodes"][0]["settings"] = json!({"timeout": 100, "maxRetries": 1, "retryDelayMs": 10});
    let mut world = run(definition);
    world.wait(100);
    let withdrawn = &world.payloads("interrupt.resolved")[0];
    assert_eq!((&withdrawn["outcome"], &withdrawn["reason"]), (&json!("cancelled"), &json!("node-timeout")));
    assert_eq!(world.payloads("node.retried")[0]["lastError"]["code"], "node_timeout");
    assert_eq!(code(world.answer("gate", json!({"action": "accept"}))).1, "interrupt_already_resolved");
    world.wait(10);
    let keys: Vec<_> = world.payloads("interrupt.requested").iter().map(|p| p["key"].clone()).collect();
    assert_eq!(keys, ["gate:1", "gate:1:1"]);
    world.answer("gate", json!({"action": "accept"})).unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn a_second_answer_is_too_late() {
    let mut world = gate(json!({}));
    let late = |world: &mut World| code(world.answer("gate", json!({"action": "reject"})));
    world.answer("gate", json!({"action": "accept"})).unwrap();
    assert_eq!(late(&mut world), (RefusalKind::Conflict, "interrupt_already_resolved".to_owned()));
    let records = world.log.len();
    late(&mut world);
    assert_eq!(world.log.len(), records);
}

#[test]
fn an_answer_where_nothing_is_asked_is_not_found() {
    let mut world = gate(json!({}));
    for node in ["next", "nobody"] {
        let refused = code(world.answer(node, json!({"action": "accept"})));
        assert_eq!(refused, (RefusalKind::NotFound, "interrupt_not_found".to_owned()));
    }
}

#[test]
fn an_answer_after_the_cancellation_says_so() {
    let accept = json!({"action": "accept"});
    let mut own = gate(json!({}));
    own.cancel();
    assert_eq!(own.status(), Cancelled);
    let refused = code(own.answer("gate", accept.clone()));
    assert_eq!(refused, (RefusalKind::Unprocessable, "interrupt_cancelled".to_owned()));

    let mut cascaded = gate(json!({}));
    cascaded.command(&Command::Cancel { reason: None, by: None, parent: Some(RunId::new("run_parent")) }).unwrap();
    assert_eq!(code(cascaded.answer("gate", accept)), (RefusalKind::Gone, "interrupt_gone".to_owned()));
}

#[test]
fn a_cancellation_that_waits_for_children_already_closes_questions() {
    let nodes = [("gate", "core.approvalGate", json!({})), ("sub", "core.subWorkflow", json!({"workflowId": "child"}))];
    for (parent, expected) in [(None, "interrupt_cancelled"), (Some(RunId::new("run_parent")), "interrupt_gone")] {
        let mut world = run(workflow(&nodes, &[]));
        let child = world.child();
        world.tell(&child, script::News::Started);
        world.command(&Command::Cancel { reason: None, by: None, parent }).unwrap();
        assert!(!world.status().is_terminal());
        assert_eq!(code(world.answer("gate", json!({"action": "accept"}))).1, expected);
    }
}
