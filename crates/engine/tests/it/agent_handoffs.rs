//! Work that goes from one agent to another.

use crate::support;

use std::collections::BTreeSet;

use baton_model::{NodeId, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{AGENT, FREE, PICKY, STRICT, started};
use support::models::said;
use support::script::resolve;
use support::{World, workflow};

fn agent(id: &'static str, who: &str) -> (&'static str, &'static str, Value) {
    (id, AGENT, json!({"agentId": who}))
}

/// Who hands over to whom, and in which bracket it is said, or before which.
fn handed(world: &World) -> Vec<String> {
    let mut open = BTreeSet::new();
    let mut all = Vec::new();
    for record in &world.log {
        let payload = serde_json::to_value(record.event.payload()).unwrap();
        match record.event.type_name() {
            "agent.invocation.started" => drop(open.insert(record.event.node_id().unwrap())),
            "agent.invocation.completed" => drop(open.remove(record.event.node_id().unwrap())),
            "agent.handoff" => {
                let who = |name: &str| payload[name].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
                let node = record.event.node_id().unwrap();
                let place = if open.contains(node) { "in" } else { "before" };
                all.push(format!("{} to {} {place} {node}", who("fromAgentId"), who("toAgentId")));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn whoever_hands_over_says_so_in_its_own_bracket() {
    let nodes = [agent("a", FREE), agent("b", STRICT)];
    let mut world = started(workflow(&nodes, &[("a", "b", json!({}))]));
    world.says(said("Done."));
    let bracket = [
        "agent.invocation.started",
        "agent.promptResolved",
        "agent.reasoned",
        "agent.decided",
        "agent.handoff",
        "agent.invocation.completed",
    ];
    let rest = ["agent.invocation.started", "agent.promptResolved"];
    assert_eq!(world.agent_types(), [&bracket[..], &rest].concat());
    world.says(said(r#"{"verdict": "good"}"#));
    assert_eq!(world.outcomes(), ["handed-off", "completed"]);
    assert_eq!(handed(&world), ["free to strict in a"]);
    assert_eq!(world.status(), RunStatus::Completed);
    Audit::check(&world.log);
    assert_eq!(baton_engine::snapshot(&world.refolded()), baton_engine::snapshot(&world.state));
}

/// It is certain only of what its own answer starts. The rest is said by whoever takes over, once it does.
#[test]
fn nobody_says_more_than_is_certain() {
    let other = "test.agents.other";
    // Both are waited for: the one whose answer is the last starts the next.
    let nodes = [agent("a", FREE), agent("b", other), agent("c", STRICT)];
    let mut world = started(workflow(&nodes, &[("a", "c", json!({})), ("b", "c", json!({}))]));
    for _ in 0..2 {
        let call = support::models::asked(&world.state).remove(0);
        world.reply(&call, Ok(said("Done.")));
    }
    assert_eq!(world.outcomes(), ["completed", "handed-off"]);
    assert_eq!(handed(&world), ["other to strict in b", "free to strict before c"]);
    world.says(said(r#"{"verdict": "good"}"#));
    Audit::check(&world.log);
    // Only the way that is open is taken.
    let nodes = [agent("a", FREE), agent("b", other), agent("c", STRICT)];
    let way = |value: &str| {
        let expression = format!("variables.result == '{value}'");
        json!({"condition": {"type": "expression", "expression": expression}})
    };
    let mut world = started(workflow(&nodes, &[("a", "b", way("left")), ("a", "c", way("right"))]));
    world.says(said("right"));
    assert_eq!(handed(&world), ["free to strict in a"]);
    // Nobody comes next.
    let mut world = started(workflow(&nodes[..2], &[("a", "b", way("left"))]));
    world.says(said("right"));
    assert_eq!((handed(&world).len(), world.outcomes()), (0, vec!["completed".to_owned()]));
    // Whoever would come next is switched off, or the answer cannot be judged.
    let mut definition = workflow(&nodes[..2], &[("a", "b", json!({}))]);
    definition["nodes"][1]["disabled"] = json!(true);
    let mut world = started(definition);
    world.says(said("right"));
    assert_eq!((handed(&world).len(), world.outcomes()), (0, vec!["completed".to_owned()]));
    let unclear = json!({"condition": {"type": "expression", "expression": "variables.result.score > 3"}});
    let mut definition = workflow(&nodes[..2], &[("a", "b", unclear)]);
    definition["edges"][0]["triggerRule"] = json!("all_complete");
    let mut world = started(definition);
    world.says(said("right"));
    assert_eq!((handed(&world).len(), world.outcomes()), (0, vec!["completed".to_owned()]));
    // What a human has to ratify is not handed over by the agent.
    let nodes = [agent("a", STRICT), agent("b", FREE)];
    let mut world = started(workflow(&nodes, &[("a", "b", json!({}))]));
    world.says(said(r#"{"verdict": "good", "confidence": 0.1}"#));
    assert_eq!((handed(&world).len(), world.outcomes()), (0, vec!["escalated".to_owned()]));
    world.command(&resolve(&NodeId::new("a"), json!("accept"), "ann")).unwrap();
    assert_eq!(handed(&world), ["strict to free before b"]);
    world.says(said("Done."));
    Audit::check(&world.log);
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
    assert_eq!((types[at - 1], types[at + 1]), ("agent.invocation.completed", "agent.invocation.started"));
    assert_eq!(types[at + 2], "agent.promptResolved", "inside, the order is the protocol's");
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

/// Logs begun before handing over was said, or was said by whoever gives, must replay as they are.
#[test]
fn an_older_log_says_what_it_said() {
    let nodes = [agent("a", FREE), agent("b", PICKY)];
    for (rule, handovers) in [(1, vec![]), (2, vec!["free to picky in b"]), (3, vec!["free to picky in a"])] {
        let mut world = started(workflow(&nodes, &[("a", "b", json!({}))]));
        world.under_rule(rule);
        world.says(said("Done."));
        assert_eq!(handed(&world), handovers, "rule {rule}");
    }
}
