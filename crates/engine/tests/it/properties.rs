//! What holds for every workflow and every order in which the world may speak.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_engine::{Command, Effect, NodeRequest, Phase, Plan, RunState, decide, evolve, outstanding, snapshot};
use baton_model::{Event, Fault, NodeId, Record, RunId, RunSnapshot, RunStatus, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::checkpoints::again;
use support::minds::{Desk, SECRETS};
use support::script::{self, Answer, News, Reply, Say, Step};
use support::versioned_nodes::Reader;
use support::{World, agents, generate, schemas, start_command, stored};

const MAX_NODE_EXECUTIONS: u64 = 60;
/// More than any generated run needs; reaching it means the run does not come to an end.
const MANY: usize = 3000;

/// A world that remembers what it looked like on the way.
struct Sim {
    world: World,
    start: Command,
    seen: Vec<(u64, Option<RunSnapshot>, Vec<Effect>)>,
    children: Vec<RunId>,
    /// How far each child had written memory when its end was heard of.
    told: BTreeMap<RunId, u64>,
    /// Every question about memory and workspace that was ever asked.
    asked: Vec<NodeRequest>,
    desk: Desk,
    /// Every n-th step is followed by a crash: the state is lost and read back from the log. 0 for never.
    crashes: usize,
}

impl Sim {
    fn new(plan: Arc<Plan>, stream_delay: u64, max_duration_ms: u64) -> Self {
        Self::crashing(plan, stream_delay, max_duration_ms, 0)
    }

    fn crashing(plan: Arc<Plan>, stream_delay: u64, max_duration_ms: u64, crashes: usize) -> Self {
        let mut start = start_command(json!({"undeclared": 1}));
        start.settings.max_node_executions = MAX_NODE_EXECUTIONS;
        start.settings.max_duration_ms = max_duration_ms;
        let provider = json!({"id": "stream-text", "config": {"tokens": ["a", "b"], "delayMsPerToken": stream_delay}});
        start.settings.configurable.insert("mockProvider".to_owned(), provider);
        let mut world = World::new(plan);
        world.ledgers.remember("run_before", "snow", &["sun"], Some(500), world.now);
        world.ledgers.write_file("notes/a.md", "old", None, world.now);
        start.settings.versions = world.ledgers.versions();
        let start = Command::Start(Box::new(start));
        let (seen, children, asked) = (Vec::new(), Vec::new(), Vec::new());
        let mut sim = Self {
            world,
            start: start.clone(),
            seen,
            children,
            told: BTreeMap::new(),
            asked,
            desk: Desk::default(),
            crashes,
        };
        sim.say(&start);
        sim
    }

    /// Says one thing; a refusal is as good an answer as any. Returns whether something happened.
    fn say(&mut self, command: &Command) -> bool {
        let Ok(drafts) = decide(&self.world.state, command, self.world.now) else { return false };
        let happened = !drafts.is_empty();
        self.world.apply_as(drafts, !matches!(command, Command::Advance));
        if happened {
            if let Command::ChildEnded { child, outcome } = command {
                self.told.entry(child.clone()).or_insert(outcome.memory);
            }
            if let Some(node_request) = self.world.question()
                && self.asked.last() != Some(&node_request)
            {
                self.asked.push(node_request);
            }
            let state = &self.world.state;
            self.desk.note(state);
            self.seen.push((state.next_seq(), snapshot(state), outstanding(state)));
            for child in script::wanted_children(state) {
                if !self.children.contains(&child) {
                    self.children.push(child);
                }
            }
            if self.crashes > 0 && self.seen.len().is_multiple_of(self.crashes) {
                self.crash();
            }
        }
        happened
    }

    /// Everything in the process is lost, also a question on its way. What was asked is asked again.
    fn crash(&mut self) {
        let asked = self.world.question();
        let fresh = RunState::new(self.world.state.run.clone(), Arc::clone(self.world.state.plan()));
        self.world.state = self.world.log.iter().map(stored).try_fold(fresh, |s, r| evolve(s, &r)).expect("it folds");
        assert_eq!(self.world.question(), asked, "the same question is asked again");
    }

    /// Answers the open question, if there is one and somebody is at hand.
    fn prompt(&mut self) -> bool {
        match self.world.question().filter(|_| self.world.answering) {
            Some(node_request) => self.reply(&node_request, Reply::Answered),
            None => false,
        }
    }

    fn reply(&mut self, node_request: &NodeRequest, reply: Reply) -> bool {
        let World { state, ledgers, now, .. } = &self.world;
        let (answer, after) = match reply {
            Reply::Answered => ledgers.answer(&state.run, state.memory_scope(), node_request, *now),
            Reply::Unreadable => {
                let fault = Fault::new("memory_full", "There is no room.");
                (baton_engine::Answer::failed(fault), ledgers.clone())
            }
        };
        let open = self.world.question().as_ref() == Some(node_request);
        let taken = self.say(&Command::RequestAnswered { node_request: Box::new(node_request.clone()), answer });
        assert!(open || !taken, "an answer to no question counts");
        if taken {
            self.world.ledgers = after;
        }
        taken
    }

    /// News of a child. One that has ended had written everything there is.
    fn tell(&mut self, child: &RunId, news: &News) -> bool {
        let mut command = script::tell(child.clone(), news);
        if let Command::ChildEnded { outcome, .. } = &mut command {
            outcome.memory = self.world.ledgers.versions().memory;
        }
        self.say(&command)
    }

    fn advance(&mut self, most: usize) {
        for _ in 0..most {
            if !self.say(&Command::Advance) && !self.prompt() {
                let asks = self.world.question().is_some() && !self.world.answering;
                assert!(
                    !self.world.state.has_ready_work() || self.waits_for_children() || asks,
                    "ready work that does not run"
                );
                return;
            }
        }
        assert!(most < MANY, "the run goes on for ever by itself");
    }

    fn waits_for_children(&self) -> bool {
        matches!(self.world.state.phase(), Phase::Ending(_))
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Wait(ms) => self.world.now = self.world.now.plus_millis(*ms),
            Step::Advance(most) => self.advance(*most),
            Step::NextTimer => {
                if let Some(at) = self.world.state.wake_at() {
                    self.world.now = self.world.now.max(at);
                }
            }
            Step::Answer(which, answer) => {
                let open: Vec<_> = self.world.state.interrupts().cloned().collect();
                if !open.is_empty() {
                    let question = which.get(&open);
                    let (who, value) = match answer {
                        Answer::Good => ("ann", script::good_answer(&question.kind, &question.data)),
                        Answer::Bad(value) => ("ann", value.clone()),
                        Answer::As(who, value) => (*who, value.clone()),
                    };
                    self.say(&script::reply_to(&self.world.state, &question.node, value, who));
                }
            }
            Step::Tell(which, news) => {
                if !self.children.is_empty() {
                    let child = which.get(&self.children).clone();
                    self.tell(&child, news);
                }
            }
            Step::Happen(deed) => deed.act(&mut self.world.ledgers, self.world.now),
            Step::Prompt(answering) => self.world.answering = *answering,
            Step::NodeRequest(which, reply) => {
                if !self.asked.is_empty() {
                    let node_request = which.get(&self.asked).clone();
                    self.reply(&node_request, *reply);
                }
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
            Step::Say(say) => {
                let command = self.command(say);
                self.say(&command);
            }
        }
    }

    fn command(&self, say: &Say) -> Command {
        match say {
            Say::Cancel { by_parent } => {
                Command::Cancel { reason: None, by: None, parent: by_parent.then(|| RunId::new("run_parent")) }
            }
            Say::Pause(drain) => Command::Pause { reason: None, drain: *drain },
            Say::Resume => Command::Resume { reason: Some("go on".to_owned()) },
            Say::StartAgain => self.start.clone(),
            Say::Stranger(news) => script::tell(RunId::new("run_stranger"), news),
            Say::AnswerNobody => script::resolve(&NodeId::new("nobody"), Value::Null, "ann"),
        }
    }

    /// Does everything the run waits for until it ends.
    fn finish(&mut self) {
        self.world.answering = true;
        for turn in 0..MANY {
            self.advance(MANY);
            let state = &self.world.state;
            if state.status().is_terminal() {
                return;
            }
            if matches!(state.phase(), Phase::Paused { .. }) {
                self.say(&Command::Resume { reason: None });
                continue;
            }
            let open = state.interrupts().next().cloned();
            if let Some(question) = open {
                let value = script::good_answer(&question.kind, &question.data);
                let who = ["ann", "ben", "cleo"][turn % 3];
                assert!(
                    self.say(&script::reply_to(&self.world.state, &question.node, value, who)),
                    "a good answer is taken"
                );
                continue;
            }
            if let Some(command) = Desk::next(state) {
                assert!(self.say(&command), "what is waited for counts: {command:?}");
                continue;
            }
            let effects = outstanding(state);
            let next = effects.iter().find_map(|effect| match effect {
                Effect::StartChild { plan, .. } => Some((plan.run.clone(), News::Started)),
                Effect::AwaitChild { child } => Some((child.clone(), News::Ended(RunStatus::Completed))),
                Effect::CancelChild { child } => Some((child.clone(), News::Ended(RunStatus::Cancelled))),
                // These runs have no children elsewhere; `loop_properties` does.
                Effect::Remote(_) => None,
                Effect::WakeAt { .. } | Effect::CallModel { .. } | Effect::CallTool(_) | Effect::NodeRequest(_) => None,
            });
            if let Some((child, news)) = next {
                assert!(self.tell(&child, &news), "{news:?} of {child} is news");
                continue;
            }
            let Some(Effect::WakeAt { at }) = effects.first() else { panic!("the run hangs: nothing is outstanding") };
            assert!(*at > self.world.now, "a timer that is due did not fire");
            self.world.now = *at;
        }
        panic!("the run does not come to an end");
    }
}

/// Every value that ever stands in a sensitive variable or channel, in the shape the generators give it.
fn assert_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} shows in {text}");
    }
}

