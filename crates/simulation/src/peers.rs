//! Whoever a host talks to: models, tools and subscribers, in the process, slow, moody and dead as the seed says. They
//! look at the disk whenever they are called: what the call follows from must be there, and its end must not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use baton_model::tool::{SafetyTier, ToolRequest, ToolUse, Transport};
use baton_model::{Event, ModelReply, ModelRequest, OutcomePolicy, RunId, StopReason, ToolOutcome, ToolSpec, Usage};
use baton_provider::{DeltaSink, Provider, ProviderFault, upper_bound_input};
use baton_runtime::{SignedDelivery, WebhookCarrier};
use baton_tool::{Called, Tool};
use parking_lot::Mutex;
use serde_json::json;

use crate::disk::Observer;
use crate::rng::Rng;
use crate::time::HostClock;

/// A peer that is dead answers nobody for this long; then the caller's own bound ends the call.
const DEAD_US: i64 = 20_000_000;

/// What all hosts' peers have in common: they outlive the hosts.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) rng: Rng,
    pub(crate) observer: Observer,
    /// Models, tools and subscribers give no trouble any more.
    pub(crate) well: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often tools were called that may be called once, by the key of the call.
    once: BTreeMap<String, u32>,
    /// What tools did of what they were asked, by the key of the call.
    done: BTreeSet<String>,
    /// Which events subscribers took, by webhook and run.
    delivered: BTreeMap<(String, String), BTreeSet<u64>>,
    /// Deliveries that came after a later event of their run.
    late: u64,
    objections: Vec<String>,
    calls: u64,
}

impl Outside {
    pub(crate) fn new(rng: Rng, observer: Observer) -> Self {
        Self { rng, observer, well: AtomicBool::new(false), state: Mutex::default() }
    }

    pub(crate) fn objections(&self) -> Vec<String> {
        self.state.lock().objections.clone()
    }

    /// How many calls of models and tools came here, and how many deliveries.
    pub(crate) fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    fn object(&self, why: String) {
        self.state.lock().objections.push(why);
    }

    fn is_moody(&self) -> bool {
        !self.well.load(Ordering::Relaxed)
    }

    async fn think(&self, clock: &HostClock) -> Mood {
        self.state.lock().calls += 1;
        let (delay, mood) = match self.rng.below(100) {
            0..=24 => (0, Mood::Well),
            25..=84 => (self.rng.between(1_000, 300_000), Mood::Well),
            85..=91 if self.is_moody() => (self.rng.between(0, 2_000_000), Mood::Fails),
            92..=95 if self.is_moody() => (self.rng.between(0, 500_000), Mood::Mute),
            96..=97 if self.is_moody() => (DEAD_US as u64, Mood::Mute),
            _ => (self.rng.between(300_000, 8_000_000), Mood::Well),
        };
        if delay > 0 {
            clock.sleep(i64::try_from(delay).unwrap_or(0)).await;
        }
        mood
    }

    fn log(&self, run: &str) -> Vec<Event> {
        self.observer.history(&RunId::new(run))
    }

    /// "Effects with recorded results are never called again": a tool's call.
    fn check_tool(&self, request: &ToolRequest) {
        let Some((run, call)) = request.key.rsplit_once('/') else {
            return self.object(format!("{}: a key that names no run", request.key));
        };
        let log = self.log(run);
        let intended = log.iter().any(|event| matches!(event, Event::AgentToolCalled(event) if event.call_id == call));
        let over = log.iter().any(|event| matches!(event, Event::AgentToolReturned(event) if event.call_id == call));
        if !intended || over {
            self.object(format!("{}: tool called; intent on disk {intended}, end on disk {over}", request.key));
        }
    }

    /// The same of a model's.
    fn check_model(&self, request: &ModelRequest) {
        let mut parts = request.key.rsplitn(5, '/');
        let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
        let (Some(call), Some(attempt), Some(visit)) = (number(), number(), number()) else {
            return self.object(format!("{}: a key that names no place", request.key));
        };
        let (node, run) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let log = self.log(run);
        let started = log.iter().any(|event| {
            matches!(event, Event::NodeStarted(event)
                if event.node_id.as_str() == node && event.private.visit == visit && event.attempt == attempt)
        });
        let answers = log.iter().filter(|event| {
            matches!(event, Event::ProviderUsage(event) if event.node_id.as_str() == node
                && event.private.reply.is_some()
                && event.private.visit == visit && event.private.attempt >= attempt)
        });
        let answers = answers.count();
        if !started || answers != call as usize {
            self.object(format!("{}: model asked; started {started}, {answers} answers on disk", request.key));
        }
    }

    /// Whatever may not be repeated when its outcome is unknown is called once.
    fn check_once(&self, key: &str) {
        let times = {
            let mut state = self.state.lock();
            let times = state.once.entry(key.to_owned()).or_default();
            *times += 1;
            *times
        };
        if times > 1 {
            self.object(format!("{key}: a tool whose outcome nobody may guess was called {times} times"));
        }
    }

