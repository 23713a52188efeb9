//! A small workflow, really run. What a test endpoint answers is read from the log of such a run, never worked out beside it.

use std::time::Duration;

use axum::http::StatusCode;
use baton_model::{Digest, ForkMode, RunId, RunSnapshot, SideEffects, TenantId, code};
use baton_runtime::{ErrorKind, ForkRun, StartRun};
use baton_server::endpoint::scope::{RunsCreate, RunsRead, WorkflowsWrite};
use baton_server::endpoint::{Allowed, ApiError, App};
use serde_json::{Map, Value, json};

pub(super) use baton_server::endpoint::Json as Body;

use super::log;

/// How long a test endpoint waits for its run; suites give up on a request after twice as long.
const PATIENCE: Duration = Duration::from_secs(10);

/// The node of [`Stage::loop_over`] that hands out the work.
pub(super) const DISPATCH: &str = "dispatch";

/// One request's access to the engine.
pub(super) struct Stage {
    pub(super) app: App,
    pub(super) who: Allowed<Staging>,
}

/// What it takes to register a workflow, run it and read its log.
pub(super) type Staging = (WorkflowsWrite, RunsCreate, RunsRead);

impl Stage {
    pub(super) fn tenant(&self) -> &TenantId {
        &self.who.tenant
    }

    /// Registers a worker that does nothing under each id that names no workflow yet.
    pub(super) async fn hire(&self, workers: &[String]) -> Result<(), ApiError> {
        for id in workers {
            match self.app.host.workflow(self.tenant(), id).await {
                Ok(_) => {}
                Err(error) if error.kind == ErrorKind::NotFound => self.register(worker(id, &Map::new())).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(super) async fn register(&self, definition: Value) -> Result<(), ApiError> {
        self.app.host.register_test_workflow(self.tenant(), definition).await?;
        Ok(())
    }

    /// Runs a supervisor that decides `decision` and then ends, up to its end or its first question.
    pub(super) async fn loop_over(
        &self,
        name: &str,
        decision: &Value,
        dispatch: &Value,
        variables: &Map<String, Value>,
    ) -> Result<RunSnapshot, ApiError> {
        let plan = json!([decision, {"kind": "terminate", "reason": "seam-done"}]);
        let digest = Digest::of_json(&json!([plan, dispatch, variables])).to_string();
        // Named by its content: two requests that differ never share a workflow.
        let id = format!("conformance-seam-{name}-{}", digest.get(..16).unwrap_or(&digest));
        let supervisor = node("supervisor", "core.orchestrator.supervisor", &json!({"mockDispatchPlan": plan}));
        let nodes = vec![supervisor, node(DISPATCH, "core.dispatch", dispatch)];
        self.register(definition(&id, nodes, &[], declared(variables))).await?;
        let start = StartRun { workflow_id: id, ..StartRun::default() };
        let run = self.app.host.start_run(&self.who, start, None).await?.run_id;
        self.settle(&run).await
    }

    /// The same for a loop in which nobody has to be asked: a run that waits for an answer is ended and refused.
    pub(super) async fn loop_to_end(
        &self,
        name: &str,
        decision: &Value,
        dispatch: &Value,
        variables: &Map<String, Value>,
    ) -> Result<RunSnapshot, ApiError> {
        let run = self.loop_over(name, decision, dispatch, variables).await?;
        if run.status.is_terminal() {
            return Ok(run);
        }
        self.app.host.cancel(&self.who, &run.run_id, Some("seam-waits".to_owned())).await?;
        let message =
            format!("A worker named here asks somebody ({}); name workers that end by themselves.", run.status);
        Err(ApiError::invalid(message).with("runId", run.run_id.as_str()))
    }

    /// Replays a run from its beginning, up to its end.
    pub(super) async fn replay(&self, source: &RunId) -> Result<RunId, ApiError> {
        let request = ForkRun {
            mode: ForkMode::Replay,
            from_seq: 0,
            inputs: Map::new(),
            variables: Map::new(),
            configurable: Map::new(),
            side_effects: SideEffects::default(),
        };
        let replay = self.app.host.fork(&self.who, source, request, None).await?.run_id;
        self.settle(&replay).await.map(|_| replay)
    }

    /// Waits until the run has ended or asks somebody something. A run that does neither in time is cancelled.
    pub(super) async fn settle(&self, run: &RunId) -> Result<RunSnapshot, ApiError> {
        if let Ok(settled) = tokio::time::timeout(PATIENCE, self.watch(run)).await {
            return settled;
        }
        self.app.host.cancel(&self.who, run, Some("seam-timeout".to_owned())).await?;
        let seconds = PATIENCE.as_secs();
        Err(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            code::SERVICE_UNAVAILABLE,
            format!("The run behind this seam did not end within {seconds} seconds."),
        )
        .with("runId", run.as_str()))
    }

    async fn watch(&self, run: &RunId) -> Result<RunSnapshot, ApiError> {
        let mut news = self.app.host.subscribe(run);
        loop {
            let snapshot = self.app.host.snapshot(self.tenant(), run).await?;
            if snapshot.status.is_terminal() || snapshot.status.is_waiting() {
                return Ok(snapshot);
            }
            news.changed().await;
        }
    }

    /// The run's log.
    pub(super) async fn log(&self, run: &RunId) -> Result<Vec<Value>, ApiError> {
        let lines = log::read(&self.app, self.tenant(), run).await?;
        Ok(lines.iter().filter_map(|line| serde_json::from_str(&line.body).ok()).collect())
    }
}

/// The payload of the first event of a type at a node.
pub(super) fn payload<'a>(events: &'a [Value], kind: &str, node: &str) -> Option<&'a Value> {
    events.iter().find(|event| event["type"] == kind && event["nodeId"] == node).map(|event| &event["payload"])
}

/// The refusal to report when the dispatch itself failed.
pub(super) fn refusal(run: &RunId, events: &[Value]) -> Option<ApiError> {
    let error = &payload(events, "node.failed", DISPATCH)?["error"];
    let code = match error["code"].as_str() {
        Some(code::FAN_OUT_UNSUPPORTED) => code::FAN_OUT_UNSUPPORTED,
        _ => code::VALIDATION_ERROR,
    };
    let message = error["message"].as_str().unwrap_or("The dispatch failed.").to_owned();
    let refusal = ApiError::new(StatusCode::BAD_REQUEST, code, message).with("runId", run.as_str());
    Some(refusal.with("nodeError", error.clone()))
}

/// A worker that finishes at once and leaves these variables behind.
pub(super) fn worker(id: &str, outputs: &Map<String, Value>) -> Value {
    definition(id, vec![node("work", "core.noop", &json!({}))], &[], declared(outputs))
}

pub(super) fn definition(id: &str, nodes: Vec<Value>, edges: &[(String, String)], variables: Vec<Value>) -> Value {
    let edges: Vec<Value> = edges
        .iter()
        .enumerate()
        .map(|(i, (source, target))| json!({"id": format!("e{i}"), "sourceNodeId": source, "targetNodeId": target}))
        .collect();
    json!({
        "id": id, "name": id, "version": "1.0", "nodes": nodes, "edges": edges,
        "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
        "variables": variables, "metadata": {"tags": ["conformance"]}, "settings": {},
    })
}

pub(super) fn node(id: &str, type_id: &str, config: &Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
}

fn declared(values: &Map<String, Value>) -> Vec<Value> {
    let kind = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        Value::Object(_) | Value::Null => "object",
    };
    values.iter().map(|(name, value)| json!({"name": name, "type": kind(value), "defaultValue": value})).collect()
}
