//! The supervisor loop: turns, handoffs, mapping, fan-out, confidence and bounds.

use crate::support;

use baton_engine::{Actor, ChildOutcome, Command, Effect, outstanding};
use baton_model::RunStatus::{self, Cancelled, Completed, Failed, WaitingApproval, WaitingInput};
use baton_model::{Event, Fault, NodeId, RunId};
use serde_json::{Map, Value, json};
use support::models::{asked, said};
use support::script;
use support::{World, plan, start_command, workflow};

/// A supervisor with a script and a dispatch with this configuration.
fn looped(script: Value, dispatch: Value) -> Value {
    workflow(
        &[
            ("sup", "core.orchestrator.supervisor", json!({"mockDispatchPlan": script})),
            ("disp", "core.dispatch", dispatch),
        ],
        &[("sup", "disp", Value::Null), ("disp", "sup", Value::Null)],
    )
}

fn next(ids: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ids})
}

fn run(definition: Value) -> World {
    World::started(plan(definition), start_command(json!({})))
}

/// Children that wait to be created.
fn wanted(world: &World) -> Vec<RunId> {
    outstanding(&world.state)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::StartChild { plan, .. } => Some(plan.run),
            _ => None,
        })
        .collect()
}

fn start_all(world: &mut World) -> Vec<RunId> {
    let children = wanted(world);
    for child in &children {
        world.command(&Command::ChildStarted { child: child.clone() }).unwrap();
    }
    children
}

fn end(world: &mut World, child: &RunId, status: RunStatus, variables: Value) {
    let error = (status == Failed).then(|| Fault::new("boom", "It broke."));
    let variables: Map<String, Value> = variables.as_object().cloned().unwrap_or_default();
    let outcome = ChildOutcome { status, variables, error, memory: 0, usage: None };
    world.command(&Command::ChildEnded { child: child.clone(), outcome }).unwrap();
}

fn resolve(world: &mut World, node: &str, value: Value) -> Result<(), baton_engine::Refusal> {
    let command = script::reply_to(&world.state, &NodeId::new(node), value, "key");
    world.command(&command)
}

fn chain(world: &World) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    for record in &world.log {
        if let Event::ChainEvent(event) = &record.event {
            let phase = serde_json::to_value(event.phase).unwrap().as_str().unwrap().to_owned();
            let cause = record.causation.map(|seq| world.log[seq as usize].event.type_name().to_owned());
            all.push((phase, cause));
        }
    }
    all
}

fn decisions(world: &World) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    for record in &world.log {
        if let Event::OrchestratorDecided(event) = &record.event {
            let kind = serde_json::to_value(&event.decision).unwrap()["kind"].as_str().unwrap().to_owned();
            all.push((event.iteration, kind));
        }
    }
    all
}

#[test]
fn one_worker_then_the_end() {
    let mut world = run(looped(
        json!([next(&["child"]), {"kind": "terminate", "reason": "done"}]),
        json!({"outputMapping": {"parentResult": "childOutcome"}}),
    ));
    let children = start_all(&mut world);
    end(&mut world, &children[0], Completed, json!({"childOutcome": "made", "other": 1}));
    assert_eq!(world.status(), Completed);
    assert_eq!(world.variable("parentResult"), Some(&json!("made")));
    assert_eq!(decisions(&world), [(1, "next-worker".to_owned()), (2, "terminate".to_owned())]);
    assert_eq!(
        world.types(),
        [
            "run.started",
            "node.started",
            "runOrchestrator.decided",
            "node.completed",
            "node.started",
            "core.workflowChain.event",
            "node.dispatched",
            "core.workflowChain.event",
            "core.workflowChain.event",
            "variable.changed",
            "core.workflowChain.event",
            "node.completed",
            "node.started",
            "runOrchestrator.decided",
            "node.completed",
            "node.started",
            "node.completed",
            "run.completed"
        ]
    );
    let of = |phase: &str, cause: &str| (phase.to_owned(), Some(cause.to_owned()));
    assert_eq!(
        chain(&world),
        [
            of("dispatch.began", "runOrchestrator.decided"),
            of("dispatch.succeeded", "core.workflowChain.event"),
            of("child.completed", "core.workflowChain.event"),
            of("output.harvested", "core.workflowChain.event"),
        ]
    );
}

