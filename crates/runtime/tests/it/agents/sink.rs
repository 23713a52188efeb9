use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use baton_model::tool::{SafetyTier, ToolRequest, Transport};
use baton_model::{OutcomePolicy, ToolOutcome, ToolSpec};
use baton_tool::{Called, Tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use super::brain::Waiting;
use super::witness::Witness;

/// A tool that does something to the world, and counts how often it did.
pub struct Sink {
    spec: ToolSpec,
    pub done: AtomicUsize,
    pub keys: Mutex<Vec<String>>,
    /// Calls do not come back before this is true.
    pub open: watch::Sender<bool>,
    pub begun: watch::Sender<usize>,
    /// What the next calls come back with; after that they succeed.
    answers: Mutex<VecDeque<Called>>,
    abandoned: AtomicUsize,
    pub witness: Witness,
}

impl Sink {
    pub fn new(id: &str, policy: OutcomePolicy) -> Arc<Self> {
        Self::of(Self::spec(id, policy))
    }

    pub fn spec(id: &str, policy: OutcomePolicy) -> ToolSpec {
        ToolSpec {
            id: id.to_owned(),
            description: "Does it.".to_owned(),
            input_schema: json!({"type": "object"}),
            transport: Transport::Http,
            tier: SafetyTier::Write,
            outcome_policy: policy,
            scopes: Vec::new(),
            stub: None,
        }
    }

    pub fn of(spec: ToolSpec) -> Arc<Self> {
        Arc::new(Self {
            spec,
            done: AtomicUsize::new(0),
            keys: Mutex::default(),
            open: watch::Sender::new(true),
            begun: watch::Sender::new(0),
            answers: Mutex::default(),
            abandoned: AtomicUsize::new(0),
            witness: Witness::default(),
        })
    }

    /// The next calls have these outcomes, in turn.
    pub fn answer(&self, answers: impl IntoIterator<Item = Called>) {
        self.answers.lock().extend(answers);
    }

    /// The next calls are never heard of again.
    pub fn lose(&self, calls: usize) {
        self.answer(std::iter::repeat_n(Called::Unknown { reason: "no answer".to_owned() }, calls));
    }

    pub fn count(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    /// Calls that were dropped before they came back.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Waits until this many calls have been begun.
    pub async fn called(&self, times: usize) {
        let _ = self.begun.subscribe().wait_for(|count| *count >= times).await;
    }

    pub fn let_return(&self, open: bool) {
        self.open.send_replace(open);
    }

    /// Names that calls went by: every one of them once.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.keys.lock().clone();
        names.sort();
        names.dedup();
        names
    }
}

#[async_trait]
impl Tool for Sink {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        let before = self.keys.lock().iter().filter(|key| **key == request.key).count();
        self.witness.called(request, before).await;
        self.keys.lock().push(request.key.clone());
        self.done.fetch_add(1, Ordering::SeqCst);
        self.begun.send_modify(|count| *count += 1);
        let waiting = Waiting::on(&self.abandoned);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        waiting.over();
        let told = self.answers.lock().pop_front();
        told.unwrap_or_else(|| Called::Done(ToolOutcome::ok(json!({"did": request.arguments})).took(3)))
    }
}
