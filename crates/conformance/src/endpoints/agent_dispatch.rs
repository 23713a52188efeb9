//! One agent, dispatched by itself: what it was given, what it did, what came of it. The run is real.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{InvocationSource, ModelReply, Usage};
use baton_runtime::StartRun;
use baton_server::endpoint::{Allowed, ApiError, App, Ids, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::live_invoke::{Door, invoke};
use super::stage::{Body, Stage, Staging};
use crate::agents::CONFORMANCE_AGENT;
use crate::unchecked::unchecked;

/// How sure an agent has to be where neither the test nor its manifest says.
const THRESHOLD: f64 = 0.7;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dispatch {
    #[serde(default)]
    task: Map<String, Value>,
    /// What there is to be called; an agent gets of it what its manifest allows.
    available_tools: Option<Vec<String>>,
    /// Whether the task and what comes back are held against the agent's schemas. Runs always do; without it the agent
    /// is called as if it had none.
    validate_handoff: Option<bool>,
    confidence_threshold: Option<f64>,
    simulate_confidence: Option<f64>,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Ids(agent): Ids<String>,
    Body(asked): Body<Dispatch>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    let Some(card) = stage.app.host.agent(stage.tenant(), &agent) else {
        return Err(ApiError::not_found("There is no such agent here."));
    };
    let replies = asked.replies(&agent)?;
    let mut configurable = Map::new();
    let grants: Vec<Vec<String>> = asked.available_tools.clone().into_iter().collect();
    if let Some(tools) = asked.available_tools {
        configurable.insert("toolGrant".to_owned(), tools.into());
    }
    if let Some(threshold) = asked.confidence_threshold {
        configurable.insert("escalationThreshold".to_owned(), threshold.into());
    }
    let surface = stage.app.host.tool_surface(stage.tenant(), &card, &grants);
    let door = Door::Alone(InvocationSource::RunApi);
    let without_schemas = match asked.validate_handoff {
        Some(false) => Some(unchecked(&stage.app.host, &card).await?),
        _ => None,
    };
    let given = StartRun { inputs: asked.task, configurable, card: without_schemas, ..StartRun::default() };
    let run = invoke(&stage, &agent, door, replies, given).await?;
    let log = stage.log(&run).await?;
    let threshold = asked.confidence_threshold.or(card.threshold).unwrap_or(THRESHOLD);
    let mut body = report(&log);
    body["runId"] = json!(run);
    body["agentId"] = agent.into();
    body["threshold"] = threshold.into();
    body["toolSurface"] = surface.into_iter().map(|tool| tool.id).collect::<Vec<_>>().into();
    Ok(Reply::ok(&body).into_response())
}

impl Dispatch {
    fn replies(&self, agent: &str) -> Result<Vec<ModelReply>, ApiError> {
        let Some(confidence) = self.simulate_confidence else { return Ok(Vec::new()) };
        if agent != CONFORMANCE_AGENT {
            let problem = format!("works with {CONFORMANCE_AGENT}, whose answers have a confidence");
            return Err(ApiError::at("/simulateConfidence", &problem));
        }
        let answer = json!({"answer": "mock", "confidence": confidence});
        Ok(vec![ModelReply::text(answer.to_string(), Usage::default())])
    }
}

/// What the log says about the invocation.
fn report(log: &[Value]) -> Value {
    let of = |kind: &str| log.iter().rfind(|event| event["type"] == kind).map(|event| &event["payload"]);
    let mut events = Vec::new();
    for event in log.iter().filter(|event| event["type"].as_str().is_some_and(|kind| kind.starts_with("agent."))) {
        let mut flat = event["payload"].clone();
        flat["type"] = event["type"].clone();
        events.push(flat);
    }
    let completed = of("agent.invocation.completed");
    let outcome = completed.map_or("failed", |completed| match completed["outcome"].as_str() {
        Some("completed" | "handed-off") => "completed",
        Some("escalated") => "escalated",
        _ => "failed",
    });
    let mut body = json!({"status": outcome, "confidence": null, "events": events});
    if let Some(decided) = of("agent.decided") {
        body["confidence"] = decided["confidence"].clone();
        body["result"] = decided["decision"].clone();
    }
    if let Some(failed) = of("run.failed") {
        body["error"] = failed["error"].clone();
    }
    body
}