fn check_log(log: &[Record], run: &RunId) {
    let mut last = Timestamp::default();
    let mut visits = std::collections::BTreeMap::new();
    let mut completed = BTreeSet::new();
    for (i, record) in log.iter().enumerate() {
        assert_eq!(record.seq, i as u64, "sequences have no gap");
        assert!(record.at >= last, "time does not go back");
        last = record.at;
        assert_eq!(schemas::violation(record, run), None);
        assert_no_secret(&record.public_json(run));
        assert_eq!(record.event.is_terminal(), i + 1 == log.len(), "one terminal record, and it is the last");
        match &record.event {
            Event::NodeStarted(event) => {
                visits.insert(event.node_id.clone(), event.private.visit);
            }
            Event::NodeCompleted(event) => {
                let visit = visits[&event.node_id];
                assert!(completed.insert((event.node_id.clone(), visit)), "{} completes twice", event.node_id);
            }
            _ => {}
        }
    }
    Audit::check(log);
    let starts = log.iter().filter(|record| matches!(record.event, Event::NodeStarted(_))).count();
    assert!(starts as u64 <= MAX_NODE_EXECUTIONS, "{starts} node starts");
}

/// Refolds the log as stored and compares with every look taken on the way.
fn check_folds(sim: &Sim) {
    let plan = Arc::clone(sim.world.state.plan());
    let mut state = RunState::new(sim.world.state.run.clone(), plan);
    let mut looks = sim.seen.iter().peekable();
    for record in &sim.world.log {
        state = again(&evolve(state, &stored(record)).expect("a stored log folds"));
        if let Some((_, view, effects)) = looks.next_if(|(seq, ..)| *seq == state.next_seq()) {
            assert_eq!(&snapshot(&state), view);
            assert_eq!(&outstanding(&state), effects);
        }
    }
    assert!(looks.next().is_none());
    for (_, view, _) in &sim.seen {
        assert_no_secret(&serde_json::to_string(view).unwrap());
    }
    assert_eq!(format!("{state:?}"), format!("{:?}", sim.world.state), "the whole state is a fold of the log");
}