#[test]
fn the_pair_needs_no_edges() {
    let definition = workflow(
        &[
            ("sup", "core.orchestrator.supervisor", json!({"mockDispatchPlan": [next(&["child"])]})),
            ("disp", "core.dispatch", json!({})),
        ],
        &[],
    );
    let mut world = run(definition);
    let children = start_all(&mut world);
    end(&mut world, &children[0], Completed, json!({}));
    assert_eq!(world.status(), Completed);
    assert_eq!(decisions(&world).len(), 2);
}

#[test]
fn a_failed_worker_is_not_harvested_and_the_loop_goes_on() {
    for (status, phase) in [(Failed, "child.failed"), (Cancelled, "child.cancelled")] {
        let mut world =
            run(looped(json!([next(&["child"])]), json!({"outputMapping": {"parentResult": "childOutcome"}})));
        let children = start_all(&mut world);
        end(&mut world, &children[0], status, json!({"childOutcome": "half"}));
        assert_eq!(world.status(), Completed);
        assert_eq!(world.variable("parentResult"), None);
        assert_eq!(chain(&world).last().unwrap().0, phase);
    }
}

#[test]
fn a_worker_that_cannot_be_created_is_a_failed_dispatch() {
    let mut world = run(looped(json!([next(&["missing"])]), json!({})));
    let child = wanted(&world).remove(0);
    let fault = Fault::new("unknown_child_workflow", "No such workflow.");
    world.command(&Command::ChildRefused { child, fault }).unwrap();
    assert_eq!(world.status(), Completed);
    assert_eq!(chain(&world).iter().map(|c| c.0.as_str()).collect::<Vec<_>>(), ["dispatch.began", "dispatch.failed"]);
}

#[test]
fn sequential_workers_feed_each_other() {
    let mut world = run(looped(
        json!([next(&["a", "b"])]),
        json!({
            "perWorkerOutputMappings": {"a": {"shared": "made"}},
            "perWorkerInputMappings": {"b": {"input": "shared"}}
        }),
    ));
    let first = start_all(&mut world);
    assert_eq!(first.len(), 1);
    end(&mut world, &first[0], Completed, json!({"made": "hello"}));
    let inputs = outstanding(&world.state).into_iter().find_map(|effect| match effect {
        Effect::StartChild { plan, .. } => Some(plan.inputs),
        _ => None,
    });
    assert_eq!(inputs.unwrap().get("input"), Some(&json!("hello")));
    let second = start_all(&mut world);
    end(&mut world, &second[0], Completed, json!({}));
    assert_eq!(world.status(), Completed);
}

#[test]
fn parallel_workers_join_and_merge_in_the_order_they_ended() {
    let mut world = run(looped(
        json!([next(&["a", "b", "c"])]),
        json!({"fanOutPolicy": "parallel", "maxConcurrency": 2, "outputMapping": {"last": "v"}}),
    ));
    let first = start_all(&mut world);
    assert_eq!(first.len(), 2, "the third queues");
    end(&mut world, &first[1], Completed, json!({"v": "b"}));
    let third = start_all(&mut world);
    end(&mut world, &third[0], Completed, json!({"v": "c"}));
    end(&mut world, &first[0], Completed, json!({"v": "a"}));
    assert_eq!(world.status(), Completed);
    assert_eq!(world.variable("last"), Some(&json!("a")), "the last to end writes last");
    let join = world.log.iter().find_map(|record| match &record.event {
        Event::Join(join) => Some(join.clone()),
        _ => None,
    });
    assert_eq!(join.unwrap().merge_order, [first[1].clone(), third[0].clone(), first[0].clone()]);
}

