//! A run of agents in a random world, and its way to the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{Command, Effect, NodeRequest, Phase, RunState, decide, evolve, outstanding, snapshot};
use baton_model::event::DrainPolicy;
use baton_model::{Event, Fault, RunId, RunStatus};
use serde_json::{Value, json};

use super::generate::{Act, answers};
use crate::support::minds::Desk;
use crate::support::models::asked;
use crate::support::{World, agents, script, start_command, stored};

/// A world that remembers what it looked like on the way.
pub struct Game {
    pub world: World,
    pub desk: Desk,
    pub seen: Vec<(u64, Option<baton_model::RunSnapshot>, Vec<Effect>)>,
    pub told: BTreeMap<RunId, u64>,
    crashes: bool,
}

impl Game {
    fn new(definition: Value, verbosity: &str, crashes: bool) -> Self {
        let mut start = start_command(json!({"diff": "+1"}));
        start.settings.max_duration_ms = 50_000;
        start.settings.max_loop_iterations = 4;
        start.settings.max_node_executions = 60;
        start.settings.configurable.insert("reasoningVerbosity".to_owned(), verbosity.into());
        let mut world = World::new(agents::plan(definition));
        world.ledgers.remember("run_before", "snow", &["sun"], Some(500), world.now);
        world.ledgers.write_file("notes/a.md", "old", None, world.now);
        start.settings.versions = world.ledgers.versions();
        let mut game = Self { world, desk: Desk::default(), seen: vec![], told: BTreeMap::new(), crashes };
        assert!(game.say(&Command::Start(Box::new(start))));
        game.go_on();
        game
    }

    /// Says one thing; a refusal is as good an answer as any. Returns whether something happened.
    pub fn say(&mut self, command: &Command) -> bool {
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

    fn node_request(&mut self, node_request: &NodeRequest, readable: bool) -> bool {
        let World { state, ledgers, now, .. } = &self.world;
        let (answer, after) = match readable {
            true => ledgers.answer(&state.run, state.memory_scope(), node_request, *now),
            false => (baton_engine::Answer::failed(Fault::new("memory_full", "No room.")), ledgers.clone()),
        };
        let taken = self.say(&Command::RequestAnswered { node_request: Box::new(node_request.clone()), answer });
        if taken {
            self.world.ledgers = after;
        }
        taken
    }

    fn prompt(&mut self, readable: bool) -> bool {
        self.world.question().is_some_and(|node_request| self.node_request(&node_request, readable))
    }

    fn go_on(&mut self) {
        for _ in 0..1000 {
            let goes_on = self.say(&Command::Advance) || (self.world.answering && self.prompt(true));
            if !goes_on {
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
            Act::Mutter(piece, next) => {
                if let Some(call) = asked(&self.world.state).last() {
                    let told = self.world.log.iter().rev().take_while(|record| {
                        !matches!(record.event, Event::AgentReasoned(_) | Event::AgentInvocationStarted(_))
                    });
                    let told = told.filter(|record| matches!(record.event, Event::AgentReasoningDelta(_))).count();
                    let sequence = if *next { told as u32 } else { *piece };
                    self.say(&call.thinks(sequence, &["One thing, ", "", "and another. "]));
                }
            }
            Act::Insist(said) => {
                for _ in 0..5 {
                    if let Some(call) = asked(&self.world.state).last() {
                        self.say(&call.answered(said.reply(&call.request.semantic)));
                        self.go_on();
                    }
                }
            }
            Act::Answer(which, answer) => {
                let open: Vec<_> = self.world.state.interrupts().cloned().collect();
                if !open.is_empty() {
                    let question = which.get(&open);
                    let value = answer.get(&answers(&question.kind)).clone();
                    self.say(&script::reply_to(&self.world.state, &question.node, value, "ann"));
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
            Act::NodeRequest => drop(self.prompt(true)),
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
                    self.say(&script::reply_to(&self.world.state, &question.node, value, "ann")),
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

    pub fn played(definition: &Value, verbosity: &str, acts: &[Act], crashes: bool) -> Self {
        let mut game = Self::new(definition.clone(), verbosity, crashes);
        acts.iter().for_each(|act| game.act(act));
        game.finish();
        game
    }
}
