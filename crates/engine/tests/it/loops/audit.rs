//! Reads a loop's log as it grows and objects to the first record that should not be there.
//!
//! The auditor keeps its own books (turns, chains, variables) from public facts; it never asks the engine what it
//! thinks. One record at a time, so that a broken promise is caught where it is broken. What a turn should have seen it
//! looks up in the versioned stores' history, at the versions the turn has on record.

use std::collections::BTreeSet;

use baton_model::event::{ChainEvent, ChainPhase, Outcome};
use baton_model::{Decision, Event, Record, RunId, TurnSnapshot, WorkflowId};
use serde_json::{Map, Value};

use super::generate::Case;
use super::insight::Insight;
use super::rules::Rules;
use super::sim::made;
use crate::support::versioned::VersionedStores;

pub struct Auditor {
    case: Case,
    rules: Rules,
    pub variables: Map<String, Value>,
    turns: u64,
    dispatches: u64,
    /// The newest decision, its place, and whether the dispatch has taken it up.
    decided: Option<(Decision, u64, bool)>,
    turn: Turn,
    wave: Option<Wave>,
    children: BTreeSet<RunId>,
    /// Workers that are known to exist.
    workers: usize,
    /// Variables changed since the last harvest.
    changed: Vec<(String, Value)>,
    pub seen: BTreeSet<String>,
}

/// One execution of the supervisor.
#[derive(Default)]
struct Turn {
    started: u64,
    frozen: Option<TurnSnapshot>,
    /// What follows from what it saw.
    planned: Option<Decision>,
    escalated: bool,
    asked: bool,
    open: bool,
    ratified: Option<Decision>,
}

struct Wave {
    workers: Vec<Worker>,
    /// In the order their ends were observed.
    ended: Vec<usize>,
    announced: bool,
    joined: Option<baton_model::event::JoinOutcome>,
    /// A merge question is open.
    asking: bool,
}

struct Worker {
    id: WorkflowId,
    phase: Option<ChainPhase>,
    seq: u64,
    run: Option<RunId>,
    withheld: bool,
    /// What may be merged.
    granted: Option<Map<String, Value>>,
}

impl Wave {
    fn new(ids: &[WorkflowId]) -> Self {
        let worker =
            |id: &WorkflowId| Worker { id: id.clone(), phase: None, seq: 0, run: None, withheld: false, granted: None };
        Self { workers: ids.iter().map(worker).collect(), ended: vec![], announced: false, joined: None, asking: false }
    }

    fn in_flight(&self) -> usize {
        use ChainPhase::{DispatchBegan, DispatchSucceeded};
        self.workers.iter().filter(|w| matches!(w.phase, Some(DispatchBegan | DispatchSucceeded))).count()
    }

    /// The next worker to merge: the first that completed and is neither harvested nor withheld.
    fn unmerged(&self, rules: &Rules) -> Option<usize> {
        let due = |&&w: &&usize| {
            let worker = &self.workers[w];
            worker.phase == Some(ChainPhase::ChildCompleted) && !worker.withheld && rules.harvests(&worker.id)
        };
        self.ended.iter().find(due).copied()
    }

    fn ends(&self) -> Vec<bool> {
        use ChainPhase::{ChildCompleted, OutputHarvested};
        let good = |&w: &usize| matches!(self.workers[w].phase, Some(ChildCompleted | OutputHarvested));
        self.ended.iter().map(good).collect()
    }
}