/// What the run's nodes saw of memory and workspace is what a second look at the versioned stores' history shows.
fn check_reads(sim: &Sim) {
    let World { state, log, ledgers, .. } = &sim.world;
    Reader { plan: state.plan(), run: &state.run, ledgers, told: &sim.told }.check(log);
}

fn check_ended(sim: &mut Sim) {
    let mut commands = vec![sim.start.clone(), Command::Advance];
    for say in [Say::Cancel { by_parent: false }, Say::Pause(Default::default()), Say::Resume, Say::AnswerNobody] {
        commands.push(sim.command(&say));
    }
    for child in sim.children.clone() {
        for news in [News::Started, News::Refused, News::Status(RunStatus::Running), News::Ended(RunStatus::Completed)]
        {
            commands.push(script::tell(child.clone(), &news));
        }
    }
    for node in sim.world.state.plan().definition().nodes.clone() {
        commands.push(script::resolve(&node.id, json!({"action": "accept"}), "ann"));
    }
    commands.extend(sim.desk.everything());
    for command in commands {
        assert!(!sim.say(&command), "{command:?} changed a run that has ended");
    }
    for node_request in sim.asked.clone() {
        assert!(!sim.reply(&node_request, Reply::Answered), "{node_request:?} is answered after the end");
    }
    assert_eq!(outstanding(&sim.world.state), []);
    assert_eq!(sim.world.state.wake_at(), None);
}

