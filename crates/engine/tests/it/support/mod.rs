//! A tiny world for the pure engine: a clock moved by hand and a log kept in a vector.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod agent_audit;
pub mod agent_nodes;
pub mod agents;
pub mod beside;
pub mod checkpoints;
pub mod deeds;
pub mod fixtures;
pub mod generate;
pub mod list_nodes;
pub mod minds;
pub mod models;
pub mod protocol;
pub mod schemas;
pub mod script;
pub mod second;
pub mod tools;
pub mod versioned;
pub mod versioned_nodes;
pub mod walk;

use baton_model::event::RunSettings;
use std::sync::Arc;

use baton_engine::{
    Answer, Command, Effect, Features, NodeRequest, Plan, Refusal, RunState, Start, apply, decide, evolve, outstanding,
    wanted,
};
use baton_model::event::DrainPolicy;
use baton_model::{Draft, Event, NodeId, Owner, Part, Record, RunId, RunStatus, TenantId, Timestamp};
use serde_json::{Map, Value, json};

use script::News;
use versioned::VersionedStores;

/// Who only asks whether anything is wanted hears the same as who reads the whole list.
pub fn assert_short_answers(state: &RunState, effects: &[Effect]) {
    let any = effects.iter().any(|effect| !matches!(effect, Effect::WakeAt { .. }));
    assert_eq!(state.awaits_the_world(), any, "{effects:?}");
    let moving = |effect: &Effect| matches!(effect, Effect::StartChild { .. } | Effect::CancelChild { .. });
    assert_eq!(state.is_moving_children(), effects.iter().any(moving), "{effects:?}");
    let calls = effects.iter().filter(|effect| matches!(effect, Effect::CallTool(_))).count();
    assert_eq!(state.wanted_tool_calls().len(), calls, "{effects:?}");
}

/// The record as storage gives it back.
pub fn stored(record: &Record) -> Record {
    let payload = serde_json::to_string(&record.event.payload()).unwrap();
    let event = Event::decode(record.event.type_name(), &payload, record.event.private_json().as_deref()).unwrap();
    assert_eq!(event, record.event, "what is stored reads back as it was");
    Record { event, ..record.clone() }
}

pub struct World {
    pub state: RunState,
    pub log: Vec<Record>,
    pub now: Timestamp,
    /// What the run shares with the world.
    pub ledgers: VersionedStores,
    /// Whether questions are answered as soon as they are asked.
    pub answering: bool,
}

/// A definition from nodes `(id, typeId, config)` and edges `(source, target, extra)`.
pub fn workflow(nodes: &[(&str, &str, Value)], edges: &[(&str, &str, Value)]) -> Value {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|(id, type_id, config)| {
            json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
        })
        .collect();
    let edges: Vec<Value> = edges
        .iter()
        .enumerate()
        .map(|(i, (source, target, extra))| {
            let mut edge = json!({"id": format!("e{i}"), "sourceNodeId": source, "targetNodeId": target});
            edge.as_object_mut().unwrap().extend(extra.as_object().cloned().unwrap_or_default());
            edge
        })
        .collect();
    json!({
        "id": "conformance-test", "name": "Test", "version": "1", "nodes": nodes, "edges": edges,
        "triggers": [], "variables": [], "metadata": {}, "settings": {}
    })
}

pub fn plan(definition: Value) -> Arc<Plan> {
    Arc::new(
        Plan::compile(definition, Features { conformance: true, ..Features::default() })
            .expect("the definition compiles"),
    )
}

/// Compiles, starts and runs as far as it goes.
pub fn run(definition: Value) -> World {
    World::started(plan(definition), start_command(json!({})))
}

pub fn start_command(inputs: Value) -> Start {
    let settings = RunSettings {
        max_node_executions: 1000,
        max_duration_ms: 1_000_000,
        values: Some(Box::new(baton_model::ValueBounds::default())),
        context: Some(Default::default()),
        max_loop_iterations: 100,
        max_fan_out: 16,
        ..RunSettings::default()
    };
    Start {
        inputs: inputs.as_object().cloned().unwrap_or_default(),
        variables: Map::new(),
        owner: Owner { tenant: TenantId::new("t"), principal: None, subject: None },
        tags: vec![],
        metadata: Map::new(),
        withdrawn: false,
        settings: Box::new(settings),
    }
}

impl World {
    pub fn new(plan: Arc<Plan>) -> Self {
        let state = RunState::new(RunId::new("run_test"), plan);
        let (log, now) = (Vec::new(), Timestamp::from_millis(1_000_000));
        Self { state, log, now, ledgers: VersionedStores::default(), answering: true }
    }

    /// Starts and runs as far as it goes.
    pub fn started(plan: Arc<Plan>, start: Start) -> Self {
        let mut world = Self::new(plan);
        world.command(&Command::Start(Box::new(start))).expect("the start is accepted");
        world
    }

