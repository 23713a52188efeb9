//! Whatever models say and tools answer, and whenever: brackets and calls are closed once, logs fold from any point,
//! crashes change nothing, and a log replays to itself.

use crate::agent_game;
use crate::support;

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_game::game::Game;
use agent_game::generate::{Act, act, definition};
use baton_engine::{RunState, evolve, outstanding, snapshot, step_length};
use baton_model::{Event, Record};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use support::agent_audit::Audit;
use support::checkpoints::again;
use support::minds::SECRETS;
use support::second::second;
use support::versioned_nodes::Reader;
use support::{World, assert_short_answers, stored};

fn assert_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} shows in {text}");
    }
}

fn check(game: &mut Game) {
    let World { state, log, ledgers, .. } = &game.world;
    Audit::check(log);
    log.iter().for_each(|record| assert_no_secret(&record.public_json(&state.run)));
    Reader { plan: state.plan(), run: &state.run, ledgers, told: &game.told }.check(log);
    // The whole state, and every look taken on the way, is a fold of what is stored.
    let mut folded = RunState::new(state.run.clone(), Arc::clone(state.plan()));
    let mut looks = game.seen.iter().peekable();
    for record in log {
        folded = again(&evolve(folded, &stored(record)).expect("a stored log folds"));
        if let Some((_, view, effects)) = looks.next_if(|(seq, ..)| *seq == folded.next_seq()) {
            assert_eq!((&snapshot(&folded), &outstanding(&folded)), (view, effects));
            assert_short_answers(&folded, effects);
            assert_no_secret(&serde_json::to_string(view).unwrap());
        }
    }
    assert!(looks.next().is_none());
    assert_eq!(format!("{folded:?}"), format!("{state:?}"));
    let tokens: u64 =
        game.world.payloads("provider.usage").iter().map(|usage| usage["outputTokens"].as_u64().unwrap()).sum();
    let view = snapshot(state).unwrap();
    assert_eq!(view.metrics.and_then(|metrics| metrics.openwop_cost).map_or(0, |cost| cost.tokens.output), tokens);
    // Nobody hears what comes after the end.
    assert_eq!(outstanding(state), []);
    for command in game.desk.everything() {
        assert!(!game.say(&command), "{command:?} changed a run that has ended");
    }
}

fn essence(records: &[Record]) -> Vec<(u64, Event, Option<u64>)> {
    records.iter().map(|record| (record.seq, record.event.clone(), record.causation)).collect()
}

fn config() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.max(256);
    ProptestConfig { cases, max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    proptest::collection::vec(act(), 0..40)
}

fn verbosity() -> impl Strategy<Value = &'static str> {
    select(vec!["summary", "full", "off"])
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn agents_keep_their_promises(definition in definition(), acts in acts(), verbosity in verbosity()) {
        let mut game = Game::played(&definition, verbosity, &acts, false);
        check(&mut game);
        let crashed = Game::played(&definition, verbosity, &acts, true);
        prop_assert_eq!(&crashed.world.log, &game.world.log);
        prop_assert_eq!(&crashed.world.ledgers, &game.world.ledgers);
    }

    #[test]
    fn a_replay_of_agents_repeats_their_log(definition in definition(), acts in acts(), page in 1..30_usize) {
        let game = Game::played(&definition, "summary", &acts, false);
        let World { state, log, .. } = &game.world;
        let log: Vec<Record> = log.iter().map(stored).collect();
        for from in 0..=log.len() {
            let again = second(&state.run, state.plan(), &log, from, page);
            prop_assert_eq!(again.difference, None, "from {}", from);
            prop_assert_eq!(essence(&again.log), essence(&log[from..]), "from {}", from);
            prop_assert_eq!(format!("{:?}", again.state), format!("{state:?}"), "from {}", from);
        }
        // Nobody will ever tell how a run ends that has not ended; its replay ends all the same.
        let mut end = 0;
        while end < log.len() {
            end += step_length(&log[end..]);
            let cut = second(&state.run, state.plan(), &log[..end], 0, page);
            prop_assert_eq!(cut.difference, None, "{} records", end);
            prop_assert!(cut.state.status().is_terminal());
            Audit::check(&cut.log);
        }
    }
}

/// A game that never gets somewhere proves nothing about the place. And a schema that takes anything proves nothing
/// about what it takes.
#[test]
fn the_game_reaches_what_it_is_about() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut missing: BTreeSet<String> = [
        "agent.decided",
        "agent.invocation.completed",
        "agent.invocation.started",
        "agent.promptResolved",
        "agent.reasoned",
        "agent.toolCalled",
        "agent.toolReturned",
        "baton.effect.retried",
        "baton.effect.unknown",
        "envelope.nlToFormat.engaged",
        "envelope.recovery.applied",
        "envelope.refusal",
        "envelope.retry.attempted",
        "envelope.retry.exhausted",
        "envelope.truncated",
        "memory.written",
        "prompt.composed",
        "provider.usage",
        "workspace.updated",
        "core.workflowChain.confidence-escalated",
        "runOrchestrator.decided",
        "node.retried",
        "outcome completed",
        "outcome escalated",
        "outcome refused",
        "outcome failed",
        "policy retry",
        "policy verify",
        "policy ask",
        "policy fail",
        "verified",
        "code handoff_return_schema_violation",
        "code handoff_task_schema_violation",
        "code tool_rounds_exceeded",
        "code node_timeout",
        "code effect_outcome_unknown",
        "code envelope_refusal",
        "code approval_rejected",
        "code envelope_truncation_unrecoverable",
        "code run_cancelled",
        "asked low-confidence Accepted",
        "asked low-confidence Rejected",
        "asked x-host-baton-effect-unknown Answered",
        "asked x-host-baton-effect-unknown Accepted",
        "asked x-host-baton-effect-unknown Rejected",
        "asked x-host-baton-effect-unknown Cancelled",
        "veiled",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    for _ in 0..4000 {
        let definition = definition().new_tree(&mut runner).unwrap().current();
        let acts = acts().new_tree(&mut runner).unwrap().current();
        let game = Game::played(&definition, "summary", &acts, false);
        for record in &game.world.log {
            let kind = record.event.type_name();
            if missing.remove(kind) {
                let mut payload = serde_json::to_value(record.event.payload()).unwrap();
                assert_eq!(support::schemas::payload_violation(kind, &payload), None);
                payload["surprise"] = json!(1);
                assert!(
                    support::schemas::payload_violation(kind, &payload).is_some(),
                    "the schema of {kind} is closed"
                );
            }
            let seen = match &record.event {
                Event::AgentInvocationCompleted(event) => format!("outcome {}", json!(event.outcome).as_str().unwrap()),
                Event::EffectUnknown(event) => format!("policy {}", json!(event.policy).as_str().unwrap()),
                Event::EffectRetried(event) if event.verify => "verified".to_owned(),
                Event::NodeFailed(event) => format!("code {}", event.error.code),
                Event::RunCancelled(_) => "code run_cancelled".to_owned(),
                Event::InterruptResolved(event) => format!("asked {} {:?}", event.kind, event.outcome),
                Event::AgentToolReturned(event) if event.private.hidden.is_some() => "veiled".to_owned(),
                _ => continue,
            };
            missing.remove(&seen);
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("never seen: {missing:?}");
}
