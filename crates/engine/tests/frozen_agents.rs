//! A live agent behind a supervisor is asked about the turn's frozen view, and never about a turn that is over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use baton_engine::{Answer, Command, Effect, Features, Plan, Start, outstanding};
use baton_model::{Decision, Event, Fault, Frozen, RunStatus, Versions};
use serde_json::{Value, json};
use support::{World, start_command, workflow};

const A_WEEK: u64 = 7 * 24 * 3600 * 1000;

/// A run whose supervisor is a live agent.
fn with_agent() -> World {
    let supervisor = ("sup", "core.orchestrator.supervisor", json!({"agentId": "planner"}));
    let mut definition = workflow(&[supervisor, ("disp", "core.dispatch", json!({}))], &[]);
    definition["nodes"][0]["settings"] = json!({"maxRetries": 2, "retryDelayMs": 10});
    let features = Features { live_agents: true, ..Features::default() };
    World::new(Arc::new(Plan::compile(definition, features).unwrap()))
}

fn start(world: &mut World) {
    let versions = world.ledgers.versions();
    let start = Start { max_duration_ms: 100 * A_WEEK, versions, ..start_command(json!({})) };
    world.command(&Command::Start(Box::new(start))).unwrap();
}

fn refine(world: &mut World) {
    world.answer("sup", json!({"action": "refine", "refineFeedback": {"scope": "whole"}})).unwrap();
}

fn frozen(world: &World) -> Vec<Frozen> {
    let started = world.log.iter().filter_map(|record| match &record.event {
        Event::NodeStarted(event) if event.node_id.as_str() == "sup" => event.private.frozen,
        _ => None,
    });
    started.collect()
}

fn agents_asked(world: &World) -> Vec<Option<Frozen>> {
    let asked = outstanding(&world.state).into_iter().filter_map(|effect| match effect {
        Effect::AskAgent { frozen, .. } => Some(frozen),
        _ => None,
    });
    asked.collect()
}

fn agent_says(world: &mut World, decision: Result<Value, Fault>) {
    let decision = decision.map(|decision| Decision::read(&decision).unwrap());
    world.command(&Command::AgentDecided { node: "sup".into(), iteration: 1, decision }).unwrap();
}

#[test]
fn an_agent_is_asked_about_the_frozen_view_and_about_the_same_when_it_tries_again() {
    let mut world = with_agent();
    world.ledgers.remember("run_worker", "x", &[], None, world.now);
    start(&mut world);
    let view = Frozen { versions: Versions { memory: 1, workspace: 0 }, at: world.now };
    assert_eq!(agents_asked(&world), [Some(view)]);
    world.ledgers.remember("run_worker", "y", &[], None, world.now);
    agent_says(&mut world, Err(Fault::new("provider_error", "It had a bad day.")));
    world.wait(10);
    assert_eq!(agents_asked(&world), [Some(view)], "another attempt of the same turn");
    agent_says(&mut world, Ok(json!({"kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 0.1})));
    world.wait(A_WEEK);
    refine(&mut world);
    assert_eq!(agents_asked(&world), [Some(view)], "sent back");
    assert_eq!(frozen(&world), [view; 3]);
}

#[test]
fn an_agent_is_not_asked_while_its_turn_is_still_to_be_taken_again() {
    let mut world = with_agent();
    start(&mut world);
    agent_says(&mut world, Ok(json!({"kind": "terminate", "confidence": 0.1})));
    let value = json!({"action": "refine", "refineFeedback": {"scope": "whole"}});
    let drafts = baton_engine::decide(&world.state, &support::script::resolve(&"sup".into(), value, "ann"), world.now);
    world.apply(drafts.unwrap());
    assert_eq!(agents_asked(&world), [], "the old attempt is over");
    world.advance();
    assert_eq!(agents_asked(&world).len(), 1);
}

/// An agent's bad day is tried again; a view that cannot be had is not, and above all it does not hang.
#[test]
fn an_agent_without_a_view_fails_for_good() {
    let mut world = with_agent();
    world.answering = false;
    start(&mut world);
    let consult = world.question().unwrap();
    assert!(world.consulted(&consult, Answer::failed(Fault::new("internal_error", "The disk is gone."))));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("internal_error")));
}
