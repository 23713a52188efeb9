//! How graphs run: order, branches, joins, loops, retries and bounds.

use crate::support;

use baton_model::RunStatus::{Completed, Failed, Running};
use serde_json::json;
use support::{World, plan, run, start_command, workflow};

const NONE: serde_json::Value = serde_json::Value::Null;

#[test]
fn a_noop_run_is_four_records() {
    let world = run(workflow(&[("a", "core.noop", json!({}))], &[]));
    assert_eq!(world.types(), ["run.started", "node.started", "node.completed", "run.completed"]);
}

#[test]
fn a_chain_runs_in_order() {
    let world = run(workflow(
        &[("a", "core.noop", json!({})), ("b", "core.noop", json!({})), ("c", "core.noop", json!({}))],
        &[("a", "b", NONE), ("b", "c", NONE)],
    ));
    assert_eq!(world.nodes_of("node.completed"), ["a", "b", "c"]);
}

#[test]
fn a_branch_not_taken_is_skipped_and_so_is_what_needs_it() {
    let world = run(workflow(
        &[
            ("if", "core.conditional", json!({"expression": "1 > 2"})),
            ("yes", "core.noop", json!({})),
            ("no", "core.noop", json!({})),
            ("strict", "core.merge", json!({})),
            ("loose", "core.merge", json!({})),
        ],
        &[
            ("if", "yes", json!({"sourceOutput": "true"})),
            ("if", "no", json!({"sourceOutput": "false"})),
            ("yes", "strict", NONE),
            ("no", "strict", NONE),
            ("yes", "loose", json!({"triggerRule": "any_success"})),
            ("no", "loose", json!({"triggerRule": "any_success"})),
        ],
    ));
    assert_eq!(world.status(), Completed);
    assert_eq!(world.nodes_of("node.completed"), ["if", "no", "loose"]);
    assert_eq!(world.nodes_of("node.skipped"), ["yes", "strict"]);
}

#[test]
fn a_failure_with_a_handler_goes_on_and_without_one_ends_the_run() {
    let nodes = |edges: &[(&str, &str, serde_json::Value)]| {
        run(workflow(
            &[
                ("bad", "core.fail", json!({"code": "boom"})),
                ("next", "core.noop", json!({})),
                ("rescue", "core.noop", json!({})),
            ],
            edges,
        ))
    };
    let handled = nodes(&[("bad", "next", NONE), ("bad", "rescue", json!({"triggerRule": "any_failed"}))]);
    assert_eq!(handled.status(), Completed);
    assert_eq!(handled.nodes_of("node.completed"), ["rescue"]);
    assert_eq!(handled.nodes_of("node.skipped"), ["next"]);

    let ended = nodes(&[("bad", "next", NONE), ("bad", "rescue", NONE)]);
    assert_eq!(ended.status(), Failed);
    assert_eq!(ended.error_code(), Some("boom"));
    assert_eq!(*ended.types().last().unwrap(), "run.failed");
}

#[test]
fn a_loop_goes_round_and_leaves() {
    let world = run(workflow(
        &[
            ("sum", "core.setVariable", json!({"name": "sum", "value": 0})),
            ("loop", "core.loop", json!({"items": "[1, 2, 3]", "into": "item"})),
            ("add", "core.setVariable", json!({"assign": {"sum": "variables.sum + variables.item"}})),
            ("after", "core.noop", json!({})),
        ],
        &[
            ("sum", "loop", NONE),
            ("loop", "add", json!({"sourceOutput": "body"})),
            ("add", "loop", NONE),
            ("loop", "after", NONE),
        ],
    ));
    assert_eq!(world.status(), Completed);
    assert_eq!(world.variable("sum"), Some(&json!(6)));
    let completed = world.nodes_of("node.completed");
    assert_eq!(completed, ["sum", "loop", "add", "loop", "add", "loop", "add", "loop", "after"]);
}

