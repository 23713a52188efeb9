//! A live agent behind a supervisor is asked about the turn's frozen view, and never about a turn that is over.

use crate::support;

use baton_engine::{Answer, Command};
use baton_model::{Event, Fault, InvocationContext, RunStatus, TurnSnapshot, Versions};
use serde_json::json;
use support::agents::{PLANNER, plan};
use support::models::{asked, said, unreachable};
use support::{World, start_command, workflow};

const A_WEEK: u64 = 7 * 24 * 3600 * 1000;

/// A run whose supervisor is a live agent.
fn with_agent() -> World {
    let supervisor = ("sup", "core.orchestrator.supervisor", json!({"agentId": PLANNER}));
    let mut definition = workflow(&[supervisor, ("disp", "core.dispatch", json!({}))], &[]);
    definition["nodes"][0]["settings"] = json!({"maxRetries": 2, "retryDelayMs": 10});
    World::new(plan(definition))
}

fn start(world: &mut World) {
    let versions = world.ledgers.versions();
    let start = {
        let mut start = start_command(json!({}));
        start.settings.max_duration_ms = 100 * A_WEEK;
        start.settings.versions = versions;
        start
    };
    world.command(&Command::Start(Box::new(start))).unwrap();
}

fn refine(world: &mut World) {
    world.answer("sup", json!({"action": "refine", "refineFeedback": {"scope": "whole"}})).unwrap();
}

fn frozen(world: &World) -> Vec<TurnSnapshot> {
    let started = world.log.iter().filter_map(|record| match &record.event {
        Event::NodeStarted(event) if event.node_id.as_str() == "sup" => event.private.frozen,
        _ => None,
    });
    started.collect()
}

/// What each invocation was briefed with.
fn briefs(world: &World) -> Vec<InvocationContext> {
    let started = world.log.iter().filter_map(|record| match &record.event {
        Event::AgentInvocationStarted(event) => event.private.brief.as_deref().cloned(),
        _ => None,
    });
    started.collect()
}

#[test]
fn an_agent_is_asked_about_the_frozen_view_and_about_the_same_when_it_tries_again() {
    let mut world = with_agent();
    world.ledgers.remember("run_worker", "x", &[], None, world.now);
    world.ledgers.write_file("plan.md", "Step one.", None, world.now);
    start(&mut world);
    let view = TurnSnapshot { versions: Versions { memory: 1, workspace: 1 }, at: world.now };
    world.ledgers.remember("run_worker", "y", &[], None, world.now);
    world.ledgers.write_file("plan.md", "Step two.", None, world.now);
    let call = world.call();
    assert!(world.reply(&call, Err(unreachable())));
    world.wait(10);
    world.says(said(r#"{"kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 0.1}"#));
    world.wait(A_WEEK);
    refine(&mut world);
    assert_eq!(frozen(&world), [view; 3]);
    let briefs = briefs(&world);
    let remembered: Vec<&str> = briefs.iter().flat_map(|brief| &brief.memory).map(|m| m.content.as_str()).collect();
    assert_eq!(remembered, ["x"; 3], "another attempt of the same turn, and one that was sent back");
    assert_eq!(briefs[0].situation["workspace"][0]["content"], "Step one.");
    assert_eq!(briefs[1], briefs[0], "another attempt is told the same");
    let mut sent_back = briefs[0].clone();
    sent_back.situation.insert("feedback".to_owned(), json!({"scope": "whole"}));
    assert_eq!(briefs[2], sent_back, "sent back: the same, and what a human wants");
    let told = world.call().request.semantic.messages.last().unwrap().content().to_string();
    assert!(told.contains("feedback") && told.contains("Step one."), "{told}");
}

#[test]
fn an_agent_is_not_asked_while_its_turn_is_still_to_be_taken_again() {
    let mut world = with_agent();
    start(&mut world);
    world.says(said(r#"{"kind": "terminate", "confidence": 0.1}"#));
    let value = json!({"action": "refine", "refineFeedback": {"scope": "whole"}});
    let drafts = baton_engine::decide(&world.state, &support::script::resolve(&"sup".into(), value, "ann"), world.now);
    world.apply(drafts.unwrap());
    assert_eq!(asked(&world.state), [], "the old attempt is over");
    world.advance();
    assert_eq!(asked(&world.state).len(), 1);
}

/// An agent's bad day is tried again; a view that cannot be had is not, and above all it does not hang.
#[test]
fn an_agent_without_a_view_fails_for_good() {
    let mut world = with_agent();
    world.answering = false;
    start(&mut world);
    let node_request = world.question().unwrap();
    assert!(world.consulted(&node_request, Answer::failed(Fault::new("internal_error", "The disk is gone."))));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("internal_error")));
}
