//! Two runs side by side.

use axum::response::{IntoResponse as _, Response};
use baton_model::{RunId, Scope};
use baton_runtime::{EventDiff, RunDiff};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::query::{self, Params};
use crate::reply::Reply;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diff {
    #[schema(value_type = String)]
    a: RunId,
    #[schema(value_type = String)]
    b: RunId,
    /// The first sequence where they differ; null if they do not.
    #[schema(required)]
    diverged_at_seq: Option<u64>,
    event_diffs: Vec<DiffEntry>,
    /// `{status: {a, b}, variables: {name: {a, b}}, …}`; empty if they stand the same.
    state_diff: Map<String, Value>,
    /// Only a beginning was compared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffEntry {
    seq: u64,
    /// `added` (only in b), `removed` (only in a) or `changed`.
    op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    a_event: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    b_event: Option<Value>,
}

/// What two runs did differently.
#[utoipa::path(get, path = "/v1/runs/{runId}:diff", tag = "runs",
    params(("runId" = String, Path), ("against" = String, Query, description = "The other run")),
    responses((status = 200, description = "The differences", body = Diff),
        (status = 400, description = "No other run is named", body = ref("#/components/schemas/Error")),
        (status = 404, description = "No such run", body = ref("#/components/schemas/Error")),
        (status = 410, description = "A log was pruned", body = ref("#/components/schemas/Error"))))]
pub(crate) async fn get(app: App, who: Caller, a: RunId, params: Params) -> Result<Response, ApiError> {
    let tenant = who.need(Scope::RunsRead)?;
    params.only(&["against"])?;
    let b = params.one("against")?.filter(|id| !id.is_empty());
    let b = RunId::from(b.ok_or_else(|| query::bad("against", "must name the run to compare with"))?);
    let RunDiff { diverged_at, events, state, truncated } = app.host.diff(tenant, &a, &b).await?;
    let event_diffs = events.into_iter().map(DiffEntry::from).collect();
    let diff = Diff { a, b, diverged_at_seq: diverged_at, event_diffs, state_diff: state, truncated };
    Ok(Reply::ok(&diff).into_response())
}

impl From<EventDiff> for DiffEntry {
    fn from(EventDiff { seq, a, b }: EventDiff) -> Self {
        let op = match (&a, &b) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        };
        Self { seq, op, a_event: a, b_event: b }
    }
}
