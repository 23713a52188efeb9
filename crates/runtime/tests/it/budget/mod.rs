//! A model whose calls the test lets go one by one, each with its own usage, and what the logs say was used.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::budget::Dimension;
use baton_model::{Amount, Event, ModelReply, ModelRequest, RunId, RunStatus, Usage};
use baton_provider::{DeltaSink, Price, Prices, Provider, ProviderFault};
use baton_runtime::{Models, Options, StartRun};
use baton_testkit::Flow;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::common::{self, World, who};

pub struct Meter {
    seed: u64,
    /// What every call uses, where it is not each one's own number.
    same: Option<u64>,
    /// Every answer takes all the room it has.
    greedy: bool,
    /// Nobody is answered before the test says so.
    gated: watch::Sender<bool>,
    state: Mutex<State>,
    started: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    keys: Vec<String>,
    /// The room that each call's answer had.
    rooms: BTreeMap<String, u64>,
    waiting: BTreeMap<String, oneshot::Sender<bool>>,
}

impl Meter {
    pub fn gated(seed: u64) -> Arc<Self> {
        Arc::new(Self::new(seed, None))
    }

    /// Every call uses this many tokens.
    pub fn gated_at(tokens: u64) -> Arc<Self> {
        Arc::new(Self::new(0, Some(tokens)))
    }

    fn new(seed: u64, same: Option<u64>) -> Self {
        let (gated, started) = (watch::Sender::new(true), watch::Sender::new(0));
        Self { seed, same, greedy: false, gated, state: Mutex::default(), started }
    }

    /// Answers at once, and takes all the room there is.
    pub fn greedy() -> Arc<Self> {
        let meter = Self { greedy: true, ..Self::new(0, None) };
        meter.gated.send_replace(false);
        Arc::new(meter)
    }

    /// The room that answers had, in the order in which they were asked for.
    pub fn rooms(&self) -> Vec<u64> {
        let state = self.state.lock();
        state.keys.iter().map(|key| state.rooms[key]).collect()
    }

    pub fn prompt(seed: u64) -> Arc<Self> {
        let meter = Self::gated(seed);
        meter.gated.send_replace(false);
        meter
    }

    /// What this call uses: its own number, the same whenever it is made with as much room.
    pub fn usage(&self, key: &str) -> Usage {
        if let Some(tokens) = self.same {
            return Usage { input_tokens: tokens, ..Usage::default() };
        }
        let number = self.number(key);
        let room = self.state.lock().rooms.get(key).copied().unwrap_or(1).max(1);
        let output_tokens = if self.greedy { room } else { 1 + number / 1000 % room };
        Usage { input_tokens: 1 + number % 40, output_tokens, ..Usage::default() }
    }

    fn number(&self, key: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, key).hash(&mut hasher);
        hasher.finish()
    }

    /// Every call that was made, in order.
    pub fn keys(&self) -> Vec<String> {
        self.state.lock().keys.clone()
    }

    /// Calls that have not been answered.
    pub fn in_flight(&self) -> Vec<String> {
        self.state.lock().waiting.keys().cloned().collect()
    }

    /// Answers a call, or lets it fail.
    pub fn answer(&self, key: &str, well: bool) {
        let _ = self.state.lock().waiting.remove(key).unwrap().send(well);
    }

    /// Answers everybody from now on.
    pub fn open(&self) {
        self.gated.send_replace(false);
        for (_, waiting) in std::mem::take(&mut self.state.lock().waiting) {
            let _ = waiting.send(true);
        }
    }

    pub async fn called(&self, times: usize) {
        let _ = self.started.subscribe().wait_for(|now| *now >= times).await;
    }
}

/// A call that nobody waits for is not in flight.
struct Waiting<'a>(&'a Meter, &'a str);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting.remove(self.1);
    }
}

