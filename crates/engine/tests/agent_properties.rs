//! Whatever models say and tools answer, and whenever: brackets and calls are closed once, logs fold from any point,
//! crashes change nothing, and a log replays to itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_engine::{Command, Consult, Effect, Phase, RunState, decide, evolve, outstanding, snapshot, step_length};
use baton_model::event::DrainPolicy;
use baton_model::{Event, Fault, Record, RunId, RunStatus};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::ledger_nodes::Reader;
use support::minds::{Desk, Given, SECRETS, Said, given, said};
use support::second::second;
use support::{World, agents, beside, models, script, start_command, stored};

#[derive(Clone, Debug)]
enum Act {
    Think(Index, Said),
    Return(Index, Given),
    Answer(Index, Value),
    Wait(u64),
    NextTimer,
    Pause(bool),
    Resume,
    Cancel,
    /// From now on questions about memory, workspace and agents are answered at once, or only when it is their turn.
    Prompt(bool),
    Consult,
    Unreadable,
    Child,
    Crash,
}

fn act() -> impl Strategy<Value = Act> {
    let answer = select(vec![
        json!({"action": "accept"}),
        json!({"action": "reject"}),
        json!("accept"),
        json!({"action": "edit-accept", "editedArtifactData": {"verdict": "edited"}}),
        json!({"action": "edit-accept", "editedArtifactData": {"kind": "terminate"}}),
        json!({"action": "refine", "refineFeedback": {"scope": "whole"}}),
        json!({"verdict": "given"}),
        json!({"kind": "terminate"}),
        json!({"action": "done", "result": {"n": 1}}),
        json!({"action": "retry"}),
        json!({"action": "fail"}),
        json!({"answers": {"answer": "red"}}),
        json!(5),
    ]);
    prop_oneof![
        16 => (any::<Index>(), said()).prop_map(|(which, said)| Act::Think(which, said)),
        12 => (any::<Index>(), given()).prop_map(|(which, given)| Act::Return(which, given)),
        5 => (any::<Index>(), answer).prop_map(|(which, answer)| Act::Answer(which, answer)),
        2 => (0_u64..80).prop_map(Act::Wait),
        1 => Just(Act::NextTimer),
        1 => any::<bool>().prop_map(Act::Pause),
        2 => Just(Act::Resume),
        1 => proptest::bool::weighted(0.2).prop_map(|now| if now { Act::Cancel } else { Act::Resume }),
        1 => any::<bool>().prop_map(Act::Prompt),
        3 => Just(Act::Consult),
        1 => Just(Act::Unreadable),
        2 => Just(Act::Child),
        2 => Just(Act::Crash),
    ]
}

/// Agents and calls side by side and one after the other, perhaps with more attempts, a time limit and somebody who
/// takes over; perhaps a supervisor that is an agent.
fn definition() -> impl Strategy<Value = Value> {
    let node = || {
        let shape = prop_oneof![
            4 => Just((agents::AGENT, json!({"agentId": agents::FREE}))),
            4 => Just((agents::AGENT, json!({"agentId": agents::STRICT, "maxToolRounds": 2, "maxTokens": 40_000}))),
            1 => Just((agents::AGENT, json!({"agentId": agents::STRICT, "escalationTimeoutMs": 50, "tools": ["mcp:mail"]}))),
            1 => Just((agents::AGENT, json!({"agentId": agents::PICKY}))),
            1 => select(vec!["retry", "verify", "ask", "fail"]).prop_map(|policy| ("vendor.baton.http", json!({
                "method": "POST", "url": "https://example.com", "bodyExpression": "variables.secret", "into": "late",
                "outcomePolicy": policy, "verifyUrl": "https://example.com/look",
            }))),
            1 => select(vec!["GET", "PUT"]).prop_map(|method| ("vendor.baton.http", json!({"method": method, "url": "https://example.com"}))),
            1 => Just((models::CALL, models::config())),
        ];
        let told = select(vec![None, Some("n"), Some("secret")]);
        (shape, told, 0_u32..3, proptest::option::weighted(0.4, 20_u64..100))
    };
    let wired = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let live = proptest::option::weighted(0.4, Just(json!({"agentId": agents::PLANNER, "maxToolRounds": 3})));
    (proptest::collection::vec(node(), 1..4), wired, live).prop_map(|(seeds, (chain, handled, routed, slow), live)| {
        let mut nodes = Vec::new();
        let mut edges = Vec::new();
        for (i, ((type_id, config), told, retries, timeout)) in seeds.iter().enumerate() {
            let mut settings = json!({"maxRetries": retries, "retryDelayMs": 10});
            if let Some(timeout) = timeout {
                settings["timeout"] = json!(timeout);
            }
            let mut inputs = json!({});
            if *type_id == models::CALL {
                inputs["prompt"] = json!({"type": "static", "value": "Is it?"});
            } else if let Some(name) = told {
                let port = if *name == "secret" { "token" } else { "diff" };
                inputs[port] = json!({"type": "variable", "variableName": name});
            }
            nodes.push(json!({
                "id": format!("n{i}"), "typeId": type_id, "name": "", "position": {"x": 0, "y": 0}, "config": config,
                "inputs": inputs, "settings": settings, "agent": {"agentId": config["agentId"], "name": "Pinned"}
            }));
            if config["agentId"].is_null() {
                nodes[i].as_object_mut().unwrap().remove("agent");
            }
            if chain && i > 0 {
                let condition = json!({"type": "expression", "expression": "size(string(variables.late)) > 0"});
                let mut edge = json!({"id": format!("e{i}"), "sourceNodeId": format!("n{}", i - 1), "targetNodeId": format!("n{i}")});
                if routed {
                    edge["condition"] = condition;
                }
                edges.push(edge);
            }
        }
        if handled {
            nodes.push(json!({"id": "rescue", "typeId": "core.noop", "name": "", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}));
            edges.push(json!({"id": "r", "sourceNodeId": "n0", "targetNodeId": "rescue", "triggerRule": "any_failed"}));
        }
        let mut definition = json!({
            "id": "conformance-agents", "name": "Agents", "version": "1", "nodes": nodes, "edges": edges,
            "triggers": [], "metadata": {}, "settings": {},
            "variables": [
                {"name": "n", "type": "object", "defaultValue": 0},
                {"name": "secret", "type": "object", "sensitive": true, "defaultValue": "first-secret"}
            ],
        });
        if let Some(live) = live {
            beside::add_orchestration(&mut definition, (live, json!({"fanOutPolicy": "sequential"})));
            if slow {
                let nodes = definition["nodes"].as_array_mut().unwrap();
                let supervisor = nodes.iter_mut().find(|node| node["id"] == "sup").unwrap();
                supervisor["settings"] = json!({"maxRetries": 1, "retryDelayMs": 5, "timeout": 60});
            }
        }
        definition
    })
}

