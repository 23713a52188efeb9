//! A log that is not what the engine made of it is found out, at the right place, and its replay ends all the same.

use crate::loops;
use crate::support;

use baton_engine::step_length;
use baton_model::event::{DivergenceKind, NodeSkipped, ReplayDiverged};
use baton_model::{Event, EventId, Record, RunId};
use loops::generate as loop_generate;
use loops::sim::Sim;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use support::second::{Second, second};
use support::walk::Walk;
use support::{World, generate, script};

fn config() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.max(256);
    ProptestConfig { cases, max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() }
}

/// The steps that the engine took by itself: where each begins and how long it is.
fn own_steps(log: &[Record]) -> Vec<(usize, usize)> {
    let mut steps = Vec::new();
    let mut begin = 0;
    while begin < log.len() {
        let length = step_length(&log[begin..]);
        if log[begin].part.is_some_and(|part| !part.outside) {
            steps.push((begin, length));
        }
        begin += length;
    }
    steps
}

fn again(world: &World, log: &[Record]) -> Second {
    second(&world.state.run, world.state.plan(), log, 0, 11)
}

/// It ended, and said once where it went another way.
fn check_told(found: &Second, seq: usize, kind: DivergenceKind) {
    assert!(found.state.status().is_terminal(), "{:?}", found.state.phase());
    let difference = found.difference.as_ref().expect("it is found out");
    assert_eq!((difference.seq, difference.kind), (seq as u64, kind), "{difference:?}");
    let told: Vec<&ReplayDiverged> = found
        .log
        .iter()
        .filter_map(|record| match &record.event {
            Event::ReplayDiverged(event) => Some(event),
            _ => None,
        })
        .collect();
    let [told] = told[..] else { panic!("told once: {told:?}") };
    assert_eq!((told.at_sequence, told.divergence_kind), (seq as u64, kind));
    assert_eq!(told.source_run_id, RunId::new("run_source"));
    let original = difference.original.as_ref();
    let place = original.map(|_| EventId::at(&RunId::new("run_source"), seq as u64));
    assert_eq!(told.original_event_id, place);
    let point = original.or(difference.replayed.as_ref()).map(Event::type_name);
    assert_eq!(told.divergence_point.as_deref(), point);
}

/// Where the world said the same and the engine decided the same, only the remark is new.
fn check_only_remarked(source: &World, found: &Second) {
    let remark = found.log.iter().position(|record| matches!(record.event, Event::ReplayDiverged(_))).unwrap() as u64;
    let moved = |seq: u64| if seq >= remark { seq + 1 } else { seq };
    let expected =
        source.log.iter().map(|record| (moved(record.seq), record.event.clone(), record.causation.map(moved)));
    let others = found.log.iter().filter(|record| record.seq != remark);
    let made: Vec<_> = others.map(|record| (record.seq, record.event.clone(), record.causation)).collect();
    assert_eq!(made, expected.collect::<Vec<_>>());
}

/// What a node made is not what is written there.
fn check_another_output(world: &World, which: &Index) {
    let completed = |record: &&Record| {
        matches!(record.event, Event::NodeCompleted(_)) && record.part.is_some_and(|part| !part.outside)
    };
    let places: Vec<usize> = world.log.iter().filter(completed).map(|record| record.seq as usize).collect();
    if places.is_empty() {
        return;
    }
    let seq = *which.get(&places);
    let mut log = world.log.clone();
    let Event::NodeCompleted(event) = &mut log[seq].event else { panic!() };
    event.outputs.insert("forged".to_owned(), json!(1));
    let found = again(world, &log);
    check_told(&found, seq, DivergenceKind::Output);
    check_only_remarked(world, &found);
}

/// Another event stands where one was.
fn check_another_type(world: &World, which: &Index) {
    let places: Vec<usize> =
        own_steps(&world.log).into_iter().flat_map(|(begin, length)| begin..begin + length).collect();
    let seq = *which.get(&places);
    if world.log[seq].event.type_name() == "node.skipped" {
        return;
    }
    let mut log = world.log.clone();
    log[seq].event = NodeSkipped { node_id: "nowhere".into(), reason: None }.into();
    check_told(&again(world, &log), seq, DivergenceKind::TypeMismatch);
}

/// One record is missing and the others have closed ranks.
fn check_missing(world: &World, which: &Index) {
    let steps: Vec<(usize, usize)> = own_steps(&world.log).into_iter().filter(|(_, length)| *length > 1).collect();
    if steps.is_empty() {
        return;
    }
    let (begin, length) = *which.get(&steps);
    for seq in begin + 1..begin + length {
        let mut log = world.log.clone();
        let gone = log.remove(seq);
        let moved = |at: u64| if at > seq as u64 { at - 1 } else { at };
        for record in &mut log[seq..] {
            record.seq -= 1;
            record.causation = record.causation.map(moved);
        }
        let kind = match log.get(seq).filter(|_| seq + 1 < begin + length) {
            None => DivergenceKind::Extra,
            Some(next) if next.event.type_name() == gone.event.type_name() => DivergenceKind::Output,
            Some(_) => DivergenceKind::TypeMismatch,
        };
        // Two of the same cannot be told apart: the one that is missed is the last of them.
        if log.get(seq).is_some_and(|next| next.event == gone.event) {
            continue;
        }
        check_told(&again(world, &log), seq, kind);
    }
}

/// A whole step is missing. If the engine went on by itself at once, it is found out there; if the world cut in or time
/// passed, the log may well be one that could have been. Never a hang.
fn check_missing_step(world: &World, which: &Index) {
    let steps = own_steps(&world.log);
    let (begin, length) = *which.get(&steps);
    let at_once = |other: usize| world.log[other].at == world.log[begin].at;
    let followed = steps.iter().any(|(other, _)| *other == begin + length && at_once(*other));
    let mut log = world.log.clone();
    log.drain(begin..begin + length);
    for (seq, record) in log.iter_mut().enumerate() {
        record.seq = seq as u64;
    }
    let found = again(world, &log);
    assert!(found.state.status().is_terminal());
    assert!(found.difference.is_some() || !followed, "it is found out");
    assert!(found.difference.is_none_or(|difference| difference.seq >= begin as u64));
}

fn check(world: &World, which: &Index) {
    if own_steps(&world.log).is_empty() {
        return;
    }
    check_another_output(world, which);
    check_another_type(world, which);
    check_missing(world, which);
    check_missing_step(world, which);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_forged_log_of_any_workflow_is_found_out(
        definition in generate::workflow(),
        steps in script::steps(),
        which in any::<Index>(),
    ) {
        check(&Walk::to_the_end(definition.0, 5, 100_000, &steps), &which);
    }

    #[test]
    fn a_forged_log_of_any_loop_is_found_out(
        case in loop_generate::case(),
        steps in loop_generate::steps(),
        which in any::<Index>(),
    ) {
        let mut sim = Sim::new(&case, 0);
        for (step, settle) in &steps {
            sim.step(step);
            if *settle {
                sim.settle();
            }
        }
        sim.finish();
        check(&sim.world, &which);
    }
}
