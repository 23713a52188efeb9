//! Two runs side by side.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_api::DiffOp;
use baton_model::RunId;
use baton_runtime::{EventDiff, RunDiff};

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::query::{self, Params};
use crate::reply::Reply;
use crate::verb_path::RunBeforeVerb;

/// What two runs did differently. An answer holds what fits into it: with `truncated`, ask again with `fromSeq` one behind
/// the last difference told. The state is that of the ends, however often it is asked for.
#[utoipa::path(get, path = "/v1/runs/{runId}:diff", tag = "runs",
    params(("runId" = String, Path), ("against" = String, Query, description = "The other run"),
        ("fromSeq" = Option<u64>, Query, description = "Only differences from this sequence on (host extension)")),
    responses((status = 200, description = "The differences", body = api::RunDiff),
        (status = 400, description = "No other run is named", body = baton_api::ErrorBody),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 410, description = "A log was pruned", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    RunBeforeVerb(a): RunBeforeVerb,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["against", "fromSeq"])?;
    let from = params.int("fromSeq", 0..=u64::MAX)?.unwrap_or(0);
    let b = params.one("against")?.filter(|id| !id.is_empty());
    let b = RunId::from(b.ok_or_else(|| query::bad("against", "must name the run to compare with"))?);
    let RunDiff { diverged_at, events, state, truncated } = app.host.diff(tenant, &a, &b, from).await?;
    let event_diffs = events.into_iter().map(shown).collect();
    let diff = api::RunDiff { a, b, diverged_at_seq: diverged_at, event_diffs, state_diff: state, truncated };
    Ok(Reply::ok(&diff).into_response())
}

fn shown(EventDiff { seq, a, b }: EventDiff) -> api::EventDiff {
    let op = match (&a, &b) {
        (None, _) => DiffOp::Added,
        (_, None) => DiffOp::Removed,
        _ => DiffOp::Changed,
    };
    api::EventDiff { seq, op, a_event: a, b_event: b }
}