#[test]
fn an_inner_loop_starts_anew_in_every_round_of_the_outer_one() {
    let world = run(workflow(
        &[
            ("outer", "core.loop", json!({"count": 2})),
            ("inner", "core.loop", json!({"count": 3})),
            ("work", "core.noop", json!({})),
            ("tail", "core.noop", json!({})),
        ],
        &[
            ("outer", "inner", json!({"sourceOutput": "body"})),
            ("inner", "work", json!({"sourceOutput": "body"})),
            ("work", "inner", NONE),
            ("inner", "tail", NONE),
            ("tail", "outer", NONE),
        ],
    ));
    assert_eq!(world.status(), Completed);
    let count = |node: &str| world.nodes_of("node.completed").iter().filter(|n| **n == node).count();
    assert_eq!((count("outer"), count("inner"), count("work"), count("tail")), (3, 8, 6, 2));
}

#[test]
fn a_loop_waits_for_what_its_body_started_on_the_side() {
    let mut world = run(workflow(
        &[
            ("loop", "core.loop", json!({"count": 2})),
            ("body", "core.noop", json!({})),
            ("side", "core.approvalGate", json!({})),
        ],
        &[("loop", "body", json!({"sourceOutput": "body"})), ("body", "loop", NONE), ("body", "side", NONE)],
    ));
    assert_eq!(world.nodes_of("node.completed"), ["loop", "body"]);
    assert!(!world.state.has_ready_work());
    world.answer("side", json!({"action": "accept"})).unwrap();
    assert_eq!(world.nodes_of("node.completed"), ["loop", "body", "side", "loop", "body"]);
    world.answer("side", json!({"action": "accept"})).unwrap();
    assert_eq!(world.status(), Completed);
    let keys: Vec<_> = world.payloads("interrupt.requested").iter().map(|p| p["key"].clone()).collect();
    assert_eq!(keys, ["side:1", "side:2"]);
}

#[test]
fn a_loop_that_failed_does_not_start_again() {
    let world = run(workflow(
        &[("loop", "core.loop", json!({"while": "true", "maxIterations": 2})), ("rescue", "core.noop", json!({}))],
        &[("loop", "loop", json!({"sourceOutput": "body"})), ("loop", "rescue", json!({"triggerRule": "any_failed"}))],
    ));
    assert_eq!(world.status(), Completed);
    assert_eq!(world.nodes_of("node.started"), ["loop", "loop", "loop", "rescue"]);
    assert_eq!(world.nodes_of("node.failed"), ["loop"]);
}

#[test]
fn a_paced_stream_keeps_its_pace_and_does_not_hold_up_others() {
    let mut start = start_command(json!({}));
    let provider = json!({"id": "stream-text", "config": {"tokens": ["a", "b", "c"], "delayMsPerToken": 10}});
    start.settings.configurable.insert("mockProvider".to_owned(), provider);
    let definition = workflow(
        &[
            ("stream", "core.ai.callPrompt", json!({})),
            ("nap", "core.delay", json!({"ms": 12})),
            ("next", "core.noop", json!({})),
        ],
        &[("nap", "next", NONE)],
    );
    let mut world = World::started(plan(definition), start);
    let mut moments = Vec::new();
    let begun = world.now;
    while world.status() == Running {
        moments.push((world.now.millis_since(begun), world.nodes_of("output.chunk").len()));
        assert!(world.sleep_until_next());
    }
    assert_eq!(moments, [(0, 0), (10, 1), (12, 1), (20, 2)]);
    assert_eq!(world.nodes_of("node.completed"), ["nap", "next", "stream"]);
    assert_eq!(world.payloads("node.completed")[2]["outputs"], json!({"text": "abc"}));
}