    /// Applies one command, then everything that follows from it.
    pub fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        let drafts = decide(&self.state, command, self.now)?;
        self.apply_as(drafts, !matches!(command, Command::Advance));
        self.advance();
        Ok(())
    }

    pub fn advance(&mut self) {
        loop {
            let drafts = decide(&self.state, &Command::Advance, self.now).expect("advancing is never refused");
            if !drafts.is_empty() {
                self.apply_as(drafts, false);
            } else if !self.answering || !self.answer_question() {
                return;
            }
        }
    }

    /// The question the run waits on.
    pub fn question(&self) -> Option<NodeRequest> {
        let asked = outstanding(&self.state).into_iter().find_map(|effect| match effect {
            Effect::NodeRequest(node_request) => Some(*node_request),
            _ => None,
        });
        assert_eq!(asked, wanted(&self.state), "what is wanted is outstanding");
        asked
    }

    /// Answers the open question, if there is one, as a shell would: what was written counts only if the answer does.
    pub fn answer_question(&mut self) -> bool {
        match self.question() {
            Some(node_request) => self.answer_from_versioned_stores(&node_request),
            None => false,
        }
    }

    /// Answers this question, open or not. Returns whether the engine took the answer.
    pub fn answer_from_versioned_stores(&mut self, node_request: &NodeRequest) -> bool {
        let (answer, after) = self.ledgers.answer(&self.state.run, self.state.memory_scope(), node_request, self.now);
        let taken = self.consulted(node_request, answer);
        if taken {
            self.ledgers = after;
        }
        taken
    }

    /// Hands the engine an answer and nothing else. Returns whether it took it.
    pub fn consulted(&mut self, node_request: &NodeRequest, answer: Answer) -> bool {
        let command = Command::RequestAnswered { node_request: Box::new(node_request.clone()), answer };
        let drafts = decide(&self.state, &command, self.now).expect("an answer is never refused");
        let taken = !drafts.is_empty();
        self.apply(drafts);
        taken
    }

    /// Records what follows from something the world said.
    pub fn apply(&mut self, drafts: Vec<Draft>) {
        self.apply_as(drafts, true);
    }

    /// Records drafts with their part in this step; whatever a test does, every record's public face is checked on the
    /// way.
    pub fn apply_as(&mut self, drafts: Vec<Draft>, outside: bool) {
        let records = apply(&mut self.state, drafts, self.now).expect("only legal records are drafted");
        for (place, record) in records.into_iter().enumerate() {
            assert_eq!(schemas::violation(&record, &self.state.run), None);
            assert_eq!(protocol::deviation(&record), None);
            let part = Some(Part { outside, first: place == 0 });
            self.log.push(Record { part, ..record });
        }
        // Every test goes on from a checkpoint now and then: often at first, and not so often in long runs.
        let seq = self.state.next_seq();
        if seq < 200 || seq.is_multiple_of(64) {
            self.state = checkpoints::again(&self.state);
        }
    }

    /// Moves time and lets what is due happen.
    pub fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_millis(ms);
        self.advance();
    }

    /// Moves to the next timer, if there is one within the run's life.
    pub fn sleep_until_next(&mut self) -> bool {
        match self.state.wake_at() {
            Some(at) => {
                self.now = self.now.max(at);
                self.advance();
                true
            }
            None => false,
        }
    }

    /// Answers as `ann`, who holds a key.
    pub fn answer(&mut self, node: &str, value: Value) -> Result<(), Refusal> {
        self.command(&script::reply_to(&self.state, &NodeId::new(node), value, "ann"))
    }

    pub fn cancel(&mut self) {
        self.command(&Command::Cancel { reason: None, by: None, parent: None }).expect("cancelling is never refused");
    }

    pub fn pause(&mut self, drain: DrainPolicy) -> Result<(), Refusal> {
        self.command(&Command::Pause { reason: None, drain })
    }

    pub fn resume(&mut self) -> Result<(), Refusal> {
        self.command(&Command::Resume { reason: None })
    }

    /// The only child this run wants something done about.
    pub fn child(&self) -> RunId {
        let children = script::wanted_children(&self.state);
        assert_eq!(children.len(), 1, "{children:?}");
        children[0].clone()
    }

    pub fn tell(&mut self, child: &RunId, news: News) {
        self.command(&script::tell(child.clone(), &news)).expect("news is never refused");
    }

    /// Public payloads of one type, in order.
    pub fn payloads(&self, kind: &str) -> Vec<Value> {
        let of_kind = self.log.iter().filter(|record| record.event.type_name() == kind);
        of_kind.map(|record| serde_json::to_value(record.event.payload()).unwrap()).collect()
    }

    pub fn status(&self) -> RunStatus {
        self.state.status()
    }

    pub fn types(&self) -> Vec<&str> {
        self.log.iter().map(|record| record.event.type_name()).collect()
    }

    /// Node ids of the records of one type, in order.
    pub fn nodes_of(&self, kind: &str) -> Vec<&str> {
        let of_kind = self.log.iter().filter(|record| record.event.type_name() == kind);
        of_kind.filter_map(|record| record.event.node_id().map(|node| node.as_str())).collect()
    }

    pub fn variable(&self, name: &str) -> Option<&Value> {
        self.state.variables().get(name)
    }

    pub fn error_code(&self) -> Option<&str> {
        self.state.error().map(|error| error.code.as_str())
    }

    /// The state as a fold of the log alone.
    pub fn refolded(&self) -> RunState {
        let fresh = RunState::new(self.state.run.clone(), Arc::clone(self.state.plan()));
        self.log.iter().try_fold(fresh, evolve).expect("the log folds")
    }
}
