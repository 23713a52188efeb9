//! A host with agents, and others around it who mean no good: a tool on somebody's server, a page, another host.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::routing::get;
use baton_agent::{Sources, load};
use baton_model::tool::{ToolOutcome, ToolRequest, Transport};
use baton_model::{AgentCard, Fault, MemoryShape, ModelChoice, RunId, RunStatus, TenantId, ToolSpec};
use baton_provider::{ProviderKind, ProviderSettings, build};
use baton_runtime::{
    Accepted, AgentRegistry, ModelTable, Models, Options, RemoteFault, RemoteHost, RemoteRunRequest, RemoteRunResult,
    RemoteRunStatus, Remotes,
};
use baton_testkit::Flow;
use baton_tool::egress::Guard;
use baton_tool::http::{HttpClient, HttpOptions, HttpRequest};
use baton_tool::{Called, NoSecrets, Tool, ToolSet, Toolbox};
use serde_json::{Map, Value, json};

use super::entrances::marker;
use super::vendor::Vendor;
use crate::support::agents::{Echo, card};
use crate::support::{self, Site, host_options};

pub(super) const ALPHA: &str = "vendor.acme.team.alpha";
pub(super) const BETA: &str = "vendor.acme.team.beta";
pub(super) const AGENT: &str = "vendor.baton.agent";

pub(super) fn agent_id(name: &str) -> String {
    format!("vendor.acme.team.{name}")
}

fn agent(name: &str, prompt: &str, tools: &[&str]) -> AgentCard {
    AgentCard {
        system_prompt: prompt.to_owned(),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        memory: MemoryShape { conversation: true, scratchpad: true, long_term: true },
        ..card(&agent_id(name), name)
    }
}

/// A tool on an MCP server, whose owner describes it as they like.
struct Abroad(ToolSpec);

impl Abroad {
    fn new() -> Arc<Self> {
        let input_schema = json!({
            "type": "object",
            "x-note": marker("keyword"),
            "properties": {
                "text": {
                    "type": "string", "title": marker("title"), "description": marker("schema"),
                    "examples": [marker("example")],
                },
                "deep": {"type": "object", "additionalProperties": {"type": "string", "enum": [marker("enum")]}},
                marker("property"): {"type": "string"},
            },
        });
        let plain = Echo::new("mcp:far.echo", &[]);
        let spec = ToolSpec {
            input_schema,
            transport: Transport::Mcp,
            description: marker("described"),
            ..plain.spec().clone()
        };
        Arc::new(Self(spec))
    }
}

#[async_trait]
impl Tool for Abroad {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        Called::Done(match request.arguments["text"].as_str() {
            Some("fail") => ToolOutcome::failed("broke", marker("failure")),
            _ => ToolOutcome::ok(json!({"echo": request.arguments})),
        })
    }
}

/// Another host: its runs end at once, well or not as their workflow is called.
struct Far;

#[async_trait]
impl RemoteHost for Far {
    fn name(&self) -> &str {
        "far"
    }

    fn origin(&self) -> &str {
        "https://far.example"
    }

    fn serves(&self, _: &TenantId) -> bool {
        true
    }

    async fn hand_over(&self, handover: &RemoteRunRequest) -> Result<Accepted, RemoteFault> {
        let run = RunId::new(format!("far_{}", handover.workflow_id));
        let url = format!("https://far.example/v1/runs/{run}");
        Ok(Accepted { run, host_id: Some("far".to_owned()), url })
    }

    async fn look(&self, run: &RunId, _: Option<u64>) -> Result<RemoteRunStatus, RemoteFault> {
        let fails = run.as_str().ends_with("fail");
        let variables: Map<String, Value> = [("made".to_owned(), marker("afar").into())].into_iter().collect();
        let error = fails.then(|| Fault::new("broke", marker("broke-afar")));
        let status = if fails { RunStatus::Failed } else { RunStatus::Completed };
        Ok(RemoteRunStatus { status, seq: 1, end: Some(RemoteRunResult { variables, error, usage: None }) })
    }

    async fn cancel(&self, _: &RunId, _: &str) -> Result<(), RemoteFault> {
        Ok(())
    }
}

/// A page of somebody's. Gives its address.
pub(super) async fn page() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/page", get(async || marker("http")));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/page")
}

