//! Agents over time: more attempts, pauses, drains and time limits lose nothing and repeat nothing.

use crate::support;

use baton_engine::{Command, Phase};
use baton_model::event::DrainPolicy;
use baton_model::{Event, InvocationContext, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{FREE, STRICT, ok, one, started, wants, working};
use support::models::{asked, said, unreachable};
use support::{World, start_command};

fn briefs(world: &World) -> Vec<InvocationContext> {
    let started = world.log.iter().filter_map(|record| match &record.event {
        Event::AgentInvocationStarted(event) => event.private.brief.as_deref().cloned(),
        _ => None,
    });
    started.collect()
}

fn unanswered(world: &mut World, times: usize) {
    for _ in 0..times {
        let call = world.call();
        assert!(world.reply(&call, Err(unreachable())));
        while asked(&world.state).is_empty() && !world.status().is_terminal() {
            assert!(world.sleep_until_next());
        }
    }
}

#[test]
fn another_attempt_works_from_the_first_brief() {
    let mut world = World::new(support::agents::plan(one(FREE, json!({}), json!({"maxRetries": 1}))));
    world.ledgers.remember("run_before", "old", &[], None, world.now);
    let versions = world.ledgers.versions();
    let start = {
        let mut start = start_command(json!({"text": "Do it."}));
        start.settings.versions = versions;
        start
    };
    world.command(&Command::Start(Box::new(start))).unwrap();
    world.says(wants(&[("openwop:memory.put", json!({"content": "mine"}))]));
    unanswered(&mut world, 1);
    let briefs = briefs(&world);
    assert_eq!(briefs.len(), 2);
    assert_eq!(briefs[0], briefs[1], "what it wrote meanwhile is not in it");
    assert_eq!(world.call().request.semantic.messages.len(), 4, "and what was said and called stays");
    assert_eq!(world.call().request.key, "run_test/work/1/0/1", "it is the call that was not answered");
    let ids: Vec<Value> =
        world.payloads("agent.invocation.started").iter().map(|p| p["invocationId"].clone()).collect();
    assert_eq!(ids, ["run_test:work:1:0", "run_test:work:1:1"]);
}

#[test]
fn a_brief_that_cannot_be_had_fails_the_node_for_good() {
    let mut world = World::new(support::agents::plan(one(FREE, json!({}), json!({"maxRetries": 5}))));
    world.answering = false;
    world.command(&Command::Start(Box::new(start_command(json!({}))))).unwrap();
    let node_request = world.question().unwrap();
    let fault = baton_model::Fault::new("internal_error", "The disk is gone.");
    assert!(world.consulted(&node_request, baton_engine::Answer::failed(fault)));
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("internal_error")));
    assert_eq!(world.agent_types(), [""; 0], "nobody was at work");
}

#[test]
fn a_paused_run_loses_nothing_and_begins_nothing() {
    // An answer that comes while it is paused is kept, and judged when it goes on.
    let mut world = working(FREE);
    let call = world.call();
    world.pause(DrainPolicy::Immediate).unwrap();
    assert_eq!(world.call(), call, "what is under way stays under way");
    assert!(!world.reply(&call, Err(unreachable())), "a fault is no answer");
    assert!(world.reply(&call, Ok(wants(&[("mcp:mail", json!({}))]))));
    assert!(world.is_quiet(), "nothing is called on behalf of a paused run");
    world.resume().unwrap();
    // A result that comes while it is paused is kept, and the model is asked when it goes on.
    let tool = world.tool();
    world.pause(DrainPolicy::Immediate).unwrap();
    assert_eq!(world.tool(), tool);
    assert!(world.returns(&tool, ok(json!("sent"))));
    assert!(world.is_quiet());
    assert_eq!(baton_engine::outstanding(&world.refolded()), baton_engine::outstanding(&world.state));
    world.resume().unwrap();
    assert_eq!(world.call().call, 1);
    world.says(said("Done."));
    assert_eq!(world.status(), RunStatus::Completed);
    Audit::check(&world.log);
}

#[test]
fn a_draining_run_lets_its_agent_finish_with_all_its_tools() {
    let mut world = working(FREE);
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    world.says(wants(&[("openwop:memory.put", json!({"content": "x"})), ("mcp:look", json!({}))]));
    assert_eq!(world.payloads("memory.written").len(), 1, "what lives in the process is done while it drains");
    let call = world.tool();
    assert!(world.returns(&call, ok(json!(1))));
    assert!(!matches!(world.state.phase(), Phase::Paused { .. }));
    world.says(said("Done."));
    assert_eq!(world.status(), RunStatus::Paused);
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_time_limit_bounds_the_work_and_neither_a_pause_nor_a_human() {
    let limited = || started(one(STRICT, json!({}), json!({"timeout": 100})));
    let mut world = limited();
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)));
    world.wait(40);
    world.pause(DrainPolicy::Immediate).unwrap();
    world.wait(1000);
    world.resume().unwrap();
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(60)), "it has the time it had left");
    world.says(said(r#"{"verdict":"hm","confidence":0.1}"#));
    world.wait(5000);
    assert_eq!(world.status(), RunStatus::WaitingApproval, "a human may think for longer");
    world.answer("work", json!({"action": "accept"})).unwrap();
    assert_eq!(world.status(), RunStatus::Completed);
    let mut world = limited();
    world.wait(99);
    let call = world.call();
    world.wait(1);
    assert!(!world.reply(&call, Ok(said("{}"))), "too late is nobody's");
}
