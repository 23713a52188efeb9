//! Per-worker inputs laid over the mapping: the children are real, and so are the inputs they report.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::RunId;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, DISPATCH, Stage, Staging, payload, refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PerItem {
    next_worker_ids: Vec<String>,
    next_worker_inputs: Option<Vec<Value>>,
    /// Literal values here: each becomes a variable of the parent, mapped to the child under its own name.
    #[serde(default)]
    input_mapping: Map<String, Value>,
    #[serde(default)]
    replay: bool,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(request): Body<PerItem>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    stage.hire(&request.next_worker_ids).await?;
    let mut decision = json!({"kind": "next-worker", "nextWorkerIds": request.next_worker_ids});
    if let Some(inputs) = request.next_worker_inputs {
        decision["nextWorkerInputs"] = inputs.into();
    }
    let mapping: Map<String, Value> = request.input_mapping.keys().map(|name| (name.clone(), json!(name))).collect();
    let dispatch = json!({"inputMapping": mapping});
    let run = stage.loop_to_end("per-item", &decision, &dispatch, &request.input_mapping).await?;
    let events = stage.log(&run.run_id).await?;
    if let Some(refusal) = refusal(&run.run_id, &events) {
        return Err(refusal);
    }
    let (run_id, events) = match request.replay {
        false => (run.run_id, events),
        // Nothing is dispatched again: the replay has the children of the run it is a replay of.
        true => {
            let replay = stage.replay(&run.run_id).await?;
            let events = stage.log(&replay).await?;
            (replay, events)
        }
    };
    let mut children = Vec::new();
    let report = payload(&events, "node.completed", DISPATCH).map(|done| &done["outputs"]["children"]);
    for child in report.and_then(Value::as_array).into_iter().flatten() {
        let mut child = child.clone();
        if let Some(id) = child["childRunId"].as_str().map(RunId::new) {
            child["inputs"] = stage.app.host.snapshot(stage.tenant(), &id).await?.inputs.into();
        }
        children.push(child);
    }
    Ok(Reply::ok(&json!({"runId": run_id, "children": children})).into_response())
}