    /// A delivery arrived. Counts those that came after a later event of their run.
    fn take(&self, webhook: &str, run: &str, seq: u64) {
        let mut state = self.state.lock();
        let taken = state.delivered.entry((webhook.to_owned(), run.to_owned())).or_default();
        let late = taken.insert(seq) && taken.last().is_some_and(|last| *last > seq);
        state.late += u64::from(late);
    }

    /// How many deliveries came after a later event of their run.
    pub(crate) fn late(&self) -> u64 {
        self.state.lock().late
    }

    /// Whether a tool did what it was asked under this key.
    pub(crate) fn has_done(&self, key: &str) -> bool {
        self.state.lock().done.contains(key)
    }

    fn note_done(&self, key: &str) {
        self.state.lock().done.insert(key.to_owned());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Fails,
    /// It may have done what it was asked, and does not say.
    Mute,
}

/// The models, as one host reaches them.
pub(crate) struct Models {
    pub(crate) outside: Arc<Outside>,
    pub(crate) clock: Arc<HostClock>,
}

#[async_trait]
impl Provider for Models {
    async fn call(&self, request: &ModelRequest, _: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.outside.check_model(request);
        let mood = self.outside.think(&self.clock).await;
        match mood {
            Mood::Well => {}
            Mood::Fails => return Err(ProviderFault::Unavailable("the simulation says so".to_owned())),
            Mood::Mute => return Err(ProviderFault::TimedOut),
        }
        Ok(said(request))
    }
}

/// The same request is answered with the same words, whoever asks and however often.
fn said(request: &ModelRequest) -> ModelReply {
    // As much as the host must expect, or next to nothing: by the key, so that a repeated call says the same.
    let room = request.cap.or(request.semantic.max_output_tokens).unwrap_or(5);
    let dear = request.key.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 2 == 0;
    let usage = if dear {
        Usage { input_tokens: upper_bound_input(&request.semantic), output_tokens: room, ..Usage::default() }
    } else {
        Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }
    };
    if request.node.as_str().starts_with("ask") {
        return ModelReply::text(r#"{"valid":true}"#, usage);
    }
    let told = request.semantic.messages.iter().filter(|message| message.role() == "tool").count();
    if told < 2 {
        let name = if told == 0 { SEND } else { LOOK };
        let used = ToolUse { id: format!("use-{told}"), name: name.to_owned(), arguments: json!({"n": told}) };
        return ModelReply { tools: vec![used], stop: StopReason::ToolUse, ..ModelReply::text("", usage) };
    }
    ModelReply::text("done", usage)
}

/// A tool that changes the world, and may be called again under its key.
pub(crate) const SEND: &str = "send";
/// One that only looks.
pub(crate) const LOOK: &str = "look";

pub(crate) struct ScriptedTool {
    spec: ToolSpec,
    outside: Arc<Outside>,
    clock: Arc<HostClock>,
}

impl ScriptedTool {
    pub(crate) fn new(id: &str, policy: OutcomePolicy, outside: Arc<Outside>, clock: Arc<HostClock>) -> Self {
        let spec = ToolSpec {
            id: id.to_owned(),
            description: "Does it.".to_owned(),
            input_schema: json!({"type": "object"}),
            transport: Transport::Http,
            tier: SafetyTier::Write,
            outcome_policy: policy,
            scopes: Vec::new(),
            stub: None,
        };
        Self { spec, outside, clock }
    }
}

#[async_trait]
impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        self.outside.check_tool(request);
        if self.spec.id == LOOK {
            self.outside.check_once(&request.key);
        }
        let mood = self.outside.think(&self.clock).await;
        match mood {
            Mood::Fails => Called::Done(ToolOutcome::failed("broke", "The simulation says so.")),
            Mood::Mute => {
                if self.outside.rng.percent(50) {
                    self.outside.note_done(&request.key);
                }
                Called::Unknown { reason: "no answer".to_owned() }
            }
            Mood::Well => {
                self.outside.note_done(&request.key);
                Called::Done(ToolOutcome::ok(json!({"did": request.arguments})).took(3))
            }
        }
    }
}

/// The subscribers, as one host reaches them.
pub(crate) struct Subscribers {
    pub(crate) outside: Arc<Outside>,
    pub(crate) clock: Arc<HostClock>,
}

impl std::fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscribers")
    }
}

#[async_trait]
impl WebhookCarrier for Subscribers {
    async fn post(&self, delivery: &SignedDelivery) -> Option<u16> {
        let event: serde_json::Value = serde_json::from_str(&delivery.body).unwrap_or_default();
        let (run, seq) = (event["runId"].as_str().unwrap_or_default(), event["event"]["sequence"].as_u64());
        let durable = self.outside.observer.run(&RunId::new(run)).map_or(0, |row| row.next_seq);
        if seq.is_some_and(|seq| seq >= durable) {
            self.outside.object(format!("{run}: event {seq:?} was sent to a subscriber before it was durable"));
        }
        let mood = self.outside.think(&self.clock).await;
        match mood {
            Mood::Fails => Some(503),
            Mood::Mute => None,
            Mood::Well => {
                self.outside.take(&delivery.webhook, run, seq.unwrap_or_default());
                Some(204)
            }
        }
    }
}
