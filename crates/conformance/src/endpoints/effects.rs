//! How often a run has reached outwards, counted where calls leave the host and not by its log.

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use baton_model::RunId;
use baton_server::endpoint::scope::RunsRead;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::json;

use super::mock_ai::wrong;
use crate::mode::Conformance;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    #[serde(default)]
    run_id: String,
}

pub(super) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    if asked.run_id.is_empty() {
        return Err(wrong("runId", "`runId` is required.".to_owned()));
    }
    let run = RunId::from(asked.run_id.as_str());
    let count = Conformance::of(&app.host)?.effect_count(&app.host, tenant, &run).await?;
    Ok(Reply::ok(&json!({"runId": run, "effectCount": count})).into_response())
}
