//! Taking away what is only needed to look back at a run.

use axum::extract::State;
use axum::response::Response;
use baton_api::{PruneRun, PrunedRun};

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsPrune;
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::reply::Reply;
use crate::verb_path::RunBeforeVerb;

/// Prune an ended top-level run and everything below it (host extension).
#[utoipa::path(post, path = "/v1/runs/{runId}:prune", tag = "runs", request_body = Option<PruneRun>,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "Pruned", body = PrunedRun),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 409, description = "Something of the tree has not ended, or this is not its top",
            body = baton_api::ErrorBody)))]
pub(crate) async fn post(
    State(app): State<App>,
    who: Allowed<RunsPrune>,
    RunBeforeVerb(run): RunBeforeVerb,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/runs/{runId}:prune", move |call| async move {
        let PruneRun { log } = call.json_or_default()?;
        let pruned = call.app.host.prune(&tenant, &run, log).await?;
        Ok(Reply::ok(&PrunedRun { run_id: run, pruned_runs: pruned.runs, log: pruned.log }))
    });
    Ok(reply.await)
}
