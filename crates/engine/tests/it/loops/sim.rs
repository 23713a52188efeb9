//! A run in a world that says anything, and an auditor who reads along.

use std::sync::Arc;

use baton_engine::{
    ChildOutcome, Command, Effect, Features, Interrupt, NodeRequest, Phase, Plan, RemoteChildAction, RunState, decide,
    evolve, outstanding, snapshot,
};
use baton_model::{Event, Fault, NodeId, NodeStatus, RunId, RunSnapshot, RunStatus};
use serde_json::{Map, Value, json};

use super::audit::Auditor;
use super::generate::{Answer, Case, Fate, News, Step};
use crate::support::script::Reply;
use crate::support::{World, script, start_command, stored};

/// More than any generated loop needs; reaching it means that it does not come to an end.
const MANY: usize = 2000;

pub struct Sim {
    pub world: World,
    pub auditor: Auditor,
    /// What the run looked like on the way.
    pub looks: Vec<(u64, Option<RunSnapshot>, Vec<Effect>)>,
    children: Vec<RunId>,
    /// Every question about memory and workspace that was ever asked.
    asked: Vec<NodeRequest>,
    /// Every n-th step is followed by a crash: the state is lost and read back from the log. 0 for never.
    crashes: usize,
}

/// What a child leaves behind, however it ends: a failed one betrays itself when this shows up in its parent.
pub fn made(child: &RunId) -> Map<String, Value> {
    json!({"v": format!("v of {child}"), "w": child}).as_object().cloned().unwrap()
}

fn tell(child: RunId, news: News) -> Command {
    match news {
        News::Started => Command::ChildStarted { child },
        News::Refused => Command::ChildRefused { child, fault: Fault::new("unknown_child_workflow", "Unknown.") },
        News::Status(status) => Command::ChildStatus { child, status },
        News::Ended(status) => {
            let error = (status == RunStatus::Failed).then(|| Fault::new("boom", "It broke."));
            let outcome = ChildOutcome { status, variables: made(&child), error, memory: 0, usage: None };
            Command::ChildEnded { child, outcome }
        }
    }
}

/// The answer in the words this question understands.
fn words(question: &Interrupt, answer: &Answer) -> Value {
    let held = question.node.as_str() == "sup";
    let word = match answer {
        Answer::Accept => json!({"action": "accept"}),
        Answer::Reject => json!({"action": "reject"}),
        Answer::Refine => json!({"action": "refine", "refineFeedback": {"scope": "whole"}}),
        Answer::Edit(decision) if !held => {
            json!({"action": "edit-accept", "editedArtifactData": {"outputs": {"v": decision}}})
        }
        Answer::Edit(decision) if question.kind == "approval" => {
            json!({"action": "edit-accept", "editedArtifactData": decision})
        }
        Answer::Edit(decision) => json!(decision),
        Answer::Bad(value) => return value.clone(),
    };
    match (question.kind.as_str(), held) {
        ("clarification", true) => json!({"answers": {"decision": word}}),
        ("clarification", false) => json!({"answers": {"answer": "left"}}),
        _ => word,
    }
}

impl Sim {
    pub fn new(case: &Case, crashes: usize) -> Self {
        // A quorum that nobody can reach is refused in new definitions; runs of older ones meet it.
        let features = Features { conformance: true, recorded: true, ..Features::default() };
        let plan = Plan::compile(case.definition(), features)
            .unwrap_or_else(|problems| panic!("generated loops compile: {problems:?}"));
        let mut start = start_command(json!({"x": 1}));
        start.settings.max_loop_iterations = case.max_loop_iterations;
        start.settings.max_fan_out = case.max_fan_out;
        *start.settings.escalation = case.escalation.clone();
        let auditor = Auditor::new(case, start.inputs.clone());
        let world = World::new(Arc::new(plan));
        let (looks, children, asked) = (Vec::new(), Vec::new(), Vec::new());
        let mut sim = Self { world, auditor, looks, children, asked, crashes };
        assert!(sim.say(&Command::Start(Box::new(start))));
        sim
    }

