//! A branch from any point of any log goes on, with its own children and the time that was left.

use crate::loops;
use crate::support;

use std::collections::BTreeSet;

use baton_engine::{Effect, Phase, RunState, evolve, outstanding, snapshot, step_length};
use baton_model::event::ChainPhase;
use baton_model::{Event, ForkMode, Origin, Overlay, Owner, Record, RunId, SideEffects, TenantId, Timestamp, Versions};
use loops::generate as loop_generate;
use loops::sim::Sim;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::second::{folded, second};
use support::walk::Walk;
use support::{World, generate, plan, script, start_command, workflow};

/// How long after the source stood there it is forked.
const LATER_MS: u64 = 1_000_000_000;

fn cases() -> u32 {
    ProptestConfig::default().cases.max(128)
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: cases(), max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() }
}

pub(crate) fn origin(state: &RunState, seq: usize, variables: Map<String, Value>) -> Origin {
    let moment = state.not_before(Timestamp::default());
    Origin {
        source: state.run.clone(),
        seq: seq as u64,
        requested: None,
        mode: ForkMode::Branch,
        at: moment.plus_millis(LATER_MS),
        moment: Some(moment),
        length: None,
        versions: Versions::default(),
        overlay: Overlay { variables, ..Overlay::default() },
        side_effects: SideEffects::default(),
        workers: None,
    }
}

fn branched(state: &RunState, seq: usize) -> RunState {
    let overlay = [("laid".to_owned(), json!("over"))].into_iter().collect();
    state.clone().branch(RunId::new("run_branch"), &origin(state, seq, overlay))
}

/// The children a run wants something done about, and what.
fn children(state: &RunState) -> BTreeSet<RunId> {
    script::wanted_children(state).into_iter().collect()
}

/// The ends of steps: where a log can be cut. A branch inside a step has the rest of it.
fn boundaries(log: &[Record]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut end = 0;
    while end < log.len() {
        end += step_length(&log[end..]);
        ends.push(end);
    }
    ends
}

fn check_beginning(source: &RunState, branch: &RunState) {
    assert_eq!(branch.next_seq(), source.next_seq());
    assert_eq!(branch.run, RunId::new("run_branch"));
    assert_eq!(branch.memory_scope(), "run_branch", "what it remembers is its own");
    let mut variables = source.variables().clone();
    variables.insert("laid".to_owned(), json!("over"));
    assert_eq!(branch.variables(), &variables);
    let (was, is) = (snapshot(source).unwrap(), snapshot(branch).unwrap());
    assert_eq!(is.channels, was.channels);
    assert_eq!((is.outputs, is.error, is.run_orchestrator), (was.outputs, was.error, was.run_orchestrator));
    assert_eq!(is.parent_run_id, None);
    // Nothing is asked of the source's children, and none of those that had ended is asked for again.
    let (theirs, own) = (children(source), children(branch));
    assert!(theirs.is_disjoint(&own), "{theirs:?} and {own:?}");
    assert_eq!(theirs.len(), own.len(), "as many of its own");
    for effect in outstanding(branch) {
        assert!(!matches!(effect, Effect::AwaitChild { .. }), "its children have not been made yet");
    }
    // The time that was left is left.
    let later = |at: Timestamp| at.plus_millis(LATER_MS);
    assert_eq!(branch.wake_at(), source.wake_at().map(later));
    let ends =
        |state: &RunState| -> Vec<_> { state.interrupts().map(|one| (one.node.clone(), one.expires_at)).collect() };
    let expected: Vec<_> = ends(source).into_iter().map(|(node, end)| (node, end.map(later))).collect();
    assert_eq!(ends(branch), expected);
    if let (Phase::Paused { at: was, .. }, Phase::Paused { at: is, .. }) = (source.phase(), branch.phase()) {
        assert_eq!(*is, later(*was));
    }
    // And what is over did not end before it began.
    let span = |state: &RunState| snapshot(state).map(|seen| (seen.started_at, seen.completed_at)).unwrap();
    let (began, ended) = span(source);
    assert_eq!(span(branch), (began.map(later), ended.map(later)));
}

