//! A run in a random world, and its way to the end. Leaner than the simulations of the property tests: what must hold
//! on the way is checked there.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use baton_engine::{Command, Effect, Phase, Plan, RunState, decide, outstanding};
use baton_model::{NodeId, RunId, RunStatus};
use proptest::sample::Index;
use serde_json::{Value, json};

use super::agents;
use super::minds::Desk;
use super::script::{self, Answer, News, Say, Step};
use super::versioned::VersionedStores;
use super::{World, start_command};

/// More than any generated run needs; reaching it means that it does not come to an end.
const MANY: usize = 3000;

pub struct Walk {
    pub world: World,
    children: Vec<RunId>,
    desk: Desk,
}

impl Walk {
    /// A run of this definition that the world has spoken to, ended.
    pub fn to_the_end(definition: Value, stream_delay: u64, max_duration_ms: u64, steps: &[Step]) -> World {
        let mut walk = Self::begun(definition, stream_delay, max_duration_ms);
        steps.iter().for_each(|step| walk.step(step));
        walk.finish();
        walk.world
    }

    pub fn begun(definition: Value, stream_delay: u64, max_duration_ms: u64) -> Self {
        let plan = Plan::compile(definition, agents::lenient()).unwrap();
        let mut start = start_command(json!({"undeclared": 1}));
        start.settings.max_node_executions = 60;
        start.settings.max_duration_ms = max_duration_ms;
        let provider = json!({"id": "stream-text", "config": {"tokens": ["a", "b"], "delayMsPerToken": stream_delay}});
        start.settings.configurable.insert("mockProvider".to_owned(), provider);
        let mut world = World::new(Arc::new(plan));
        world.ledgers.write_file("notes/a.md", "old", None, world.now);
        start.settings.versions = world.ledgers.versions();
        let mut walk = Self { world, children: Vec::new(), desk: Desk::default() };
        assert!(walk.say(&Command::Start(Box::new(start))));
        walk
    }

    /// A run that is already under way.
    pub fn of(state: RunState, ledgers: VersionedStores) -> Self {
        let now = state.not_before(Default::default());
        let world = World { state, log: Vec::new(), now, ledgers, answering: true };
        Self { world, children: Vec::new(), desk: Desk::default() }
    }

    /// Says one thing. Returns whether something happened.
    fn say(&mut self, command: &Command) -> bool {
        let Ok(drafts) = decide(&self.world.state, command, self.world.now) else { return false };
        let happened = !drafts.is_empty();
        self.world.apply_as(drafts, !matches!(command, Command::Advance));
        self.desk.note(&self.world.state);
        for child in script::wanted_children(&self.world.state) {
            if !self.children.contains(&child) {
                self.children.push(child);
            }
        }
        happened
    }

    fn advance(&mut self, most: usize) {
        for _ in 0..most {
            let goes_on = self.say(&Command::Advance) || (self.world.answering && self.world.answer_question());
            if !goes_on {
                return;
            }
        }
    }

    fn one<'a, T>(which: &Index, all: &'a [T]) -> Option<&'a T> {
        (!all.is_empty()).then(|| which.get(all))
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Wait(ms) => self.world.now = self.world.now.plus_millis(*ms),
            Step::Advance(most) => self.advance(*most),
            Step::NextTimer => self.world.now = self.world.state.wake_at().unwrap_or_default().max(self.world.now),
            Step::Answer(which, answer) => {
                let open: Vec<_> = self.world.state.interrupts().cloned().collect();
                if let Some(question) = Self::one(which, &open) {
                    let (who, value) = match answer {
                        Answer::Good => ("ann", script::good_answer(&question.kind, &question.data)),
                        Answer::Bad(value) => ("ann", value.clone()),
                        Answer::As(who, value) => (*who, value.clone()),
                    };
                    self.say(&script::reply_to(&self.world.state, &question.node, value, who));
                }
            }
            Step::Tell(which, news) => {
                if let Some(child) = Self::one(which, &self.children).cloned() {
                    self.say(&script::tell(child, news));
                }
            }
            Step::Happen(deed) => deed.act(&mut self.world.ledgers, self.world.now),
            Step::Prompt(answering) => self.world.answering = *answering,
            Step::Say(Say::Cancel { by_parent }) => {
                let parent = by_parent.then(|| RunId::new("run_parent"));
                self.say(&Command::Cancel { reason: None, by: None, parent });
            }
            Step::Say(Say::Pause(drain)) => {
                self.say(&Command::Pause { reason: None, drain: *drain });
            }
            Step::Say(Say::Resume) => {
                self.say(&Command::Resume { reason: None });
            }
            Step::Think(which, said) => {
                if let Some(command) = self.desk.think(which, said) {
                    self.say(&command);
                }
            }
            Step::Return(which, given) => {
                if let Some(command) = self.desk.give(which, *given) {
                    self.say(&command);
                }
            }
            Step::Say(_) | Step::NodeRequest(..) => {}
        }
    }

    /// An answer that some question or other takes.
    fn answer(&mut self, node: &NodeId, kind: &str, data: &Value, who: &str) -> bool {
        let good = script::good_answer(kind, data);
        let held = json!({"answers": {"decision": {"action": "accept"}}});
        let answers = [good, held, json!({"action": "accept"}), json!({"action": "reject"})];
        answers.into_iter().any(|value| self.say(&script::reply_to(&self.world.state, node, value, who)))
    }

    /// Does everything the run waits for until it ends.
    pub fn finish(&mut self) {
        self.world.answering = true;
        for turn in 0..MANY {
            self.advance(MANY);
            let state = &self.world.state;
            if state.status().is_terminal() {
                return;
            }
            if matches!(state.phase(), Phase::Paused { .. }) {
                assert!(self.say(&Command::Resume { reason: None }), "a paused run can be resumed");
                continue;
            }
            let open = state.interrupts().next().cloned();
            if let Some(question) = open {
                let who = ["ann", "ben", "cleo"][turn % 3];
                assert!(
                    self.answer(&question.node, &question.kind, &question.data, who),
                    "nobody can answer {question:?}"
                );
                continue;
            }
            if let Some(command) = Desk::next(state) {
                assert!(self.say(&command), "what is waited for counts: {command:?}");
                continue;
            }
            let effects = outstanding(state);
            let next = effects.iter().find_map(|effect| match effect {
                Effect::StartChild { plan, .. } => Some(script::tell(plan.run.clone(), &News::Started)),
                Effect::AwaitChild { child } => Some(script::tell(child.clone(), &News::Ended(RunStatus::Completed))),
                Effect::CancelChild { child } => Some(script::tell(child.clone(), &News::Ended(RunStatus::Cancelled))),
                Effect::Remote(mandate) => Some(script::good_news(mandate)),
                _ => None,
            });
            if let Some(news) = next {
                assert!(self.say(&news), "{news:?} is news");
                continue;
            }
            let Some(Effect::WakeAt { at }) = effects.first() else { panic!("the run hangs: nothing is outstanding") };
            assert!(*at > self.world.now, "a timer that is due did not fire");
            self.world.now = *at;
        }
        panic!("the run does not come to an end");
    }
}