fn agent_registry() -> AgentRegistry {
    let folder = tempfile::tempdir().unwrap();
    let template = json!({
        "templateId": "deep", "version": "1.0.0", "kind": "user", "text": "About {{inner}}.",
        "variables": [{"name": "inner", "type": "string", "required": true, "source": "variable", "extractPath": "$.text.inner"}],
    });
    std::fs::write(folder.path().join("deep.json"), template.to_string()).unwrap();
    let registry = load(&Sources { prompts: Some(folder.path().to_owned()), ..Sources::default() });
    assert!(registry.problems().is_empty(), "{:?}", registry.problems());
    let answer = json!({"type": "object", "required": ["answer"]});
    let cards = [
        agent("alpha", "You are alpha.", &[]),
        agent("beta", "You are beta.", &[]),
        agent("lead", "You lead.", &[]),
        agent("manager", "You manage.", &[]),
        agent("doubter", "You doubt.", &[]),
        agent("reader", "You read.", &["openwop:workspace.get"]),
        agent("caller", "You call.", &["mcp:far.echo"]),
        agent("asker", "You ask.", &["openwop:envelope"]),
        AgentCard { return_schema: Some(answer.clone()), ..agent("waverer", "You waver.", &[]) },
        AgentCard { return_schema: Some(answer), ..agent("slipper", "You slip.", &[]) },
    ];
    cards
        .into_iter()
        .fold(AgentRegistry::of(Arc::new(registry)), |agent_registry, card| agent_registry.with(None, card))
}

pub(super) async fn site(vendor: &Vendor) -> Site {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = ProviderSettings {
        kind: ProviderKind::OpenAi,
        base_url: Some(vendor.clone().open().await),
        stream: false,
        ..ProviderSettings::default()
    };
    let mut options: Options = host_options();
    options.models = Models::default().with("vendor", build("vendor", &settings).unwrap());
    options.model_table =
        ModelTable::default().otherwise(ModelChoice { provider: "vendor".to_owned(), model: "m".to_owned() });
    options.agent_registry = agent_registry();
    options.remotes = Remotes::new("https://near.example", 60_000).with(Arc::new(Far));
    let client = HttpClient::new(HttpOptions::new(Guard::new(true), Arc::new(NoSecrets)));
    let tools = [Abroad::new() as Arc<dyn Tool>, Arc::new(HttpRequest::new(client))];
    let shelf = baton_tool::native::tools().chain(tools).try_fold(ToolSet::default(), ToolSet::tool).unwrap();
    options.tools = Toolbox::new(shelf);
    Site::configured(|own| *own = options).await
}

impl Site {
    /// The name of a run that has begun.
    pub(super) fn begun(&self, answer: &support::Answer) -> String {
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["runId"].as_str().unwrap().to_owned()
    }

    pub(super) async fn flow(&self, flow: Flow) {
        let answer = self.post("/v1/workflows", flow.build()).await;
        assert!(answer.status.is_success(), "{}", answer.text);
    }

    /// Starts a run and waits until it stands like this.
    pub(super) async fn until(&self, action: Value, status: &str) -> String {
        let run = self.begun(&self.post("/v1/runs", action).await);
        self.reach(&run, status).await;
        run
    }

    pub(super) async fn run_flow(&self, id: &str, inputs: Value) -> String {
        self.until(json!({"workflowId": id, "inputs": inputs}), "completed").await
    }

    pub(super) async fn run_agent(&self, name: &str, inputs: Value) -> String {
        self.until(json!({"agentId": agent_id(name), "inputs": inputs}), "completed").await
    }

    /// Answers what a node asks, and waits until the run stands like this.
    pub(super) async fn answered(&self, run: &str, node: &str, value: Value, status: &str) {
        let answered = self.post(&format!("/v1/runs/{run}/interrupts/{node}"), json!({"resumeValue": value})).await;
        assert!(answered.status.is_success(), "{}", answered.text);
        self.reach(run, status).await;
    }
}

/// A node's one input.
pub(super) fn port(value: Value) -> Value {
    json!({"inputs": {"material": value}})
}

pub(super) fn variable(name: &str) -> Value {
    port(json!({"type": "variable", "variableName": name}))
}

pub(super) fn output(node: &str, key: &str) -> Value {
    port(json!({"type": "connection", "nodeId": node, "outputKey": key}))
}

/// A workflow of one node, and an agent that works on what it made.
pub(super) fn relayed(id: &str, (node, kind, config): (&str, &str, Value), material: Value) -> Flow {
    Flow::new(id)
        .node(node, kind, config)
        .node_with("work", AGENT, json!({"agentId": BETA}), material)
        .edge(node, "work")
}
