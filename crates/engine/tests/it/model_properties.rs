//! Whatever models say, and whenever: logs are legal, fold from any point, and replay to themselves.

use crate::support;

use std::collections::BTreeSet;

use baton_engine::{Command, Phase, outstanding};
use baton_model::event::DrainPolicy;
use baton_model::{Event, Record};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::models::{Asked, CALL, asked, asking, config, refused, said, unreachable, valid};
use support::second::second;
use support::{World, run, stored, workflow};

#[derive(Clone, Debug)]
enum Act {
    Reply(Index, Said),
    /// An answer to a call that was made at some time, perhaps long over.
    Old(Index, Said),
    Wait(u64),
    Pause(bool),
    Resume,
    Cancel,
}

#[derive(Clone, Copy, Debug)]
enum Said {
    Valid,
    Refused,
    Prose,
    Nothing,
}

impl Said {
    fn reply(self) -> Result<baton_model::ModelReply, baton_model::Fault> {
        match self {
            Self::Valid => Ok(valid()),
            Self::Refused => Ok(refused()),
            Self::Prose => Ok(said("prose")),
            Self::Nothing => Err(unreachable()),
        }
    }
}

fn act() -> impl Strategy<Value = Act> {
    let word = || prop_oneof![4 => Just(Said::Valid), 1 => Just(Said::Refused), 2 => Just(Said::Prose), 2 => Just(Said::Nothing)];
    prop_oneof![
        8 => (any::<Index>(), word()).prop_map(|(call, word)| Act::Reply(call, word)),
        2 => (any::<Index>(), word()).prop_map(|(call, word)| Act::Old(call, word)),
        2 => (0..3000_u64).prop_map(Act::Wait),
        1 => any::<bool>().prop_map(Act::Pause),
        1 => Just(Act::Resume),
        1 => Just(Act::Cancel),
    ]
}

/// Calls one after the other and side by side, perhaps with another try or a time limit.
fn definition() -> impl Strategy<Value = Value> {
    (0..3_u32, prop::option::of(500..2000_u64), any::<bool>(), any::<bool>()).prop_map(
        |(retries, timeout, handled, chance)| {
            let mut loose = config();
            loose["nondeterministic"] = json!(chance);
            let nodes = [
                ("first", CALL, config()),
                ("left", CALL, loose),
                ("right", CALL, config()),
                ("join", "core.merge", json!({})),
                ("rescue", "core.noop", json!({})),
            ];
            let mut edges = vec![
                ("first", "left", Value::Null),
                ("first", "right", Value::Null),
                ("left", "join", Value::Null),
                ("right", "join", Value::Null),
            ];
            if handled {
                edges.push(("left", "rescue", json!({"triggerRule": "any_failed"})));
            }
            let mut definition = asking(workflow(&nodes, &edges));
            for node in definition["nodes"].as_array_mut().unwrap().iter_mut().take(3) {
                node["settings"] = json!({"maxRetries": retries});
                if let Some(timeout) = timeout {
                    node["settings"]["timeout"] = json!(timeout);
                }
            }
            definition
        },
    )
}

/// Plays the acts, then answers whatever is still asked until the run ends.
fn play(definition: Value, acts: &[Act]) -> World {
    let mut world = run(definition);
    let mut made: Vec<Asked> = Vec::new();
    for act in acts {
        let open = asked(&world.state);
        made.extend(open.iter().filter(|call| !made.contains(call)).cloned().collect::<Vec<_>>());
        match act {
            Act::Reply(_, _) if open.is_empty() => {}
            Act::Reply(call, word) => {
                world.reply(call.get(&open), word.reply());
            }
            Act::Old(call, word) if !made.is_empty() => {
                let call = call.get(&made).clone();
                let changed = world.reply(&call, word.reply());
                assert!(!changed || open.contains(&call), "an answer nobody waits for changed something");
            }
            Act::Old(..) => {}
            Act::Wait(ms) => world.wait(*ms),
            Act::Pause(drain) => {
                let drain = if *drain { DrainPolicy::DrainCurrentNode } else { DrainPolicy::Immediate };
                let _ = world.pause(drain);
            }
            Act::Resume => {
                let _ = world.resume();
            }
            Act::Cancel => world.cancel(),
        }
        assert_eq!(outstanding(&world.refolded()), outstanding(&world.state), "a restart wants the same");
    }
    for _ in 0..100 {
        if world.status().is_terminal() {
            return world;
        }
        if matches!(world.state.phase(), Phase::Paused { .. }) {
            world.resume().unwrap();
        } else if let Some(call) = asked(&world.state).first().cloned() {
            world.reply(&call, Ok(valid()));
        } else {
            assert!(world.sleep_until_next(), "stuck: {:?}", world.types());
        }
    }
    panic!("does not end: {:?}", world.types());
}

fn essence(records: &[Record]) -> Vec<(u64, Event, Option<u64>)> {
    records.iter().map(|record| (record.seq, record.event.clone(), record.causation)).collect()
}

fn config_of_tests() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.max(256);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config_of_tests())]

    #[test]
    fn any_log_with_calls_replays_to_itself(
        definition in definition(),
        acts in prop::collection::vec(act(), 0..25),
        page in 1..8_usize,
    ) {
        let world = play(definition, &acts);
        let log: Vec<Record> = world.log.iter().map(stored).collect();
        for from in 0..=log.len() {
            let again = second(&world.state.run, world.state.plan(), &log, from, page);
            prop_assert_eq!(again.difference, None, "from {}", from);
            prop_assert_eq!(essence(&again.log), essence(&log[from..]), "from {}", from);
        }
        // One answer for each call at most, and each before what became of it.
        Audit::check(&log);
        let mut answered = BTreeSet::new();
        for record in &log {
            if let Event::ProviderUsage(usage) = &record.event {
                let facts = &usage.private;
                let call = (usage.node_id.clone(), facts.visit, facts.attempt, facts.call);
                prop_assert!(answered.insert(call), "a call was answered twice");
            }
        }
        prop_assert_eq!(world.payloads("node.completed").iter().filter(|p| p["outputs"]["data"].is_object()).count()
            + world.payloads("envelope.refusal").len() <= answered.len(), true);
    }
}

#[test]
fn the_game_reaches_what_it_is_about() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut missing: BTreeSet<&str> = [
        "provider.usage",
        "envelope.refusal",
        "node.retried",
        "run.paused",
        "run.resumed",
        "run.cancelled",
        "run.completed",
    ]
    .into();
    for _ in 0..300 {
        let definition = definition().new_tree(&mut runner).unwrap().current();
        let acts = prop::collection::vec(act(), 0..25).new_tree(&mut runner).unwrap().current();
        for kind in play(definition, &acts).types() {
            missing.remove(kind);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_command_for_a_run_that_asks_nothing_is_nothing() {
    let mut world = run(workflow(&[("n", "core.noop", json!({}))], &[]));
    let reply = Command::ModelReplied {
        node: "n".into(),
        visit: 1,
        attempt: 0,
        call: 0,
        cost_usd: None,
        made: Box::default(),
        reply: Ok(valid()),
    };
    let before = world.log.len();
    world.command(&reply).unwrap();
    assert_eq!(world.log.len(), before);
}