    /// Says one thing; a refusal is as good an answer as any. Returns whether something happened.
    pub fn say(&mut self, command: &Command) -> bool {
        let Ok(drafts) = decide(&self.world.state, command, self.world.now) else { return false };
        let before = self.world.log.len();
        self.world.apply_as(drafts, !matches!(command, Command::Advance));
        let subject = match command {
            Command::ChildEnded { child, .. } | Command::ChildRefused { child, .. } => Some(child),
            _ => None,
        };
        for record in &self.world.log[before..] {
            if let Event::ChainEvent(event) = &record.event
                && event.error.is_some()
            {
                assert!(subject.is_some(), "a worker ended without news of it");
                assert!(event.child_run_id.is_none() || event.child_run_id.as_ref() == subject, "another child's end");
            }
            if let Event::NodeStarted(event) = &record.event
                && let Some(frozen) = event.private.frozen
                && event.attempt == 0
            {
                assert_eq!(frozen.versions, self.world.ledgers.versions(), "a new turn sees everything written so far");
            }
            self.auditor.see(record, &self.world.ledgers);
            if matches!(&record.event, Event::NodeStarted(event) if event.attempt > 0 && event.node_id.as_str() == "sup")
                && let Some((said, otherwise)) = self.auditor.otherwise(&self.world.ledgers, record.at)
                && said != otherwise
            {
                self.auditor.seen.insert("sent back after the world moved on".to_owned());
            }
        }
        if self.world.log.len() == before {
            return false;
        }
        self.look();
        if self.crashes > 0 && self.looks.len().is_multiple_of(self.crashes) {
            self.crash();
        }
        true
    }

    /// Everything in the process is lost, also a question on its way. What was asked is asked again.
    fn crash(&mut self) {
        let asked = self.world.question();
        let fresh = RunState::new(self.world.state.run.clone(), Arc::clone(self.world.state.plan()));
        let read = self.world.log.iter().map(stored);
        self.world.state = read.into_iter().try_fold(fresh, |state, record| evolve(state, &record)).expect("it folds");
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
        let (state, now) = (&self.world.state, self.world.now);
        let (answer, after) = self.world.ledgers.answer(&state.run, state.memory_scope(), node_request, now);
        let (answer, after) = match reply {
            Reply::Answered => (answer, after),
            Reply::Unreadable => {
                let fault = Fault::new("replay_memory_snapshot_unavailable", "It is gone.");
                (baton_engine::Answer::failed(fault), self.world.ledgers.clone())
            }
        };
        let open = self.world.question().as_ref() == Some(node_request);
        let taken = self.say(&Command::RequestAnswered { node_request: Box::new(node_request.clone()), answer });
        let out_of_time = self.world.state.wake_at().is_some_and(|at| at <= self.world.now);
        assert!(taken == open || out_of_time, "an answer counts if and only if its question is open");
        if taken {
            self.world.ledgers = after;
        }
        taken
    }

    fn look(&mut self) {
        let state = &self.world.state;
        assert_eq!(state.variables(), &self.auditor.variables, "variables are what the log says");
        let effects = outstanding(state);
        let children = script::wanted_children(state);
        assert!(children.len() <= self.auditor.concurrency(), "too many children at once: {effects:?}");
        for child in children {
            if !self.children.contains(&child) {
                self.children.push(child);
            }
        }
        if let Some(node_request) = self.world.question()
            && self.asked.last() != Some(&node_request)
        {
            self.asked.push(node_request);
        }
        let view = snapshot(state).expect("it has started");
        if let Some(dispatch) = view.node_states.get(&NodeId::new("disp")) {
            let asks = state.interrupts().any(|question| question.node.as_str() == "disp");
            let waits = view.child_runs.iter().any(|child| child.status.is_waiting());
            let suspended = dispatch.status == NodeStatus::Suspended;
            assert_eq!(suspended, asks || waits, "a dispatch waits with its workers: {view:#?}");
        }
        self.looks.push((state.next_seq(), Some(view), effects));
    }

    pub fn advance(&mut self, most: usize) {
        for _ in 0..most {
            if !self.say(&Command::Advance) && !self.prompt() {
                return;
            }
        }
        assert!(most < MANY, "the loop goes on for ever by itself");
    }

    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Advance(most) => self.advance(*most),
            Step::Wait(ms) => self.world.now = self.world.now.plus_millis(*ms),
            Step::NextTimer => {
                if let Some(at) = self.world.state.wake_at() {
                    self.world.now = self.world.now.max(at);
                }
            }
            Step::Serve(which, fate) => {
                let effects = outstanding(&self.world.state);
                if !effects.is_empty()
                    && let Some(command) = served(which.get(&effects), *fate)
                {
                    self.say(&command);
                }
            }
            Step::Tell(which, news) => {
                if !self.children.is_empty() {
                    let child = which.get(&self.children).clone();
                    self.say(&tell(child, *news));
                }
            }
            Step::Answer(which, answer) => {
                let open: Vec<Interrupt> = self.world.state.interrupts().cloned().collect();
                if !open.is_empty() {
                    let question = which.get(&open);
                    self.say(&script::reply_to(&self.world.state, &question.node, words(question, answer), "ann"));
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
            Step::Cancel => {
                self.say(&Command::Cancel { reason: None, by: None, parent: None });
            }
            Step::Pause(drain) => {
                self.say(&Command::Pause { reason: None, drain: *drain });
            }
            Step::Resume => {
                self.say(&Command::Resume { reason: None });
            }
        }
    }