#[async_trait]
impl Provider for Meter {
    async fn call(&self, request: &ModelRequest, _: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        let (go, answer) = oneshot::channel();
        let gated = *self.gated.borrow();
        {
            let mut state = self.state.lock();
            state.keys.push(request.key.clone());
            state.rooms.insert(request.key.clone(), request.semantic.max_output_tokens.unwrap_or(u64::MAX));
            if gated {
                state.waiting.insert(request.key.clone(), go);
            }
        }
        self.started.send_modify(|count| *count += 1);
        let well = if gated {
            let _waiting = Waiting(self, &request.key);
            answer.await.unwrap_or(true)
        } else {
            for _ in 0..self.number(&request.key) % 7 {
                tokio::task::yield_now().await;
            }
            true
        };
        match well {
            true => Ok(ModelReply::text(r#"{"valid":true}"#, self.usage(&request.key))),
            false => Err(ProviderFault::Unavailable("the test says so".to_owned())),
        }
    }
}

pub fn options(meter: &Arc<Meter>, ahead: usize) -> Options {
    Options { models: Models::default().with("meter", Arc::clone(meter) as _), ..common::options(ahead) }
}

/// Dollars for a million tokens: one for what is asked, ten for what is said.
pub fn prices(model: &str) -> Prices {
    Prices::new([(model.to_owned(), Price { input: 1.0, output: 10.0, cache_read: None, cache_write: None })])
}

/// A workflow that asks a model this often, one call after the other.
pub fn asks(id: &str, calls: usize) -> Flow {
    let names: Vec<String> = (0..calls).map(|n| format!("ask{n}")).collect();
    let flow = names.iter().fold(Flow::new(id), |flow, name| ask(flow, name, json!({})));
    names.windows(2).fold(flow, |flow, pair| flow.edge(&pair[0], &pair[1]))
}

pub fn ask(flow: Flow, name: &str, settings: Value) -> Flow {
    let schema = json!({"type": "object", "required": ["valid"]});
    let config = json!({"provider": "meter", "model": "m-1", "maxTokens": 400, "outputSchema": schema});
    let inputs = json!({"prompt": {"type": "static", "value": "Is it?"}});
    flow.node_with(name, "core.ai.structuredOutput", config, json!({"inputs": inputs, "settings": settings}))
}

/// A workflow that starts this many children at once and takes whatever becomes of them.
pub fn fans_out(id: &str, child: &str, children: usize) -> Flow {
    let config = json!({"workflowId": child, "onChildFailure": "absorb"});
    (0..children).fold(Flow::new(id), |flow, n| flow.node(&format!("w{n}"), "core.subWorkflow", config.clone()))
}

pub fn with_budget(workflow: &str, budget: Value) -> StartRun {
    let configurable = json!({"budget": budget}).as_object().unwrap().clone();
    StartRun { configurable, ..common::request(workflow) }
}

pub async fn start(world: &World, workflow: &str, budget: Value) -> RunId {
    world.host.start_run(&who(), with_budget(workflow, budget), None).await.unwrap().run_id
}

pub async fn events(world: &World, run: &RunId) -> Vec<Event> {
    let records = world.reader.records(run, 0, usize::MAX).await.unwrap();
    records.iter().map(|stored| stored.decode(run).unwrap().event).collect()
}

pub async fn types(world: &World, run: &RunId) -> Vec<String> {
    events(world, run).await.iter().map(|event| event.type_name().to_owned()).collect()
}

pub async fn count(world: &World, run: &RunId, kind: &str) -> usize {
    types(world, run).await.iter().filter(|name| *name == kind).count()
}

/// One model's answer: who got it, what it used, and what the whole tree had used then.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    pub run: RunId,
    pub tokens: u64,
    pub consumed: u64,
}

/// Everything the logs say was used, in the order it was charged. Each one says by how much the account moved.
pub async fn used(world: &World) -> Vec<Used> {
    let mut all = Vec::new();
    for row in world.rows().await {
        let mut last = None;
        for event in events(world, &row.id).await {
            match event {
                Event::ProviderUsage(usage) => {
                    assert_eq!(last, None, "an answer without a word about the budget");
                    last = Some(usage.total_tokens);
                }
                Event::BudgetConsumed(said) if said.dimension == Dimension::Tokens => {
                    let Amount::Whole(consumed) = said.consumed else { panic!("{said:?}") };
                    all.push(Used { run: row.id.clone(), tokens: last.take().unwrap(), consumed });
                }
                _ => {}
            }
        }
    }
    all.sort_by_key(|used| used.consumed);
    let mut before = 0;
    for used in &all {
        assert_eq!(used.consumed, before + used.tokens, "the account is the sum of what the logs say: {all:?}");
        before = used.consumed;
    }
    all
}

/// Every run's log, gone through again, comes out the same.
pub async fn verified(world: &World) {
    for row in world.rows().await {
        let proof = world.host.verify(&row.tenant, &row.id).await.unwrap();
        assert!(proof.difference.is_none(), "{} {}: {:?}", row.workflow, row.id, proof.difference);
    }
}

/// Why the runs that failed did.
pub async fn failures(world: &World) -> BTreeMap<String, usize> {
    let mut codes = BTreeMap::new();
    for row in world.rows().await.into_iter().filter(|row| row.status == RunStatus::Failed) {
        *codes.entry(row.error_code.unwrap_or_default()).or_default() += 1;
    }
    codes
}