/// Each step of a handoff is caused by the one before it, of the same worker and about the same child.
fn check_chains(log: &[Record]) {
    for record in log {
        let Event::ChainEvent(event) = &record.event else { continue };
        let before = match event.phase {
            ChainPhase::DispatchBegan => continue,
            ChainPhase::DispatchSucceeded | ChainPhase::DispatchFailed => ChainPhase::DispatchBegan,
            ChainPhase::ChildCompleted | ChainPhase::ChildFailed | ChainPhase::ChildCancelled => {
                ChainPhase::DispatchSucceeded
            }
            ChainPhase::OutputHarvested => ChainPhase::ChildCompleted,
        };
        let cause = &log[record.causation.unwrap() as usize];
        let Event::ChainEvent(caused) = &cause.event else { panic!("{record:?} is caused by {cause:?}") };
        assert_eq!((caused.phase, caused.private.ordinal), (before, event.private.ordinal), "{record:?}");
        if before != ChainPhase::DispatchBegan {
            assert_eq!(caused.child_run_id, event.child_run_id, "{record:?}");
        }
    }
}

/// Branches off at every step and goes on to the end; each time the whole way folds, and can be gone again.
fn check_every_point(world: &World) {
    let (run, plan) = (&world.state.run, world.state.plan());
    for seq in boundaries(&world.log) {
        let source = folded(run, plan, &world.log, seq);
        let branch = branched(&source, seq);
        check_beginning(&source, &branch);
        if source.status().is_terminal() {
            assert_eq!(branch.status(), source.status());
            assert_eq!(outstanding(&branch), []);
            continue;
        }
        let theirs = children(&source);
        let mut walk = Walk::of(branch.clone(), world.ledgers.clone());
        walk.finish();
        let World { state: ended, log, .. } = walk.world;
        assert!(ended.status().is_terminal());
        assert!((seq as u64..).zip(&log).all(|(place, record)| record.seq == place), "no gap");
        let refolded = log.iter().try_fold(branch, evolve).expect("the branch folds");
        assert_eq!(format!("{refolded:?}"), format!("{ended:?}"), "fork at {seq}");
        check_chains(&[&world.log[..seq], &log].concat());
        let told: BTreeSet<String> = log.iter().map(|record| format!("{:?}", record.event)).collect();
        for child in &theirs {
            assert!(!told.iter().any(|event| event.contains(child.as_str())), "{child} is the source's");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_branch_of_any_workflow_goes_on(
        definition in generate::workflow(),
        steps in script::steps(),
        stream_delay in prop_oneof![Just(0_u64), 1_u64..20],
        max_duration_ms in prop_oneof![3 => Just(100_000_u64), 1 => 1_u64..200],
    ) {
        check_every_point(&Walk::to_the_end(definition.0, stream_delay, max_duration_ms, &steps));
    }

    #[test]
    fn a_branch_of_any_loop_goes_on(case in loop_generate::case(), steps in loop_generate::steps()) {
        let mut sim = Sim::new(&case, 0);
        for (step, settle) in &steps {
            sim.step(step);
            if *settle {
                sim.settle();
            }
        }
        sim.finish();
        check_every_point(&sim.world);
    }
}

/// An hour's delay of which ten minutes are over has fifty minutes left, whenever it is forked.
#[test]
fn a_delay_has_left_what_it_had_left() {
    let definition = workflow(
        &[("wait", "core.delay", json!({"ms": 3_600_000})), ("after", "core.noop", json!({}))],
        &[("wait", "after", json!({}))],
    );
    let mut start = start_command(json!({}));
    start.settings.max_duration_ms = 10_000_000;
    let mut world = World::started(plan(definition), start);
    world.wait(600_000);
    world.command(&script_variables()).unwrap();
    let fork = origin(&world.state, world.log.len(), Map::new());
    let mut branch = world.state.clone().branch(RunId::new("run_branch"), &fork);
    assert_eq!(branch.wake_at(), Some(fork.at.plus_millis(3_000_000)));
    // Pausing and going on again knows about it too.
    let paused = baton_engine::Command::Pause { reason: None, drain: baton_model::event::DrainPolicy::Immediate };
    let drafts = baton_engine::decide(&branch, &paused, fork.at).unwrap();
    baton_engine::apply(&mut branch, drafts, fork.at).unwrap();
    assert!(matches!(branch.phase(), Phase::Paused { .. }));
    let second_fork = origin(&branch, 9, Map::new());
    let branch = branch.branch(RunId::new("run_twig"), &second_fork);
    assert!(matches!(branch.phase(), Phase::Paused { at, .. } if *at == second_fork.at));
}

/// Something the world says, so that the log's clock moves.
fn script_variables() -> baton_engine::Command {
    let variables = json!({"moved": true}).as_object().cloned().unwrap();
    baton_engine::Command::SetVariables { variables }
}

/// What is laid over wins over what the log says, also where a value must not be seen.
#[test]
fn an_overlay_is_laid_over_inputs_variables_and_bounds() {
    let mut definition = workflow(&[("gate", "core.approvalGate", json!({"title": "?"}))], &[]);
    definition["variables"] = json!([
        {"name": "secret", "type": "string", "sensitive": true},
        {"name": "plain", "type": "string", "defaultValue": "old"}
    ]);
    let world = World::started(plan(definition), start_command(json!({"secret": "s1", "plain": "new"})));
    let mut fork = origin(&world.state, world.log.len(), Map::new());
    let map = |value: Value| value.as_object().cloned().unwrap();
    fork.overlay = Overlay {
        inputs: map(json!({"secret": "s2"})),
        variables: map(json!({"plain": "newest"})),
        configurable: map(json!({"k": 1})),
        max_duration_ms: Some(5),
        max_loop_iterations: Some(6),
        max_node_executions: Some(7),
        max_fan_out: Some(8),
        budget: None,
        agent_threshold: Some(0.9),
        decision_floor: Some(0.6),
        owner: Some(Owner { tenant: TenantId::new("here"), principal: Some("me".to_owned()), subject: None }),
        tool_grant: Some(vec!["mcp:a".to_owned()]),
        tool_scopes: Some(vec!["memory:read".to_owned()]),
        models: Default::default(),
    };
    let branch = world.state.clone().branch(RunId::new("run_branch"), &fork);
    assert_eq!(branch.variables()["secret"], "s2");
    assert_eq!(branch.variables()["plain"], "newest");
    let facts = &branch.started().unwrap().private;
    assert_eq!((facts.max_duration_ms, facts.max_loop_iterations, facts.max_node_executions), (5, 6, 7));
    assert_eq!((facts.max_fan_out, facts.escalation.floor), (8, 0.6));
    assert_eq!(Some(&snapshot(&branch).unwrap().owner), fork.overlay.owner.as_ref());
    assert_eq!(facts.configurable["k"], 1);
    assert_eq!((&facts.tool_grant, &facts.tool_scopes), (&fork.overlay.tool_grant, &fork.overlay.tool_scopes));
    assert!((facts.escalation.agent_threshold - 0.9).abs() < f64::EPSILON);
    let shown = serde_json::to_string(&snapshot(&branch).unwrap()).unwrap();
    assert!(!shown.contains("s1") && !shown.contains("s2"), "{shown}");
    assert_eq!(branch.started().unwrap().full_inputs()["secret"], "s2");
}

/// A replay of the source of a branch is not disturbed by it: the same log comes out again.
#[test]
fn a_branch_leaves_its_source_alone() {
    let definition = workflow(&[("gate", "core.approvalGate", json!({"title": "?"}))], &[]);
    let mut world = World::started(plan(definition), start_command(json!({})));
    let before = format!("{:?}", world.state);
    let _branch = branched(&world.state, world.log.len());
    assert_eq!(format!("{:?}", world.state), before);
    world.answer("gate", json!({"action": "accept"})).unwrap();
    let again = second(&world.state.run, world.state.plan(), &world.log, 0, 2);
    assert_eq!(again.difference, None);
}