    pub fn settle(&mut self) {
        self.advance(MANY);
    }

    /// Does everything the run waits for until it ends.
    pub fn finish(&mut self) {
        self.world.answering = true;
        for _ in 0..MANY {
            self.settle();
            let state = &self.world.state;
            if state.status().is_terminal() {
                return;
            }
            let next = if matches!(state.phase(), Phase::Paused { .. }) {
                Some(Command::Resume { reason: None })
            } else if let Some(question) = state.interrupts().next() {
                Some(script::reply_to(state, &question.node, words(question, &Answer::Accept), "ann"))
            } else {
                outstanding(state).iter().find_map(|effect| served(effect, Fate::Good))
            };
            match next {
                Some(command) => assert!(self.say(&command), "{command:?} changes nothing"),
                None => {
                    let at = self.world.state.wake_at().expect("a run that waits for nothing hangs");
                    assert!(at > self.world.now, "a timer that is due did not fire");
                    self.world.now = at;
                    let duration = self.world.now.millis_since(self.world.state.started_at().unwrap());
                    assert!(duration < 1_000_000, "nothing but the end of its life ends this loop");
                }
            }
        }
        panic!("the loop does not come to an end");
    }

    /// Says everything again to a run that has ended.
    #[allow(dead_code, reason = "not every test that plays loops disturbs them")]
    pub fn disturb(&mut self) {
        let mut commands = vec![Command::Advance, Command::Cancel { reason: None, by: None, parent: None }];
        commands.push(Command::Resume { reason: None });
        for node in ["sup", "disp"] {
            commands.push(script::resolve(&NodeId::new(node), json!({"action": "accept"}), "ann"));
        }
        for child in &self.children {
            let all =
                [News::Started, News::Refused, News::Status(RunStatus::Running), News::Ended(RunStatus::Completed)];
            commands.extend(all.map(|news| tell(child.clone(), news)));
        }
        for command in commands {
            assert!(!self.say(&command), "{command:?} changed a run that has ended");
        }
        for node_request in self.asked.clone() {
            assert!(!self.reply(&node_request, Reply::Answered), "{node_request:?} is answered after the end");
        }
        assert_eq!(outstanding(&self.world.state), []);
    }
}

/// What the shell would say once it has done this.
fn served(effect: &Effect, fate: Fate) -> Option<Command> {
    if let Effect::Remote(mandate) = effect
        && matches!(mandate.action, RemoteChildAction::Create(_) | RemoteChildAction::Withdraw(_))
        && !matches!(fate, Fate::Bad)
    {
        return Some(script::started_afar(&mandate.child));
    }
    let (child, news) = match (effect, fate) {
        (Effect::Remote(mandate), fate) => {
            let news = match (&mandate.action, fate) {
                (RemoteChildAction::Create(_) | RemoteChildAction::Withdraw(_), _) => News::Refused,
                (_, Fate::Good) => News::Ended(RunStatus::Completed),
                (_, Fate::Bad) => News::Ended(RunStatus::Failed),
                (_, Fate::Cancelled) => News::Ended(RunStatus::Cancelled),
                (RemoteChildAction::Follow { .. }, Fate::Waits(status)) => News::Status(status),
                (RemoteChildAction::Cancel, Fate::Waits(_)) => News::Ended(RunStatus::Completed),
            };
            (&mandate.child, news)
        }
        (Effect::StartChild { plan, .. }, Fate::Bad) => (&plan.run, News::Refused),
        (Effect::StartChild { plan, .. }, _) => (&plan.run, News::Started),
        (Effect::AwaitChild { child }, Fate::Good) => (child, News::Ended(RunStatus::Completed)),
        (Effect::AwaitChild { child }, Fate::Bad) => (child, News::Ended(RunStatus::Failed)),
        (Effect::AwaitChild { child }, Fate::Cancelled) => (child, News::Ended(RunStatus::Cancelled)),
        (Effect::AwaitChild { child }, Fate::Waits(status)) => (child, News::Status(status)),
        // It was quicker than its cancellation.
        (Effect::CancelChild { child }, Fate::Waits(_)) => (child, News::Ended(RunStatus::Completed)),
        (Effect::CancelChild { child }, Fate::Bad) => (child, News::Refused),
        (Effect::CancelChild { child }, _) => (child, News::Ended(RunStatus::Cancelled)),
        (Effect::WakeAt { .. } | Effect::CallModel { .. } | Effect::CallTool(_) | Effect::NodeRequest(_), _) => {
            return None;
        }
    };
    Some(tell(child.clone(), news))
}
