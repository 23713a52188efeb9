//! Trigger rules: every rule against every pair of outcomes of two sources, and certainty before the last one settles.

use crate::support;

use baton_model::RunStatus;
use serde_json::{Value, json};
use support::{World, run, workflow};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Completed,
    Failed,
    Skipped,
    /// Completed, with the edge's condition false.
    Closed,
}

use Source::{Closed, Completed, Failed, Skipped};

/// Two sources with these outcomes, each with an edge of the rule to `target`. A failure is always handled elsewhere,
/// so that the rule alone decides.
fn judged(rule: &str, sources: [Source; 2]) -> World {
    let mut nodes = vec![("target", "core.noop", json!({})), ("aside", "core.noop", json!({}))];
    let mut edges = Vec::new();
    for (name, source) in ["a", "b"].into_iter().zip(sources) {
        nodes.push((name, if source == Failed { "core.fail" } else { "core.noop" }, json!({})));
        let mut edge = json!({"triggerRule": rule});
        if source == Closed {
            edge["condition"] = json!({"type": "expression", "expression": "false"});
        }
        edges.push((name, "target", edge));
        edges.push((name, "aside", json!({"triggerRule": "all_complete"})));
    }
    let mut definition = workflow(&nodes, &edges);
    for (index, source) in [(2, sources[0]), (3, sources[1])] {
        definition["nodes"][index]["disabled"] = (source == Skipped).into();
    }
    run(definition)
}

#[test]
fn each_rule_judges_each_pair_of_outcomes() {
    let outcomes = [Completed, Failed, Skipped, Closed];
    for a in outcomes {
        for b in outcomes {
            let any = |wanted: Source| a == wanted || b == wanted;
            let table = [
                ("all_success", a == Completed && b == Completed),
                ("any_success", any(Completed)),
                ("all_complete", true),
                ("none_failed", !any(Failed)),
                ("any_failed", any(Failed)),
            ];
            for (rule, runs) in table {
                let world = judged(rule, [a, b]);
                assert_eq!(world.status(), RunStatus::Completed, "{rule} {a:?} {b:?}");
                assert_eq!(world.nodes_of("node.completed").contains(&"target"), runs, "{rule} {a:?} {b:?}");
                assert_eq!(world.nodes_of("node.skipped").contains(&"target"), !runs, "{rule} {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn the_default_rule_is_all_success() {
    let world = run(workflow(
        &[("a", "core.noop", json!({})), ("b", "core.noop", json!({})), ("target", "core.noop", json!({}))],
        &[("a", "target", Value::Null), ("b", "target", json!({"condition": {"type": "falsy", "left": "variables"}}))],
    ));
    assert_eq!(world.nodes_of("node.skipped"), ["target"]);
}

#[test]
fn a_fate_that_is_certain_does_not_wait_for_the_slow_source() {
    let table = [
        ("all_success", "core.fail", "node.skipped"),
        ("none_failed", "core.fail", "node.skipped"),
        ("any_failed", "core.fail", "node.completed"),
        ("any_success", "core.noop", "node.completed"),
    ];
    for (rule, fast, event) in table {
        let world = run(workflow(
            &[
                ("fast", fast, json!({})),
                ("slow", "core.delay", json!({"ms": 1000})),
                ("target", "core.noop", json!({})),
                ("aside", "core.noop", json!({})),
            ],
            &[
                ("fast", "target", json!({"triggerRule": rule})),
                ("slow", "target", json!({"triggerRule": rule})),
                ("fast", "aside", json!({"triggerRule": "all_complete"})),
            ],
        ));
        assert_eq!(world.status(), RunStatus::Running);
        assert!(world.nodes_of(event).contains(&"target"), "{rule}");
    }
}

#[test]
fn rules_that_need_everybody_wait() {
    for rule in ["all_success", "all_complete", "none_failed"] {
        let mut world = run(workflow(
            &[
                ("fast", "core.noop", json!({})),
                ("slow", "core.delay", json!({"ms": 10})),
                ("target", "core.noop", json!({})),
            ],
            &[("fast", "target", json!({"triggerRule": rule})), ("slow", "target", json!({"triggerRule": rule}))],
        ));
        assert!(!world.nodes_of("node.started").contains(&"target"), "{rule}");
        world.wait(10);
        assert_eq!(world.nodes_of("node.completed"), ["fast", "slow", "target"], "{rule}");
    }
}

#[test]
fn edges_with_different_rules_must_all_be_satisfied() {
    let target = |first: &str, second: &str| {
        let world = run(workflow(
            &[("bad", "core.fail", json!({})), ("good", "core.noop", json!({})), ("target", "core.noop", json!({}))],
            &[("bad", "target", json!({"triggerRule": first})), ("good", "target", json!({"triggerRule": second}))],
        ));
        world.nodes_of("node.completed").contains(&"target")
    };
    assert!(target("any_failed", "all_success"));
    assert!(target("all_complete", "any_success"));
    assert!(!target("all_complete", "any_failed"));
}

#[test]
fn what_nobody_takes_up_fails_the_run_under_every_other_rule() {
    for (rule, handled) in [
        ("all_success", false),
        ("any_success", false),
        ("none_failed", false),
        ("all_complete", true),
        ("any_failed", true),
    ] {
        let world = run(workflow(
            &[("bad", "core.fail", json!({"code": "boom"})), ("target", "core.noop", json!({}))],
            &[("bad", "target", json!({"triggerRule": rule}))],
        ));
        let expected = if handled { RunStatus::Completed } else { RunStatus::Failed };
        assert_eq!(world.status(), expected, "{rule}");
    }
}