impl Auditor {
    pub fn new(case: &Case, variables: Map<String, Value>) -> Self {
        Self {
            case: case.clone(),
            rules: Rules::new(case),
            variables,
            turns: 0,
            dispatches: 0,
            decided: None,
            turn: Turn::default(),
            wave: None,
            children: BTreeSet::new(),
            workers: 0,
            changed: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// The most children that may be under way now.
    pub fn concurrency(&self) -> usize {
        self.wave.as_ref().map_or(0, |wave| self.rules.concurrency(wave.workers.len()))
    }

    /// Reads one record. The versioned stores may have moved on since: only their history is looked at.
    pub fn see(&mut self, record: &Record, ledgers: &VersionedStores) {
        let harvest = |event: &ChainEvent| event.phase == ChainPhase::OutputHarvested;
        assert!(
            self.changed.is_empty()
                || matches!(&record.event, Event::VariableChanged(_))
                || matches!(&record.event, Event::ChainEvent(event) if harvest(event)),
            "a variable changed without a harvest: {:?}",
            self.changed
        );
        let decision_seq = self.decided.as_ref().map(|(_, seq, _)| *seq);
        match &record.event {
            Event::NodeStarted(event) if event.node_id.as_str() == "sup" => {
                assert!(!self.turn.open, "a turn starts while its decision is held");
                assert!(self.decided.as_ref().is_none_or(|(_, _, taken)| *taken), "a turn is taken before its time");
                assert!(self.turns < self.case.max_loop_iterations, "a turn too many");
                self.turn_starts(record, event.attempt, event.private.frozen, ledgers);
            }
            Event::NodeStarted(event) => self.dispatch_starts(event.attempt),
            Event::OrchestratorDecided(event) => self.decides(record.seq, event.iteration, &event.decision),
            Event::ConfidenceEscalated(event) => {
                let held = self.turn.planned.clone().expect("a turn has seen something");
                assert_eq!(event.original_decision, held, "the escalation shows the decision");
                assert_eq!(Some(event.confidence), held.confidence());
                assert!(event.confidence < event.floor);
                assert_eq!(record.causation, Some(self.turn.started), "an escalation is caused by its turn");
                assert!(!std::mem::replace(&mut self.turn.escalated, true), "one escalation per held decision");
                assert!(!self.turn.asked, "the escalation comes before its interrupt");
            }
            Event::InterruptRequested(event) if event.private.node_id.as_str() == "sup" => {
                let kind = if self.turn.escalated { self.case.escalation.interrupt.as_str() } else { "low-confidence" };
                assert_eq!(event.kind, kind);
                assert!(!std::mem::replace(&mut self.turn.asked, true), "one question per held decision");
                self.turn.open = true;
            }
            Event::InterruptResolved(event) if event.node_id.as_str() == "sup" => {
                assert!(std::mem::take(&mut self.turn.open));
                self.seen.insert(format!("held {} {:?}", event.kind, event.outcome));
                if event.outcome == Outcome::Accepted {
                    let value = event.resume_value.as_ref().expect("somebody accepted");
                    self.turn.ratified = Some(self.ratified(value));
                }
            }
            Event::InterruptRequested(event) => self.dispatch_asks(&event.kind),
            Event::InterruptResolved(event) => self.dispatch_hears(event.outcome, event.resume_value.as_ref()),
            Event::ChainEvent(event) => self.chain(record, event),
            Event::NodeDispatched(_) => {
                assert_eq!(record.causation, decision_seq, "a child is caused by its decision");
                self.workers += 1;
            }
            Event::FanOut(event) => {
                assert_eq!(record.causation, decision_seq, "a fan-out is caused by its decision");
                let wave = self.wave.as_mut().expect("a fan-out has workers");
                assert!(self.rules.is_parallel(wave.workers.len()));
                assert_eq!(event.child_count as usize, wave.workers.len());
                assert!(wave.workers.iter().all(|worker| worker.phase.is_none()), "the fan-out is announced first");
                assert!(!std::mem::replace(&mut wave.announced, true));
            }
            Event::Join(event) => {
                assert_eq!(record.causation, decision_seq, "a join is caused by its decision");
                let wave = self.wave.as_mut().expect("a join has workers");
                assert_eq!(wave.in_flight(), 0, "losers end before the join");
                let order = wave.ended.iter().filter_map(|&worker| wave.workers[worker].run.clone());
                assert_eq!(event.merge_order, order.collect::<Vec<_>>(), "children merge in the order they ended");
                let expected = self.rules.join(&wave.ends(), wave.workers.len());
                assert_eq!(Some(event.join_outcome), expected);
                let good = wave.ends().into_iter().filter(|good| *good).count();
                let bad = event.failed_count + event.cancelled_count.unwrap_or(0);
                assert_eq!((event.completed_count as usize, bad as usize), (good, wave.ended.len() - good));
                assert!(wave.joined.replace(event.join_outcome).is_none(), "one join per fan-out");
                self.seen.insert(format!("join {:?}", event.join_outcome));
            }
            // The answer to a question is the one variable that no worker makes.
            Event::VariableChanged(event) if event.name == "answer" => {
                assert!(matches!(&self.decided, Some((Decision::AskUser { .. }, _, _))), "an answer to no question");
                self.variables.insert(event.name.clone(), event.next.clone());
            }
            Event::VariableChanged(event) => {
                let before = self.variables.get(&event.name);
                assert_eq!(event.previous.as_ref(), before);
                self.changed.push((event.name.clone(), event.next.clone()));
            }
            Event::NodeCompleted(event) if event.node_id.as_str() == "disp" => {
                if let Some(wave) = self.wave.take() {
                    assert_eq!(wave.in_flight(), 0, "a dispatch completes after its workers");
                    assert_eq!(wave.unmerged(&self.rules), None, "a dispatch completes after its merges");
                    assert_eq!(wave.joined.is_some(), self.rules.is_parallel(wave.workers.len()));
                }
            }
            Event::NodeRetried(event) if event.node_id.as_str() == "disp" => {
                assert_eq!(event.last_error.code, "dispatch_join_failed", "what cannot get better is not tried again");
                self.dispatch_fails(&event.last_error.code);
                self.seen.insert("another attempt".to_owned());
            }
            Event::NodeRetried(event) => panic!("nobody asked for another turn: {event:?}"),
            Event::NodeFailed(event) if event.node_id.as_str() == "disp" => self.dispatch_fails(&event.error.code),
            Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) => {
                assert_eq!(self.wave.as_ref().map_or(0, Wave::in_flight), 0, "children end before their parent");
                let terminated = matches!(self.decided, Some((Decision::Terminate { .. }, ..)));
                assert!(
                    terminated || !matches!(record.event, Event::RunCompleted(_)),
                    "completed by nobody's decision"
                );
            }
            _ => {}
        }
        self.seen.insert(record.event.type_name().to_owned());
    }

    /// A turn sees the versioned stores at the versions on record, and sees them so again however often it is sent back.
    fn turn_starts(&mut self, record: &Record, attempt: u32, frozen: Option<TurnSnapshot>, ledgers: &VersionedStores) {
        let planned = frozen.map(|frozen| {
            if attempt > 0 {
                assert_eq!(Some(frozen), self.turn.frozen, "a turn that is taken again sees the same");
            } else {
                assert_eq!(frozen.at, record.at, "a turn sees what has not expired when it starts");
            }
            let insight = Insight::new(ledgers, frozen, self.turns + 1, self.workers, attempt > 0);
            self.case.planned(&insight)
        });
        // Only a turn that could not see anything has nothing on record; it cannot decide either.
        self.turn = Turn { started: record.seq, frozen, planned, ..Turn::default() };
    }

    /// What the newest turn would have said, had it seen the world as it is now.
    pub fn otherwise(&self, ledgers: &VersionedStores, now: baton_model::Timestamp) -> Option<(Decision, Decision)> {
        let now = TurnSnapshot { versions: ledgers.versions(), at: now };
        let insight = Insight::new(ledgers, now, self.turns + 1, self.workers, true);
        Some((self.turn.planned.clone()?, self.case.planned(&insight)))
    }

    fn dispatch_starts(&mut self, attempt: u32) {
        let (decision, _, taken) = self.decided.as_mut().expect("a dispatch acts on a decision");
        assert_eq!(std::mem::replace(taken, true), attempt > 0, "a decision is acted on once, or tried again");
        assert!(attempt <= self.case.retries && self.wave.is_none());
        self.dispatches += 1;
        assert!(self.dispatches <= self.rules.iteration_cap(), "a dispatch too many");
        self.wave = match decision {
            Decision::NextWorker { next_worker_ids, .. } => Some(Wave::new(next_worker_ids)),
            _ => None,
        };
    }

    fn decides(&mut self, seq: u64, iteration: u64, decision: &Decision) {
        assert_eq!(iteration, self.turns + 1, "turns are counted without a gap");
        assert!(!matches!(self.decided, Some((Decision::Terminate { .. }, ..))), "decided after the end");
        assert!(!self.turn.open, "decided while held");
        let planned = self.turn.planned.clone().expect("only a turn that saw something decides");
        let unsure = planned.confidence().is_some_and(|sure| sure < self.case.escalation.floor);
        let doubtful = self.case.agent_confidence(iteration).is_some_and(|sure| sure < 0.7);
        assert_eq!(self.turn.asked, unsure || doubtful, "unsure decisions are held, and only they");
        assert_eq!(self.turn.escalated, unsure, "the floor rule escalates, the agents' rule does not");
        let expected = if unsure || doubtful { self.turn.ratified.take() } else { Some(planned) };
        assert_eq!(Some(decision), expected.as_ref(), "what is decided is what was said or ratified");
        self.turns = iteration;
        self.decided = Some((decision.clone(), seq, false));
    }

    /// The decision an accepting answer stands for.
    fn ratified(&self, value: &Value) -> Decision {
        let value = value.pointer("/answers/decision").unwrap_or(value);
        match value.as_str().or_else(|| value["action"].as_str()) {
            Some("accept") => self.turn.planned.clone().expect("a decision is held"),
            Some("edit-accept") => Decision::read(&value["editedArtifactData"]).unwrap(),
            _ => Decision::read(value).unwrap(),
        }
    }

    fn dispatch_asks(&mut self, kind: &str) {
        let Some(wave) = &mut self.wave else {
            assert_eq!(kind, "clarification");
            assert!(matches!(self.decided, Some((Decision::AskUser { .. }, ..))), "only a question asks the user");
            return;
        };
        assert_eq!(kind, "approval");
        assert!(self.rules.asks_before_merging());
        assert_eq!(wave.in_flight(), 0);
        assert!(wave.unmerged(&self.rules).is_some(), "there is something to merge");
        assert!(!std::mem::replace(&mut wave.asking, true));
    }

    fn dispatch_hears(&mut self, outcome: Outcome, value: Option<&Value>) {
        let Some(wave) = &mut self.wave else { return };
        assert!(std::mem::take(&mut wave.asking));
        let worker = wave.unmerged(&self.rules).expect("there is something to merge");
        self.seen.insert(format!("merge {outcome:?}"));
        let worker = &mut wave.workers[worker];
        match value.filter(|_| outcome == Outcome::Accepted) {
            Some(value) => {
                let edited = value.get("editedArtifactData");
                let edited = edited.and_then(|edited| edited.get("outputs").unwrap_or(edited).as_object());
                worker.granted = Some(edited.cloned().unwrap_or_else(|| made(worker.run.as_ref().unwrap())));
            }
            None => worker.withheld = true,
        }
    }

    fn dispatch_fails(&mut self, code: &str) {
        let (decision, ..) = self.decided.as_ref().expect("a dispatch acts on a decision");
        let wave = self.wave.take().expect("only workers make a dispatch fail");
        match self.rules.refusal(decision) {
            Some(refusal) => {
                assert_eq!(code, refusal);
                assert!(wave.workers.iter().all(|worker| worker.phase.is_none()), "a refused decision starts nothing");
            }
            None => {
                assert_eq!(code, "dispatch_join_failed");
                // A single worker's join is judged without being announced.
                let single = wave.workers.len() == 1 && !self.rules.is_parallel(1);
                assert!(single || wave.joined == Some(baton_model::event::JoinOutcome::Failed));
            }
        }
        self.seen.insert(code.to_owned());
    }

    fn chain(&mut self, record: &Record, event: &ChainEvent) {
        use ChainPhase::{
            ChildCancelled, ChildCompleted, ChildFailed, DispatchBegan, DispatchFailed, DispatchSucceeded,
            OutputHarvested,
        };
        assert!(!self.turn.open, "a worker moves while a decision is held");
        let (decision, decision_seq, _) = self.decided.as_ref().expect("a worker is named by a decision");
        let (parallel, wave) = match &mut self.wave {
            Some(wave) => (self.rules.is_parallel(wave.workers.len()), wave),
            None => panic!("a chain event outside a dispatch"),
        };
        let ordinal = event.private.ordinal as usize;
        assert_eq!(event.worker_id, wave.workers[ordinal].id);
        let before = wave.workers[ordinal].phase;
        let (expected, cause) = match event.phase {
            DispatchBegan => (None, *decision_seq),
            DispatchSucceeded | DispatchFailed => (Some(DispatchBegan), wave.workers[ordinal].seq),
            ChildCompleted | ChildFailed | ChildCancelled => (Some(DispatchSucceeded), wave.workers[ordinal].seq),
            OutputHarvested => (Some(ChildCompleted), wave.workers[ordinal].seq),
        };
        assert_eq!(before, expected, "before {:?}", event.phase);
        assert_eq!(record.causation, Some(cause), "the cause of {:?}", event.phase);
        assert_eq!(event.error.is_some(), matches!(event.phase, DispatchFailed | ChildFailed | ChildCancelled));
        match event.phase {
            DispatchBegan => {
                let Decision::NextWorker { next_worker_inputs, .. } = decision else { panic!("nobody was named") };
                assert_eq!(self.rules.refusal(decision), None, "a refused decision starts nothing");
                assert_eq!(wave.announced, parallel, "a fan-out is announced first, and only a fan-out");
                assert!(wave.joined.is_none() && event.child_run_id.is_none());
                if parallel {
                    assert_eq!(self.rules.join(&wave.ends(), wave.workers.len()), None, "nobody starts for a met join");
                } else {
                    assert_eq!(wave.unmerged(&self.rules), None, "the one before is merged first");
                    assert!(wave.workers[..ordinal].iter().all(|worker| worker.phase.is_some()), "in order");
                }
                let child = event.private.child.as_ref().expect("a child is planned");
                assert!(self.children.insert(child.run.clone()), "a child is planned once");
                let own = next_worker_inputs.as_ref().map(|all| all[ordinal].clone()).unwrap_or_default();
                let given = self.rules.inputs(&event.worker_id, &self.variables, &own);
                assert_eq!(Value::Object(child.inputs.clone()), given, "what the worker is given");
            }
            DispatchSucceeded => wave.workers[ordinal].run.clone_from(&event.child_run_id),
            DispatchFailed | ChildCompleted | ChildFailed | ChildCancelled => {
                assert_eq!(event.child_run_id, wave.workers[ordinal].run);
                wave.ended.push(ordinal);
            }
            OutputHarvested => {
                assert_eq!(wave.unmerged(&self.rules), Some(ordinal), "merges keep the order of ends");
                assert_eq!(wave.joined.is_some(), parallel, "a fan-out merges after its join");
                let worker = &mut wave.workers[ordinal];
                let made = made(worker.run.as_ref().unwrap());
                let outputs = if self.rules.asks_before_merging() { worker.granted.take() } else { Some(made) };
                let harvest = self.rules.harvest(&worker.id, &outputs.expect("a merge that was granted"));
                let keys: Vec<String> = harvest.iter().map(|(key, _)| key.clone()).collect();
                assert_eq!(event.harvested_keys, Some(keys));
                assert_eq!(event.attestation.is_some(), self.rules.attests());
                let news = harvest.into_iter().filter(|(key, value)| self.variables.get(key) != Some(value));
                let news: Vec<_> = news.collect();
                assert_eq!(std::mem::take(&mut self.changed), news, "variables change by what is harvested");
                self.variables.extend(news);
            }
        }
        wave.workers[ordinal].phase = Some(event.phase);
        wave.workers[ordinal].seq = record.seq;
        assert!(wave.in_flight() <= self.rules.concurrency(wave.workers.len()), "too many children at once");
        self.seen.insert(format!("{:?}", event.phase));
    }
}
