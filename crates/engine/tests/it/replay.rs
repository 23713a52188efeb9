//! Going through any log again comes to the same log, from wherever one begins.

use crate::loops;
use crate::support;

use baton_engine::step_length;
use baton_model::event::RunCancelled;
use baton_model::{Event, Record, RunStatus};
use loops::generate::{self as loop_generate, Case};
use loops::sim::Sim;
use proptest::prelude::*;
use support::second::{Second, second};
use support::walk::Walk;
use support::{World, generate, script, stored};

/// `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(256)
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: cases(), max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() }
}

fn looped(case: &Case, steps: &[(loop_generate::Step, bool)]) -> World {
    let mut sim = Sim::new(case, 0);
    for (step, settle) in steps {
        sim.step(step);
        if *settle {
            sim.settle();
        }
    }
    sim.finish();
    sim.world
}

/// What a replay must repeat of a record; how it came about is the shell's to say.
fn essence(records: &[Record]) -> Vec<(u64, i64, Event, Option<u64>)> {
    records.iter().map(|record| (record.seq, record.at.as_micros(), record.event.clone(), record.causation)).collect()
}

/// From every point of the log, and however much of it is seen at a time.
fn check_every_point(world: &World, page: usize) {
    let log: Vec<Record> = world.log.iter().map(stored).collect();
    let (run, plan) = (&world.state.run, world.state.plan());
    for from in 0..=log.len() {
        let Second { state, log: made, difference } = second(run, plan, &log, from, page);
        assert_eq!(difference, None, "from {from}");
        assert_eq!(essence(&made), essence(&log[from..]), "from {from}");
        assert_eq!(format!("{state:?}"), format!("{:?}", world.state), "from {from}");
    }
}

/// Nobody will ever tell how a run ends that has not ended; its replay ends all the same, and says why.
fn check_beginnings(world: &World) {
    let (run, plan) = (&world.state.run, world.state.plan());
    let mut end = 0;
    while end < world.log.len() {
        end += step_length(&world.log[end..]);
        let log = &world.log[..end];
        if log.last().unwrap().event.is_terminal() {
            continue;
        }
        let Second { state, log: made, difference } = second(run, plan, log, 0, 50);
        assert_eq!(difference, None, "{end} records");
        assert_eq!(essence(&made[..end]), essence(log), "{end} records: what there is comes out the same");
        assert!(state.status().is_terminal(), "{end} records: {:?}", state.phase());
        let ending = log.iter().rev().find_map(|record| match &record.event {
            Event::RunEnding(event) => Some(event.clone()),
            _ => None,
        });
        if ending.is_none() {
            assert_eq!(state.status(), RunStatus::Cancelled);
            let Event::RunCancelled(RunCancelled { reason, .. }) = &made.last().unwrap().event else { panic!() };
            assert_eq!(reason.as_deref(), Some("source-has-not-ended"));
        }
        let again = second(run, plan, log, 0, 3);
        assert_eq!(essence(&again.log), essence(&made), "{end} records: twice is once");
    }
}

/// A log that does not say how its records came about is taken as it stands.
fn check_without_parts(world: &World) {
    let log: Vec<Record> = world.log.iter().map(|record| Record { part: None, ..record.clone() }).collect();
    let Second { log: made, difference, .. } = second(&world.state.run, world.state.plan(), &log, 0, 7);
    assert_eq!(difference, None);
    assert_eq!(essence(&made), essence(&log));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_replay_of_any_workflow_repeats_its_log(
        definition in generate::workflow(),
        steps in script::steps(),
        stream_delay in prop_oneof![Just(0_u64), 1_u64..20],
        max_duration_ms in prop_oneof![3 => Just(100_000_u64), 1 => 1_u64..200],
        page in 1_usize..40,
    ) {
        let world = Walk::to_the_end(definition.0, stream_delay, max_duration_ms, &steps);
        check_every_point(&world, page);
        check_beginnings(&world);
        check_without_parts(&world);
    }

    #[test]
    fn a_replay_of_any_loop_repeats_its_log(
        case in loop_generate::case(),
        steps in loop_generate::steps(),
        page in 1_usize..40,
    ) {
        let world = looped(&case, &steps);
        check_every_point(&world, page);
        check_beginnings(&world);
        check_without_parts(&world);
    }
}
