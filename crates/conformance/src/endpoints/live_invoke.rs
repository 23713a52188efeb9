//! A live agent called through one of its doors. The run is real and has ended, or waits for a human, before the answer
//! goes out; what the model says is the mock provider's, told beforehand where a test wants something particular.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{InvocationSource, ModelReply, NodeId, RunId, StopReason, ToolUse, Usage};
use baton_runtime::StartRun;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, Stage, Staging, definition, node};
use crate::agents::{CONFORMANCE_AGENT, CONFORMANCE_STRICT_AGENT};
use crate::mode::Conformance;

/// The node of a run that is one agent.
pub(super) const AGENT_NODE: &str = "agent";
/// What tests call the schema of [`CONFORMANCE_STRICT_AGENT`].
const STRICT: &str = "conformance-strict-handoff";
/// More answers than any invocation asks for.
const ENOUGH: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invoke {
    agent_id: Option<String>,
    #[serde(default)]
    source: Source,
    return_schema_ref: Option<String>,
    #[serde(default)]
    force_invalid_result: bool,
    attempt_tool: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    WorkflowNode,
    #[default]
    RunApi,
    ChatMention,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(asked): Body<Invoke>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    let agent = asked.agent()?;
    let replies = asked.replies();
    let given = StartRun { inputs: task(), ..StartRun::default() };
    let invoked = invoke(&stage, agent, asked.source, replies, given).await?;
    let events = stage.log(&invoked).await?;
    let of = |kind: &str| events.iter().rfind(|event| event["type"] == kind).map(|event| &event["payload"]);
    let mut body = json!({"runId": invoked});
    if let Some(started) = of("agent.invocation.started") {
        body["invocationId"] = started["invocationId"].clone();
    }
    if let Some(completed) = of("agent.invocation.completed") {
        body["outcome"] = completed["outcome"].clone();
    }
    Ok(Reply::ok(&body).into_response())
}

fn task() -> Map<String, Value> {
    [("task".to_owned(), "Say whether this works.".into())].into_iter().collect()
}

impl Invoke {
    fn agent(&self) -> Result<&str, ApiError> {
        match (self.return_schema_ref.as_deref(), self.agent_id.as_deref()) {
            (None, None) => Ok(CONFORMANCE_AGENT),
            (None, Some(agent)) => Ok(agent),
            (Some(STRICT), None | Some(CONFORMANCE_STRICT_AGENT)) => Ok(CONFORMANCE_STRICT_AGENT),
            (Some(STRICT), Some(_)) => {
                Err(ApiError::at("/agentId", "has schemas of its own; leave it out or leave out returnSchemaRef"))
            }
            (Some(_), _) => Err(ApiError::at("/returnSchemaRef", &format!("must be {STRICT} or absent"))),
        }
    }

    fn replies(&self) -> Vec<ModelReply> {
        let mut replies = Vec::new();
        if let Some(tool) = &self.attempt_tool {
            let call = ToolUse { id: "call-1".to_owned(), name: tool.clone(), arguments: json!({}) };
            let plain = ModelReply::text("", Usage::default());
            replies.push(ModelReply { tools: vec![call], stop: StopReason::ToolUse, ..plain });
        }
        if self.force_invalid_result {
            // JSON, so that it is not taken for prose, and nothing that any schema asks for.
            let invalid = ModelReply::text(r#"{"forced-invalid":[]}"#, Usage::default());
            replies.resize(replies.len() + ENOUGH, invalid);
        }
        replies
    }
}

/// Runs an agent to its end, or to its question. The mock provider says `replies` first, and whatever fits afterwards.
pub(super) async fn invoke(
    stage: &Stage,
    agent: &str,
    source: impl Into<Door>,
    replies: Vec<ModelReply>,
    given: StartRun,
) -> Result<RunId, ApiError> {
    let host = &stage.app.host;
    let mode = Conformance::of(host)?;
    let _one_at_a_time = mode.journal.invoking.lock().await;
    mode.program_mock(NodeId::new(AGENT_NODE), replies);
    let mut settings: Map<String, Value> = Map::new();
    settings.insert("ai.provider".to_owned(), "mock".into());
    settings.insert("ai.model".to_owned(), "mock-mini".into());
    settings.extend(given.configurable);
    let start = StartRun { configurable: settings, ..given };
    let started = match source.into() {
        Door::Workflow => {
            // Named by what is in it: the agent's id has characters that a workflow's has not.
            let digest = baton_model::Digest::of_bytes(agent).to_string();
            let workflow_id = format!("conformance-seam-agent-{}", digest.get(..16).unwrap_or(&digest));
            let mut pinned = node(AGENT_NODE, "vendor.baton.agent", &json!({"agentId": agent}));
            pinned["agent"] = json!({"agentId": agent});
            stage.register(definition(&workflow_id, vec![pinned], &[], Vec::new())).await?;
            host.start_run(&stage.who, StartRun { workflow_id, ..start }, None).await?
        }
        Door::Alone(source) => host.start_agent(&stage.who, agent, source, start, None).await?,
    };
    let settled = stage.settle(&started.run_id).await;
    // What was not said is not left for somebody else.
    mode.program_mock(NodeId::new(AGENT_NODE), Vec::new());
    settled.map(|_| started.run_id)
}

/// How an agent is reached.
pub(super) enum Door {
    /// By a node of a workflow.
    Workflow,
    /// By its own id.
    Alone(InvocationSource),
}

impl From<Source> for Door {
    fn from(source: Source) -> Self {
        match source {
            Source::WorkflowNode => Self::Workflow,
            Source::RunApi => Self::Alone(InvocationSource::RunApi),
            Source::ChatMention => Self::Alone(InvocationSource::ChatMention),
        }
    }
}
