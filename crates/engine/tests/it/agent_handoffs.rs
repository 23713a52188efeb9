//! Work that goes from one agent to another.

use crate::support;

use std::sync::Arc;

use baton_engine::{RunState, evolve};
use baton_model::{Event, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{AGENT, FREE, PICKY, STRICT, started};
use support::models::said;
use support::workflow;

fn agent(id: &'static str, who: &str) -> (&'static str, &'static str, Value) {
    (id, AGENT, json!({"agentId": who}))
}

#[test]
fn whoever_takes_over_says_from_whom() {
    let nodes = [agent("a", FREE), agent("b", FREE), ("between", "core.noop", json!({})), agent("c", STRICT)];
    let edges = [("a", "between", json!({})), ("b", "between", json!({})), ("between", "c", json!({}))];
    let mut world = started(workflow(&nodes, &edges));
    for _ in 0..2 {
        let call = support::models::asked(&world.state).remove(0);
        world.reply(&call, Ok(said("Done.")));
    }
    assert!(world.payloads("agent.handoff").len() == 1, "two nodes of one agent hand over once");
    let handed = &world.payloads("agent.handoff")[0];
    assert_eq!((&handed["fromAgentId"], &handed["toAgentId"]), (&json!(FREE), &json!(STRICT)));
    let types = world.agent_types();
    let at = types.iter().position(|kind| *kind == "agent.handoff").unwrap();
    assert_eq!((types[at - 1], types[at + 1]), ("agent.invocation.started", "agent.promptResolved"));
    world.says(said(r#"{"verdict": "good"}"#));
    assert_eq!(world.status(), RunStatus::Completed);
    Audit::check(&world.log);
}

#[test]
fn nobody_hands_over_to_themselves_or_without_having_worked() {
    let nodes = [agent("a", FREE), agent("b", FREE), agent("c", PICKY)];
    let mut world =
        started(workflow(&nodes, &[("a", "b", json!({})), ("b", "c", json!({"triggerRule": "any_failed"}))]));
    world.says(said("Done."));
    assert!(world.payloads("agent.handoff").is_empty(), "the same agent goes on");
    world.says(said("Done."));
    assert!(world.payloads("agent.handoff").is_empty());
    assert_eq!(world.status(), RunStatus::Completed);
}

/// Logs begun before handing over was said must replay as they are.
#[test]
fn an_older_log_does_not_say_it() {
    let nodes = [agent("a", FREE), agent("b", PICKY)];
    for (rule, handovers) in [(1, 0), (2, 1)] {
        let mut world = started(workflow(&nodes, &[("a", "b", json!({}))]));
        let Event::RunStarted(began) = &mut world.log[0].event else { panic!("{:?}", world.log[0]) };
        began.private.engine_rule = rule;
        let fresh = RunState::new(world.state.run.clone(), Arc::clone(world.state.plan()));
        world.state = world.log.iter().try_fold(fresh, evolve).unwrap();
        world.says(said("Done."));
        assert_eq!(world.payloads("agent.handoff").len(), handovers, "rule {rule}");
    }
}