/// A world that remembers what it looked like on the way.
struct Game {
    world: World,
    desk: Desk,
    seen: Vec<(u64, Option<baton_model::RunSnapshot>, Vec<Effect>)>,
    told: BTreeMap<RunId, u64>,
    crashes: bool,
}

impl Game {
    fn new(definition: Value, verbosity: &str, crashes: bool) -> Self {
        let mut start = start_command(json!({"diff": "+1"}));
        start.max_duration_ms = 50_000;
        start.max_loop_iterations = 4;
        start.max_node_executions = 60;
        start.configurable.insert("reasoningVerbosity".to_owned(), verbosity.into());
        let mut world = World::new(agents::plan(definition));
        world.ledgers.remember("run_before", "snow", &["sun"], Some(500), world.now);
        world.ledgers.write_file("notes/a.md", "old", None, world.now);
        start.versions = world.ledgers.versions();
        let mut game = Self { world, desk: Desk::default(), seen: vec![], told: BTreeMap::new(), crashes };
        assert!(game.say(&Command::Start(Box::new(start))));
        game.go_on();
        game
    }

    /// Says one thing; a refusal is as good an answer as any. Returns whether something happened.
    fn say(&mut self, command: &Command) -> bool {
        let Ok(drafts) = decide(&self.world.state, command, self.world.now) else { return false };
        if drafts.is_empty() {
            return false;
        }
        if let Command::ChildEnded { child, outcome } = command {
            self.told.entry(child.clone()).or_insert(outcome.memory);
        }
        self.world.apply_as(drafts, !matches!(command, Command::Advance));
        let state = &self.world.state;
        self.desk.note(state);
        self.seen.push((state.next_seq(), snapshot(state), outstanding(state)));
        true
    }

    fn consult(&mut self, consult: &Consult, readable: bool) -> bool {
        let World { state, ledgers, now, .. } = &self.world;
        let (answer, after) = match readable {
            true => ledgers.answer(&state.run, state.memory_scope(), consult, *now),
            false => (baton_engine::Answer::failed(Fault::new("memory_full", "No room.")), ledgers.clone()),
        };
        let taken = self.say(&Command::Consulted { consult: Box::new(consult.clone()), answer });
        if taken {
            self.world.ledgers = after;
        }
        taken
    }

    fn prompt(&mut self, readable: bool) -> bool {
        self.world.question().is_some_and(|consult| self.consult(&consult, readable))
    }