#[test]
fn the_first_to_complete_wins_and_losers_are_cancelled() {
    let mut world =
        run(looped(json!([next(&["a", "b"])]), json!({"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}})));
    let children = start_all(&mut world);
    end(&mut world, &children[0], Completed, json!({}));
    let cancels: Vec<Effect> = outstanding(&world.state);
    assert!(cancels.contains(&Effect::CancelChild { child: children[1].clone() }));
    end(&mut world, &children[1], Cancelled, json!({}));
    assert_eq!(world.status(), Completed);
    let join = world.log.iter().find_map(|record| match &record.event {
        Event::Join(join) => Some(serde_json::to_value(join.join_outcome).unwrap()),
        _ => None,
    });
    assert_eq!(join, Some(json!("satisfied")), "losers the join cancelled do not downgrade it");
}

#[test]
fn fail_fast_fails_the_node_and_cancels_the_rest() {
    let mut world = run(looped(
        json!([next(&["a", "b"])]),
        json!({"fanOutPolicy": "parallel", "joinPolicy": {"mode": "wait-all", "onChildFailure": "fail-fast"}}),
    ));
    let children = start_all(&mut world);
    end(&mut world, &children[0], Failed, json!({}));
    assert!(outstanding(&world.state).contains(&Effect::CancelChild { child: children[1].clone() }));
    end(&mut world, &children[1], Cancelled, json!({}));
    assert_eq!(world.status(), Failed);
    assert_eq!(world.error_code(), Some("dispatch_join_failed"));
}

#[test]
fn an_unsure_decision_is_held_until_a_human_ratifies_it() {
    let script = json!([{"kind": "next-worker", "nextWorkerIds": ["child"], "confidence": 0.3}]);
    let fresh = || run(looped(script.clone(), json!({})));

    let world = fresh();
    assert_eq!(world.status(), WaitingApproval);
    assert!(decisions(&world).is_empty());
    assert!(chain(&world).is_empty());
    assert_eq!(world.nodes_of("core.workflowChain.confidence-escalated"), ["sup"]);
    assert_eq!(world.nodes_of("interrupt.requested").len(), 1);

    let mut accepted = fresh();
    resolve(&mut accepted, "sup", json!({"action": "accept"})).unwrap();
    assert_eq!(decisions(&accepted), [(1, "next-worker".to_owned())]);
    assert_eq!(wanted(&accepted).len(), 1);

    let mut edited = fresh();
    let bad = json!({"action": "edit-accept", "editedArtifactData": {"kind": "nonsense"}});
    assert!(resolve(&mut edited, "sup", bad).is_err());
    assert_eq!(edited.status(), WaitingApproval);
    let good = json!({"action": "edit-accept", "editedArtifactData": {"kind": "terminate", "confidence": 0.1}});
    resolve(&mut edited, "sup", good).unwrap();
    assert_eq!(edited.status(), Completed);
    assert_eq!(decisions(&edited), [(1, "terminate".to_owned())]);

    let mut refined = fresh();
    resolve(&mut refined, "sup", json!({"action": "refine", "refineFeedback": {"scope": "whole"}})).unwrap();
    assert_eq!(refined.status(), WaitingApproval, "the script says the same again");
    assert!(decisions(&refined).is_empty());
    assert_eq!(refined.nodes_of("interrupt.requested").len(), 2);
    resolve(&mut refined, "sup", json!({"action": "accept"})).unwrap();
    assert_eq!(decisions(&refined), [(1, "next-worker".to_owned())]);

    let mut rejected = fresh();
    resolve(&mut rejected, "sup", json!({"action": "reject"})).unwrap();
    assert_eq!(rejected.error_code(), Some("approval_rejected"));
    assert!(decisions(&rejected).is_empty());
}

#[test]
fn exactly_the_floor_passes_and_silence_never_escalates() {
    for decision in [
        json!({"kind": "next-worker", "nextWorkerIds": ["child"], "confidence": 0.5}),
        json!({"kind": "next-worker", "nextWorkerIds": ["child"]}),
    ] {
        let world = run(looped(json!([decision]), json!({})));
        assert_eq!(decisions(&world).len(), 1);
    }
}

#[test]
fn an_unsure_agent_is_another_rule() {
    let definition = workflow(
        &[
            (
                "sup",
                "core.orchestrator.supervisor",
                json!({"mockConfidence": 0.5, "mockPendingDecision": next(&["child"])}),
            ),
            ("disp", "core.dispatch", json!({})),
        ],
        &[],
    );
    let mut world = run(definition);
    assert_eq!(world.status(), WaitingApproval);
    assert!(world.nodes_of("core.workflowChain.confidence-escalated").is_empty());
    let suspended = world.log.iter().find_map(|record| match &record.event {
        Event::NodeSuspended(event) => Some(event.clone()),
        _ => None,
    });
    let suspended = suspended.unwrap();
    assert_eq!(suspended.kind.as_deref(), Some("low-confidence"));
    assert_eq!(suspended.reason.as_deref(), Some("low-confidence"));
    assert_eq!((suspended.threshold, suspended.observed), (Some(0.7), Some(0.5)));
    resolve(&mut world, "sup", next(&["child"])).unwrap();
    assert_eq!(decisions(&world), [(1, "next-worker".to_owned())]);
}

#[test]
fn a_question_to_the_user_reaches_the_next_turn() {
    let rules = json!({
        "rules": [
            {"when": "iteration == 1", "decide": {"kind": "ask-user", "prompt": "Which?"}},
            {"when": "nodes.disp.answers.answer == 'left'", "decide": {"kind": "terminate", "reason": "left"}}
        ],
        "otherwise": {"kind": "terminate", "reason": "other"}
    });
    let definition =
        workflow(&[("sup", "core.orchestrator.supervisor", rules), ("disp", "core.dispatch", json!({}))], &[]);
    let mut world = run(definition);
    assert_eq!(world.status(), WaitingInput);
    resolve(&mut world, "disp", json!({"answers": {"answer": "left"}})).unwrap();
    assert_eq!(world.status(), Completed);
    let last = world.log.iter().rev().find_map(|record| match &record.event {
        Event::OrchestratorDecided(event) => Some(serde_json::to_value(event).unwrap()),
        _ => None,
    });
    assert_eq!(last.unwrap()["decision"]["reason"], "left");
}

#[test]
fn the_loop_is_bounded_before_the_turn_runs() {
    let mut start = start_command(json!({}));
    start.settings.max_loop_iterations = 1;
    let mut world = World::started(plan(looped(json!([next(&["child"])]), json!({}))), start);
    let children = start_all(&mut world);
    end(&mut world, &children[0], Completed, json!({}));
    assert_eq!(world.error_code(), Some("loop_limit_exceeded"));
    assert_eq!(decisions(&world).len(), 1);
    let types = world.types();
    assert_eq!(&types[types.len() - 2..], ["cap.breached", "run.failed"]);
}

#[test]
fn a_merge_that_needs_approval_fails_closed() {
    let dispatch = json!({
        "outputMapping": {"result": "v"},
        "outputAttestation": {"checksum": true, "requireApproval": true}
    });
    let fresh = || {
        let mut world = run(looped(json!([next(&["child"])]), dispatch.clone()));
        let children = start_all(&mut world);
        end(&mut world, &children[0], Completed, json!({"v": 1}));
        assert_eq!(world.status(), WaitingApproval);
        assert_eq!(world.variable("result"), None);
        world
    };
    let mut accepted = fresh();
    resolve(&mut accepted, "disp", json!({"action": "accept"})).unwrap();
    assert_eq!(accepted.status(), Completed);
    assert_eq!(accepted.variable("result"), Some(&json!(1)));

    let mut rejected = fresh();
    resolve(&mut rejected, "disp", json!({"action": "reject"})).unwrap();
    assert_eq!(rejected.status(), Completed, "the loop goes on without it");
    assert_eq!(rejected.variable("result"), None);
    assert!(!chain(&rejected).iter().any(|(phase, _)| phase == "output.harvested"));
}

#[test]
fn cancelling_ends_every_worker_before_the_run() {
    let mut world = run(looped(json!([next(&["a", "b"])]), json!({"fanOutPolicy": "parallel"})));
    let children = start_all(&mut world);
    world.command(&Command::Cancel { reason: None, by: None, parent: None }).unwrap();
    assert_eq!(world.status(), RunStatus::Cancelling);
    end(&mut world, &children[0], Cancelled, json!({}));
    assert_eq!(world.status(), RunStatus::Cancelling);
    end(&mut world, &children[1], Cancelled, json!({}));
    assert_eq!(world.status(), Cancelled);
    assert_eq!(baton_engine::snapshot(&world.refolded()), baton_engine::snapshot(&world.state));
}

#[test]
fn a_live_agent_is_asked_once_per_turn_and_judged_like_anybody() {
    let definition = workflow(
        &[
            ("sup", "core.orchestrator.supervisor", json!({"agentId": "vendor.team.lead"})),
            ("disp", "core.dispatch", json!({})),
        ],
        &[],
    );
    let refused = baton_engine::Plan::compile(definition.clone(), Default::default()).unwrap_err();
    assert_eq!(refused[0].code, "capability_required");
    let features = baton_engine::Features { live_agents: true, ..Default::default() };
    let plan = std::sync::Arc::new(baton_engine::Plan::compile(definition, features).unwrap());
    let mut world = World::started(plan, start_command(json!({})));
    let call = world.says(said(r#"{"kind": "terminate", "confidence": 0.2}"#));
    assert_eq!(world.status(), WaitingApproval);
    assert_eq!(asked(&world.state), []);
    assert!(!world.reply(&call, Ok(said(r#"{"kind": "terminate"}"#))), "a second answer changes nothing");
    assert!(decisions(&world).is_empty());
    resolve(&mut world, "sup", json!({"action": "accept"})).unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn a_sub_workflow_merge_can_need_approval_too() {
    let call = |on_failure: &str| {
        json!({
            "workflowId": "child", "outputMapping": {"result": "v"}, "onChildFailure": on_failure,
            "outputAttestation": {"requireApproval": true}
        })
    };
    let fresh = |on_failure: &str| {
        let mut world = run(workflow(&[("call", "core.subWorkflow", call(on_failure))], &[]));
        let children = start_all(&mut world);
        end(&mut world, &children[0], Completed, json!({"v": 1}));
        assert_eq!(world.status(), WaitingApproval);
        assert_eq!(world.variable("result"), None);
        // Hearing of the same end again does not ask again.
        end(&mut world, &children[0], Completed, json!({"v": 1}));
        assert_eq!(world.nodes_of("interrupt.requested").len(), 1);
        world
    };
    let mut accepted = fresh("fail-parent");
    resolve(&mut accepted, "call", json!({"action": "accept"})).unwrap();
    assert_eq!((accepted.status(), accepted.variable("result")), (Completed, Some(&json!(1))));
    let outputs = baton_engine::snapshot(&accepted.state).unwrap();
    assert_eq!(outputs.child_runs[0].status, Completed);

    let mut rejected = fresh("fail-parent");
    resolve(&mut rejected, "call", json!({"action": "reject"})).unwrap();
    assert_eq!(rejected.error_code(), Some("approval_rejected"));
    assert_eq!(rejected.variable("result"), None);

    let mut absorbed = fresh("absorb");
    resolve(&mut absorbed, "call", json!({"action": "reject"})).unwrap();
    assert_eq!((absorbed.status(), absorbed.variable("result")), (Completed, None));
}

#[test]
fn a_signed_link_votes_for_nobody_else() {
    let gate = json!({"actions": ["accept"], "approversList": ["ann"]});
    let mut world = run(workflow(&[("gate", "core.approvalGate", gate)], &[]));
    let value = json!({"action": "accept", "voter": "ann"});
    let by_link = Command::Resolve {
        node: NodeId::new("gate"),
        interrupt: None,
        value: value.clone(),
        actor: Actor { subject: None },
    };
    assert_eq!(world.command(&by_link).unwrap_err().fault.code, "forbidden");
    resolve(&mut world, "gate", value).unwrap();
    assert_eq!(world.status(), Completed);
}

#[test]
fn a_setting_nobody_reads_is_refused_with_its_place() {
    let definition = workflow(&[("d", "core.delay", json!({"mss": 5}))], &[]);
    let problems = baton_engine::Plan::compile(definition, Default::default()).unwrap_err();
    assert_eq!(problems[0].pointer, "/nodes/0/config/mss");
}

#[test]
fn a_rule_can_react_to_what_a_human_wants_changed() {
    let rules = json!({
        "rules": [
            {"when": "feedback != null", "decide": {"kind": "terminate", "reason": "as you wish"}},
            {"when": "true", "decide": {"kind": "next-worker", "nextWorkerIds": ["w"], "confidence": 0.1}}
        ],
        "otherwise": {"kind": "terminate"}
    });
    let nodes = [("sup", "core.orchestrator.supervisor", rules), ("disp", "core.dispatch", json!({}))];
    let mut world = run(workflow(&nodes, &[]));
    assert_eq!(world.status(), WaitingApproval);
    resolve(&mut world, "sup", json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "stop"}}))
        .unwrap();
    assert_eq!(world.status(), Completed);
    assert_eq!(decisions(&world), [(1, "terminate".to_owned())]);
    let last = serde_json::to_value(world.log.last().unwrap().event.payload()).unwrap();
    assert_eq!(last["reason"], "as you wish");
}

#[test]
fn a_third_node_between_the_two_halves_is_refused() {
    let script = json!({"mockDispatchPlan": [next(&["w"])]});
    let nodes = [
        ("sup", "core.orchestrator.supervisor", script),
        ("disp", "core.dispatch", json!({})),
        ("note", "core.noop", json!({})),
    ];
    let edges = [("sup", "disp", Value::Null), ("disp", "note", Value::Null), ("note", "sup", Value::Null)];
    let features = baton_engine::Features { conformance: true, ..Default::default() };
    let problems = baton_engine::Plan::compile(workflow(&nodes, &edges), features).unwrap_err();
    assert!(problems[0].message.contains("cycle"), "{problems:?}");
}

#[test]
fn the_answer_to_a_question_can_be_handed_to_a_worker() {
    let script = json!([{"kind": "ask-user", "prompt": "Which?"}, next(&["w"])]);
    let mut world = run(looped(script, json!({"inputMapping": {"choice": "answer"}})));
    resolve(&mut world, "disp", json!({"answers": {"answer": "left"}})).unwrap();
    let inputs = outstanding(&world.state).into_iter().find_map(|effect| match effect {
        Effect::StartChild { plan, .. } => Some(plan.inputs),
        _ => None,
    });
    assert_eq!(inputs.unwrap().get("choice"), Some(&json!("left")));
}

#[test]
fn a_join_binds_a_single_worker_too() {
    for (mode, on_failure) in [("wait-all", "fail-fast"), ("first", "collect")] {
        let join = json!({"fanOutPolicy": "parallel", "joinPolicy": {"mode": mode, "onChildFailure": on_failure}});
        let mut world = run(looped(json!([next(&["only"])]), join));
        let children = start_all(&mut world);
        end(&mut world, &children[0], Failed, json!({}));
        assert_eq!(world.error_code(), Some("dispatch_join_failed"), "{mode} {on_failure}");
    }
}
