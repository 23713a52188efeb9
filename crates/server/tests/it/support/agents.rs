//! Hosts with agents: cards, tools that count their calls, and what a model is to say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolOutcome, ToolRequest, Transport};
use baton_model::{
    AgentCard, MemoryShape, ModelChoice, ModelClass, ModelReply, ModelRequest, NodeId, SemanticRequest, StopReason,
    ToolSpec, ToolUse, Usage,
};
use baton_provider::{Delta, DeltaSink, MockProvider, Provider, ProviderFault};
use baton_runtime::{AgentRegistry, ModelTable, Models, Options};
use baton_tool::catalog::Source;
use baton_tool::{About, Called, Tool, ToolSet, Toolbox};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Site;

/// The node of a run that is one agent.
pub const NODE: &str = "agent";
pub const EDITOR: &str = "vendor.acme.team.editor";

pub fn card(id: &str, label: &str) -> AgentCard {
    AgentCard {
        agent_id: id.to_owned(),
        persona: label.to_owned(),
        label: label.to_owned(),
        description: None,
        pack_name: "vendor.acme.team".to_owned(),
        pack_version: "1.2.0".to_owned(),
        model_class: ModelClass::Writing,
        system_prompt: "You are an editor. SYSTEM-PROMPT-TEXT".to_owned(),
        tools: Vec::new(),
        memory: MemoryShape::default(),
        threshold: None,
        task_schema: None,
        return_schema: None,
        prompt_overrides: Default::default(),
        prompt_library: None,
    }
}

/// An agent that answers with `{"answer": …}` and may say how sure it is.
pub fn editor() -> AgentCard {
    let schema = json!({
        "type": "object", "required": ["answer"],
        "properties": {"answer": {"type": "string"}, "confidence": {"type": "number"}},
    });
    AgentCard { return_schema: Some(schema), ..card(EDITOR, "Chief Editor") }
}

/// A model that says what it is told and remembers what it was asked.
#[derive(Default)]
pub struct Model {
    mock: MockProvider,
    asked: Mutex<Vec<Arc<SemanticRequest>>>,
    /// What it thinks aloud next time, before it is let answer.
    musing: Mutex<Option<String>>,
    answer: Notify,
}

impl Model {
    /// What it says to the next calls of an agent's node.
    pub fn program(&self, replies: Vec<ModelReply>) {
        self.mock.program(NodeId::new(NODE), replies);
    }

    /// It thinks this aloud, and says that once it is let.
    pub fn muse(&self, thought: &str, reply: ModelReply) {
        *self.musing.lock().unwrap() = Some(thought.to_owned());
        self.program(vec![reply]);
    }

    /// Lets it answer.
    pub fn answer(&self) {
        self.answer.notify_one();
    }

    pub fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The room for an answer in its last call.
    pub fn last_room(&self) -> Option<u64> {
        self.asked.lock().unwrap().last().unwrap().max_output_tokens
    }

    /// The messages of its last call: who, and what.
    pub fn messages(&self) -> Vec<(String, String)> {
        let asked = self.asked.lock().unwrap();
        let told = |message: &baton_model::cache_key::Message| {
            (message.role().to_owned(), message.content().as_str().unwrap_or_default().to_owned())
        };
        asked.last().unwrap().messages.iter().map(told).collect()
    }