    fn go_on(&mut self) {
        for _ in 0..1000 {
            if !self.say(&Command::Advance) && !(self.world.answering && self.prompt(true)) {
                let waits = matches!(self.world.state.phase(), Phase::Ending(_));
                let asks = self.world.question().is_some();
                assert!(!self.world.state.has_ready_work() || waits || asks, "ready work that does not run");
                return;
            }
        }
        panic!("the run goes on for ever by itself");
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Think(which, said) => drop(self.desk.think(which, said).map(|command| self.say(&command))),
            Act::Return(which, given) => drop(self.desk.give(which, *given).map(|command| self.say(&command))),
            Act::Answer(which, value) => {
                let open: Vec<_> = self.world.state.interrupts().cloned().collect();
                if !open.is_empty() {
                    self.say(&script::resolve(&which.get(&open).node, value.clone(), "ann"));
                }
            }
            Act::Wait(ms) => self.world.now = self.world.now.plus_millis(*ms),
            Act::NextTimer => self.world.now = self.world.state.wake_at().unwrap_or_default().max(self.world.now),
            Act::Pause(drain) => {
                let drain = if *drain { DrainPolicy::DrainCurrentNode } else { DrainPolicy::Immediate };
                self.say(&Command::Pause { reason: None, drain });
                let paused = matches!(self.world.state.phase(), Phase::Paused { .. });
                assert!(!paused || self.world.question().is_none(), "a paused run asks nothing");
            }
            Act::Resume => drop(self.say(&Command::Resume { reason: None })),
            Act::Cancel => drop(self.say(&Command::Cancel { reason: None, by: None, parent: None })),
            Act::Prompt(answering) => self.world.answering = *answering,
            Act::Consult => drop(self.prompt(true)),
            Act::Unreadable => drop(self.prompt(false)),
            Act::Child => drop(self.child()),
            Act::Crash if self.crashes => {
                let fresh = RunState::new(self.world.state.run.clone(), Arc::clone(self.world.state.plan()));
                let wanted = outstanding(&self.world.state);
                self.world.state =
                    self.world.log.iter().map(stored).try_fold(fresh, |s, r| evolve(s, &r)).expect("it folds");
                assert_eq!(outstanding(&self.world.state), wanted, "a restart wants the same");
            }
            Act::Crash => {}
        }
        // A model that is asked once more while the run is paused would be paid for nothing.
        let before = outstanding(&self.world.state).len();
        self.go_on();
        if matches!(self.world.state.phase(), Phase::Paused { .. }) {
            assert!(outstanding(&self.world.state).len() <= before, "a paused run begins nothing");
        }
    }

    fn child(&mut self) -> bool {
        let next = outstanding(&self.world.state).into_iter().find_map(|effect| match effect {
            Effect::StartChild { plan, .. } => Some((plan.run, script::News::Started)),
            Effect::AwaitChild { child } => Some((child, script::News::Ended(RunStatus::Completed))),
            Effect::CancelChild { child } => Some((child, script::News::Ended(RunStatus::Cancelled))),
            _ => None,
        });
        let Some((child, news)) = next else { return false };
        let mut command = script::tell(child, &news);
        if let Command::ChildEnded { outcome, .. } = &mut command {
            outcome.memory = self.world.ledgers.versions().memory;
        }
        self.say(&command)
    }

    /// Does everything the run waits for until it ends.
    fn finish(&mut self) {
        self.world.answering = true;
        for _ in 0..1000 {
            self.go_on();
            let state = &self.world.state;
            if state.status().is_terminal() {
                return;
            }
            if matches!(state.phase(), Phase::Paused { .. }) {
                assert!(self.say(&Command::Resume { reason: None }));
                continue;
            }
            let open = state.interrupts().next().cloned();
            if let Some(question) = open {
                let value = script::good_answer(&question.kind, &question.data);
                assert!(
                    self.say(&script::resolve(&question.node, value, "ann")),
                    "a good answer is taken: {question:?}"
                );
            } else if let Some(command) = Desk::next(&self.world.state) {
                assert!(self.say(&command), "what is waited for counts: {command:?}");
            } else if !self.child() {
                let at = self.world.state.wake_at().expect("the run hangs: nothing is outstanding");
                assert!(at > self.world.now, "a timer that is due did not fire");
                self.world.now = at;
            }
        }
        panic!("the run does not come to an end: {:?}", self.world.types());
    }

    fn played(definition: &Value, verbosity: &str, acts: &[Act], crashes: bool) -> Self {
        let mut game = Self::new(definition.clone(), verbosity, crashes);
        acts.iter().for_each(|act| game.act(act));
        game.finish();
        game
    }
}

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
        folded = evolve(folded, &stored(record)).expect("a stored log folds");
        if let Some((_, view, effects)) = looks.next_if(|(seq, ..)| *seq == folded.next_seq()) {
            assert_eq!((&snapshot(&folded), &outstanding(&folded)), (view, effects));
            assert_no_secret(&serde_json::to_string(view).unwrap());
        }
    }
    assert!(looks.next().is_none());
    assert_eq!(format!("{folded:?}"), format!("{state:?}"));
    let tokens: u64 =
        game.world.payloads("provider.usage").iter().map(|usage| usage["outputTokens"].as_u64().unwrap()).sum();
    let view = snapshot(state).unwrap();
    assert_eq!(view.metrics.map_or(0, |metrics| metrics.openwop_cost.tokens.output), tokens);
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