/// `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(1024)
}

/// A generator that never gets somewhere proves nothing about the place. And a schema that takes anything proves
/// nothing about what it takes.
#[test]
fn random_runs_reach_every_kind_of_event() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut missing: BTreeSet<&str> = Event::TYPE_NAMES.iter().copied().collect();
    // Written by replays only.
    missing.remove("replay.diverged");
    missing.remove("replay.divergedAtRefusal");
    // Written by the shell when a branch is made; `fork_approved.rs` looks at it.
    missing.remove("baton.fork.approved");
    // Written where an agent lacks tools; `agent_tools.rs` reaches it.
    missing.remove("baton.tools.missing");
    // Written where a tree of runs has a budget.
    missing.retain(|kind| !kind.starts_with("budget."));
    // Written where a model insists; `agent_properties.rs` reaches these.
    missing.remove("envelope.nlToFormat.engaged");
    missing.remove("envelope.retry.exhausted");
    // Written where an agent tells the host something; `agent_envelopes.rs` reaches it.
    missing.remove("log.appended");
    // Written where an answer breaks off; `agent_repeats.rs` reaches it.
    missing.remove("baton.model.retried");
    // Written where an item of a map is tried again; `map.rs` reaches it.
    missing.remove("baton.map.itemRetried");
    // Told by whoever waits for a runner; the runtime's `runners.rs` reaches these.
    missing.remove("baton.runner.waiting");
    missing.remove("baton.tool.progress");
    // Told by the program that has a step in hand; `step_work.rs` reaches it.
    missing.remove("baton.step.memo");
    // Written where a model cannot do what a node needs; `model_needs.rs` reaches these.
    missing.retain(|kind| !kind.starts_with("model.capability."));
    for _ in 0..4000 {
        let definition = generate::workflow().new_tree(&mut runner).unwrap().current();
        let steps = script::steps().new_tree(&mut runner).unwrap().current();
        let plan = Plan::compile(definition.0, agents::lenient()).unwrap();
        let mut sim = Sim::new(Arc::new(plan), 5, 100_000);
        steps.iter().for_each(|step| sim.step(step));
        sim.finish();
        for record in &sim.world.log {
            let kind = record.event.type_name();
            if missing.remove(kind) {
                let mut payload = serde_json::to_value(record.event.payload()).unwrap();
                assert_eq!(schemas::payload_violation(kind, &payload), None);
                payload["surprise"] = json!(1);
                assert!(schemas::payload_violation(kind, &payload).is_some(), "the schema of {kind} is closed");
            }
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("never seen: {missing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_keeps_its_promises_and_ends(
        definition in generate::workflow(),
        steps in script::steps(),
        stream_delay in prop_oneof![Just(0_u64), 1_u64..20],
        max_duration_ms in prop_oneof![3 => Just(100_000_u64), 1 => 1_u64..200],
    ) {
        let plan = Plan::compile(definition.0, agents::lenient())
            .unwrap_or_else(|problems| panic!("generated workflows compile: {problems:?}"));
        let mut sim = Sim::new(Arc::new(plan), stream_delay, max_duration_ms);
        for step in &steps {
            sim.step(step);
        }
        sim.finish();
        check_log(&sim.world.log, &sim.world.state.run);
        check_folds(&sim);
        check_reads(&sim);
        check_ended(&mut sim);
    }

    #[test]
    fn the_same_world_gives_the_same_log_however_often_it_crashes(
        definition in generate::workflow(),
        steps in script::steps(),
        crashes in 0_usize..5,
    ) {
        let plan = Arc::new(Plan::compile(definition.0, agents::lenient()).unwrap());
        let played = |crashes| {
            let mut sim = Sim::crashing(Arc::clone(&plan), 5, 100_000, crashes);
            steps.iter().for_each(|step| sim.step(step));
            sim.finish();
            (sim.world.log, sim.world.ledgers)
        };
        prop_assert_eq!(played(0), played(crashes));
    }
}
