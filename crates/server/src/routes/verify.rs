//! Proving a run without making another one (host extension).

use axum::extract::State;
use axum::response::Response;
use baton_api as api;
use baton_model::RunId;
use baton_runtime::Verified;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::reply::Reply;

/// There is nothing to choose.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verify {}

/// Go through a run's log again with this build and say whether it decides the same (host extension).
#[utoipa::path(post, path = "/v1/host/baton/runs/{runId}/verify", tag = "runs", request_body = Option<Verify>,
    params(("runId" = String, Path)),
    responses((status = 200, description = "What came out", body = api::Verified),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 410, description = "The log was pruned", body = baton_api::ErrorBody)))]
pub(crate) async fn post(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/host/baton/runs/{runId}/verify", move |call| async move {
        let Verify {} = call.json_or_default()?;
        let run_id = RunId::new(run);
        let Verified { events, decided, difference } = call.app.host.verify(&tenant, &run_id).await?;
        let difference = difference.map(|found| api::VerifiedDifference {
            seq: found.seq,
            kind: found.kind,
            original: found.original,
            replayed: found.replayed,
        });
        Ok(Reply::ok(&api::Verified { run_id, events, decided, equal: difference.is_none(), difference }))
    });
    Ok(reply.await)
}