#[test]
fn a_loop_with_nothing_to_do_skips_its_body() {
    let world = run(workflow(
        &[
            ("loop", "core.loop", json!({"count": 0})),
            ("body", "core.noop", json!({})),
            ("after", "core.noop", json!({})),
        ],
        &[("loop", "body", json!({"sourceOutput": "body"})), ("body", "loop", NONE), ("loop", "after", NONE)],
    ));
    assert_eq!(world.status(), Completed);
    assert_eq!(world.nodes_of("node.completed"), ["loop", "after"]);
    assert_eq!(world.nodes_of("node.skipped"), ["body"]);
}

#[test]
fn a_loop_is_bounded() {
    let world = run(workflow(
        &[("loop", "core.loop", json!({"while": "true", "maxIterations": 3})), ("body", "core.noop", json!({}))],
        &[("loop", "body", json!({"sourceOutput": "body"})), ("body", "loop", NONE)],
    ));
    assert_eq!(world.error_code(), Some("loop_limit_exceeded"));
    assert_eq!(world.nodes_of("node.completed").iter().filter(|n| **n == "body").count(), 3);
    assert_eq!(world.nodes_of("workflow.loopback-limit"), ["loop"]);
}

#[test]
fn retries_back_off_and_then_give_up() {
    let mut definition = workflow(&[("bad", "core.fail", json!({}))], &[]);
    definition["settings"] = json!({"maxRetries": 2, "retryDelayMs": 100});
    let mut world = run(definition);
    assert_eq!(world.status(), Running);
    world.wait(100);
    assert_eq!(world.nodes_of("node.retried").len(), 2);
    world.wait(199);
    assert_eq!(world.status(), Running);
    world.wait(1);
    assert_eq!(world.status(), Failed);
    assert_eq!(world.nodes_of("node.started").len(), 3);
}

#[test]
fn the_node_bound_breaks_before_the_start_that_would_exceed_it() {
    let names = ["n1", "n2", "n3", "n4", "n5", "n6"];
    let nodes: Vec<_> = names.iter().map(|n| (*n, "core.noop", json!({}))).collect();
    let edges: Vec<_> = names.windows(2).map(|w| (w[0], w[1], NONE)).collect();
    let mut start = start_command(json!({}));
    start.settings.max_node_executions = 3;
    let world = World::started(plan(workflow(&nodes, &edges)), start);
    assert_eq!(world.error_code(), Some("recursion_limit_exceeded"));
    assert_eq!(world.nodes_of("node.started"), ["n1", "n2", "n3"]);
    assert_eq!(world.nodes_of("cap.breached"), ["n4"]);
    let types = world.types();
    assert_eq!(&types[types.len() - 2..], ["cap.breached", "run.failed"]);
}

#[test]
fn the_duration_bound_is_strict() {
    let mut start = start_command(json!({}));
    start.settings.max_duration_ms = 1000;
    let mut world = World::started(plan(workflow(&[("d", "core.delay", json!({"ms": 30000}))], &[])), start);
    world.wait(1000);
    assert_eq!(world.status(), Running);
    world.wait(1);
    assert_eq!(world.error_code(), Some("run_timeout"));
    assert_eq!(world.nodes_of("node.cancelled"), ["d"]);
}

#[test]
fn a_cycle_without_a_loop_is_refused_with_its_place() {
    let definition = workflow(
        &[("a", "core.noop", json!({})), ("b", "core.noop", json!({}))],
        &[("a", "b", NONE), ("b", "a", NONE)],
    );
    let problems = baton_engine::Plan::compile(definition, Default::default()).unwrap_err();
    assert_eq!(problems[0].pointer, "/nodes/0");
}

#[test]
fn folding_the_log_gives_the_same_view() {
    let world = run(workflow(
        &[("loop", "core.loop", json!({"count": 2})), ("body", "core.delay", json!({"ms": 0}))],
        &[("loop", "body", json!({"sourceOutput": "body"})), ("body", "loop", NONE)],
    ));
    assert_eq!(baton_engine::snapshot(&world.refolded()), baton_engine::snapshot(&world.state));
}
