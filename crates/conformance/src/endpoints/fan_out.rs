//! A fan-out and its join: the workers are real child runs, the outcome is the one on the log.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, DISPATCH, Stage, Staging, payload, refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FanOut {
    next_worker_ids: Vec<String>,
    #[serde(default)]
    config: Map<String, Value>,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(request): Body<FanOut>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    stage.hire(&request.next_worker_ids).await?;
    let decision = json!({"kind": "next-worker", "nextWorkerIds": request.next_worker_ids});
    let run = stage.loop_to_end("fan-out", &decision, &request.config.into(), &Map::new()).await?;
    let events = stage.log(&run.run_id).await?;
    let join = payload(&events, "core.dispatch.join", DISPATCH);
    let done = payload(&events, "node.completed", DISPATCH).map(|done| &done["outputs"]);
    let failed = || payload(&events, "node.failed", DISPATCH).map(|failed| &failed["error"]["details"]);
    // A join that failed has an outcome to report; a dispatch refused before any worker began has not.
    if let (None, Some(refusal)) = (join, refusal(&run.run_id, &events)) {
        return Err(refusal);
    }
    let mut answer = join.and_then(Value::as_object).cloned().unwrap_or_default();
    answer.insert("runId".to_owned(), json!(run.run_id));
    let children = done.or_else(failed).map_or(Value::Null, |report| report["children"].clone());
    answer.insert("children".to_owned(), children);
    Ok(Reply::ok(&answer).into_response())
}