    /// Everything that was said to it in its last call.
    pub fn last(&self) -> String {
        let asked = self.asked.lock().unwrap();
        let texts = asked.last().unwrap().messages.iter().map(|message| message.content().to_string());
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[async_trait]
impl Provider for Model {
    async fn call(&self, request: &ModelRequest, ear: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.asked.lock().unwrap().push(Arc::clone(&request.semantic));
        let musing = self.musing.lock().unwrap().take();
        if let Some(thought) = musing {
            thought.split_inclusive(' ').for_each(|word| ear.push(Delta::Reasoning(word.to_owned())));
            self.answer.notified().await;
        }
        self.mock.call(request, ear).await
    }

    fn capabilities(&self, model: &str) -> BTreeSet<String> {
        let mut offers = self.mock.capabilities(model);
        offers.extend((model == "mock-eyes").then(|| "vision-input".to_owned()));
        offers
    }
}

/// Models and agents for a host outside conformance mode.
pub fn staffed(options: &mut Options, cards: impl IntoIterator<Item = AgentCard>) -> Arc<Model> {
    let model = Arc::new(Model::default());
    options.models = Models::default().with("mock", Arc::clone(&model) as _);
    let choice = ModelChoice { provider: "mock".to_owned(), model: "mock-mini".to_owned() };
    options.model_table = ModelTable::default().otherwise(choice);
    options.agent_registry =
        cards.into_iter().fold(AgentRegistry::default(), |agent_registry, card| agent_registry.with(None, card));
    model
}

pub fn says(value: &Value) -> ModelReply {
    ModelReply::text(value.to_string(), Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() })
}

pub fn calls(tools: &[(&str, Value)]) -> ModelReply {
    let tools = tools.iter().enumerate().map(|(i, (name, arguments))| ToolUse {
        id: format!("c{i}"),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    });
    ModelReply { tools: tools.collect(), stop: StopReason::ToolUse, ..says(&json!("")) }
}

/// A tool that counts how often it is called and gives back what it was given.
pub struct Echo {
    spec: ToolSpec,
    pub calls: AtomicUsize,
}

impl Echo {
    pub fn new(id: &str, scopes: &[&str]) -> Arc<Self> {
        let spec = ToolSpec {
            id: id.to_owned(),
            description: "Gives back what it is given.".to_owned(),
            input_schema: json!({"type": "object"}),
            transport: Transport::Http,
            tier: SafetyTier::Read,
            outcome_policy: OutcomePolicy::Retry,
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            stub: None,
        };
        Arc::new(Self { spec, calls: AtomicUsize::new(0) })
    }

    /// One of somebody else's, described in their words.
    pub fn abroad(id: &str, description: &str, transport: Transport, of_text: &str) -> Arc<Self> {
        let text = json!({"type": "string", "description": of_text});
        let input_schema = json!({"type": "object", "properties": {"text": text}});
        let description = description.to_owned();
        let spec = ToolSpec { input_schema, transport, description, ..Self::new(id, &[]).spec.clone() };
        Arc::new(Self { spec, calls: AtomicUsize::new(0) })
    }

    pub fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        let source = if self.spec.id.starts_with("mcp:") { Source::Mcp } else { Source::HostExtension };
        About { title: Some("Echo".to_owned()), source, ..About::default() }
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Called::Done(ToolOutcome::ok(json!({"echo": request.arguments})))
    }
}

pub fn toolbox(tools: &[Arc<Echo>]) -> Toolbox {
    let shelf = tools.iter().fold(ToolSet::default(), |shelf, tool| shelf.tool(Arc::clone(tool) as _).unwrap());
    Toolbox::new(shelf)
}

pub fn of_type<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|event| event["type"] == kind).collect()
}

pub fn types(log: &[Value]) -> Vec<&str> {
    log.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The only event of its kind.
#[track_caller]
pub fn only<'a>(log: &'a [Value], kind: &str) -> &'a Value {
    let found = of_type(log, kind);
    assert_eq!(found.len(), 1, "{kind}: {:?}", types(log));
    found[0]
}

impl Site {
    /// The log, once it has an event of this type.
    pub async fn logged(&self, run: &str, kind: &str) -> Vec<Value> {
        let found = async {
            loop {
                let log = self.log(run).await;
                if log.iter().any(|event| event["type"] == kind) {
                    return log;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), found).await.expect("in time")
    }

    /// Starts an agent by its id and waits for a status.
    pub async fn agent_run(&self, body: Value, status: &str) -> (String, Vec<Value>) {
        let answer = self.post("/v1/runs", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let run = answer.json()["runId"].as_str().unwrap().to_owned();
        self.reach(&run, status).await;
        let log = self.log(&run).await;
        (run, log)
    }
}
