//! Trees of runs in quarantine: which they are, and letting one go on (host extension).

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api::{QuarantineList, QuarantinedTree};
use baton_model::RunId;
use baton_store::Quarantine;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{RunsCancel, RunsRead};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

fn shown(held: Quarantine) -> QuarantinedTree {
    let Quarantine { root, run, seq, cause, detail, at, tenant: _ } = held;
    QuarantinedTree { root_run_id: root, run_id: run, seq, cause, detail, since: at }
}

/// The trees of the tenant that are in quarantine, by their top (host extension).
#[utoipa::path(get, path = "/v1/host/baton/quarantine", tag = "runs",
    params(("limit" = Option<u64>, Query, description = "1 to 200, 50 by default"), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "One page", body = QuarantineList)))]
pub(crate) async fn list(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["limit", "cursor"])?;
    let limit = usize::try_from(params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(1);
    let after = params.one("cursor")?.map(RunId::new);
    let trees = app.host.quarantined(tenant, after, limit).await?;
    let next_cursor = (trees.len() == limit).then(|| trees.last().map(|held| held.root.to_string())).flatten();
    let trees = trees.into_iter().map(shown).collect();
    Ok(Reply::ok(&QuarantineList { trees, next_cursor }).into_response())
}

/// There is nothing to choose.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {}

/// Let the tree of a run go on from where it was (host extension). If it fails again, it is put back.
#[utoipa::path(post, path = "/v1/host/baton/runs/{runId}/release", tag = "runs", request_body = Option<Release>,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "Released; what it was held for", body = QuarantinedTree),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 409, description = "Not in quarantine", body = baton_api::ErrorBody)))]
pub(crate) async fn release(
    State(app): State<App>,
    who: Allowed<RunsCancel>,
    Ids(run): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let route = "POST /v1/host/baton/runs/{runId}/release";
    let reply = request.once(app, tenant.clone(), route, move |call| async move {
        let Release {} = call.json_or_default()?;
        let held = call.app.host.release(&who, &RunId::new(run)).await?;
        Ok(Reply::ok(&shown(held)))
    });
    Ok(reply.await)
}
