//! What holds for every supervisor loop, whatever is decided and in whatever order the world speaks. The promises
//! themselves stand in `loops/audit.rs`, which reads every record as it is written.

use crate::loops;
use crate::support;

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_engine::{RunState, evolve, outstanding, snapshot};
use baton_model::{Event, Record, TurnSnapshot};
use loops::audit::Auditor;
use loops::generate::{self, Case, Step};
use loops::sim::Sim;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::json;
use support::checkpoints::again;
use support::versioned::VersionedStores;
use support::{World, assert_short_answers, stored};

fn played(case: &Case, steps: &[(Step, bool)]) -> Sim {
    crashed(case, steps, 0)
}

/// The same, in a process that dies after every n-th step.
fn crashed(case: &Case, steps: &[(Step, bool)], crashes: usize) -> Sim {
    let mut sim = Sim::new(case, crashes);
    for (step, settle) in steps {
        sim.step(step);
        if *settle {
            sim.settle();
        }
    }
    sim.finish();
    sim
}

/// Reading the log up to any point and going on from there is the same as never having stopped.
fn check_folds(sim: &Sim) {
    let mut state = RunState::new(sim.world.state.run.clone(), Arc::clone(sim.world.state.plan()));
    let mut looks = sim.looks.iter().peekable();
    for record in &sim.world.log {
        state = again(&evolve(state, &stored(record)).expect("a stored log folds"));
        if let Some((_, view, effects)) = looks.next_if(|(seq, ..)| *seq == state.next_seq()) {
            assert_eq!(&snapshot(&state), view);
            assert_eq!(&outstanding(&state), effects);
            assert_short_answers(&state, effects);
        }
    }
    assert!(looks.next().is_none());
    assert_eq!(format!("{state:?}"), format!("{:?}", sim.world.state), "the whole state is a fold of the log");
}

/// `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(1024)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_loop_keeps_its_promises_and_ends(case in generate::case(), steps in generate::steps()) {
        let mut sim = played(&case, &steps);
        check_folds(&sim);
        sim.disturb();
    }

    #[test]
    fn crashing_between_any_two_steps_leads_to_the_same_log(
        case in generate::case(),
        steps in generate::steps(),
        crashes in 1_usize..5,
    ) {
        let (calm, shaken) = (played(&case, &steps), crashed(&case, &steps, crashes));
        prop_assert_eq!(calm.world.log, shaken.world.log);
        prop_assert_eq!(calm.world.ledgers, shaken.world.ledgers);
    }
}

fn objects(case: &Case, log: &[Record], ledgers: &VersionedStores) -> bool {
    let reading = || {
        let mut auditor = Auditor::new(case, [("x".to_owned(), json!(1))].into_iter().collect());
        log.iter().for_each(|record| auditor.see(record, ledgers));
    };
    std::panic::catch_unwind(reading).is_err()
}

/// An auditor who signs anything proves nothing: he objects to a completed log from which one step of the loop is
/// missing, stands twice, or names another cause.
#[test]
fn the_auditor_objects_to_a_log_that_was_tampered_with() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut tampered = 0;
    while tampered < 300 {
        let case = generate::case().new_tree(&mut runner).unwrap().current();
        let World { log, ledgers, .. } = played(&case, &[]).world;
        if !matches!(log.last().unwrap().event, Event::RunCompleted(_)) {
            continue;
        }
        assert!(!objects(&case, &log, &ledgers));
        for (place, record) in log.iter().enumerate() {
            let caused = match record.event {
                Event::OrchestratorDecided(_) => false,
                Event::ChainEvent(_) | Event::FanOut(_) | Event::Join(_) | Event::ConfidenceEscalated(_) => true,
                _ => continue,
            };
            let mut without = log.clone();
            without.remove(place);
            let mut twice = log.clone();
            twice.insert(place, record.clone());
            let mut elsewhere = log.clone();
            elsewhere[place].causation = Some(record.seq);
            let kind = record.event.type_name();
            assert!(objects(&case, &without, &ledgers), "{kind} at {place} is not missed");
            assert!(objects(&case, &twice, &ledgers), "{kind} at {place} may stand twice");
            assert!(!caused || objects(&case, &elsewhere, &ledgers), "{kind} at {place} may have any cause");
            tampered += 1;
        }
    }
}

/// Nor does he sign a turn that is on record as having seen another moment, be it taken for the first time or again.
#[test]
fn the_auditor_objects_to_a_turn_that_saw_another_moment() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut again = 0;
    while again < 20 {
        let case = generate::case().new_tree(&mut runner).unwrap().current();
        let steps = generate::steps().new_tree(&mut runner).unwrap().current();
        let World { log, ledgers, .. } = played(&case, &steps).world;
        for (place, record) in log.iter().enumerate() {
            let Event::NodeStarted(event) = &record.event else { continue };
            let Some(frozen) = event.private.frozen else { continue };
            let mut event = event.clone();
            event.private.frozen = Some(TurnSnapshot { at: frozen.at.plus_millis(1), ..frozen });
            again += event.attempt;
            let mut moved = log.clone();
            moved[place].event = event.into();
            assert!(objects(&case, &moved, &ledgers), "the turn at {place} may have seen any moment");
        }
    }
}

/// A generator that never gets somewhere proves nothing about the place.
#[test]
fn random_loops_reach_everything_that_is_promised() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut missing: BTreeSet<String> = [
        "DispatchBegan",
        "DispatchSucceeded",
        "DispatchFailed",
        "ChildCompleted",
        "ChildFailed",
        "ChildCancelled",
        "OutputHarvested",
        "join Satisfied",
        "join Partial",
        "join Failed",
        "merge Accepted",
        "merge Rejected",
        "fan_out_unsupported",
        "validation_error",
        "dispatch_join_failed",
        "another attempt",
        "sent back after the world moved on",
        "cap.breached",
        "run.paused",
        "run.completed",
        "run.failed",
        "run.cancelled",
    ]
    .map(str::to_owned)
    .into();
    for kind in ["approval", "clarification", "x-host-baton-low-confidence", "low-confidence"] {
        for outcome in ["Accepted", "Answered", "Rejected"] {
            missing.insert(format!("held {kind} {outcome}"));
        }
    }
    for _ in 0..2000 {
        let case = generate::case().new_tree(&mut runner).unwrap().current();
        let steps = generate::steps().new_tree(&mut runner).unwrap().current();
        let sim = played(&case, &steps);
        missing.retain(|thing| !sim.auditor.seen.contains(thing));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never seen: {missing:?}");
}
