//! Pruning many runs at once, and what the host's rules would prune (host extensions).

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api::{BulkPrune, BulkPruneError, BulkPruned, BulkPrunedRun, RetentionDue, RetentionDueRun};
use baton_model::RunId;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsPrune;
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::query::Params;
use crate::reply::Reply;

/// A page of the list of runs.
const MAX_RUNS: usize = 200;
const MAX_ID_CHARS: usize = 128;
const DEFAULT_LIMIT: u64 = 50;

/// Prune up to 200 ended top-level runs. Each item succeeds or fails by itself (host extension).
#[utoipa::path(post, path = "/v1/runs:bulk-prune", tag = "runs", request_body = BulkPrune,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "One result per id", body = BulkPruned),
        (status = 400, description = "The list is wrong", body = baton_api::ErrorBody)))]
pub(crate) async fn bulk_prune(
    State(app): State<App>,
    who: Allowed<RunsPrune>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/runs:bulk-prune", move |call| async move {
        let BulkPrune { run_ids, log } = call.json()?;
        check(&run_ids)?;
        let told = call.app.host.prune_many(&tenant, run_ids, log).await?;
        let results = told.into_iter().map(|(run_id, pruned)| match pruned {
            Ok(pruned) => BulkPrunedRun { run_id, ok: true, pruned_runs: pruned.runs, error: None },
            Err(error) => {
                let error = BulkPruneError { code: error.code.to_owned(), message: error.message };
                BulkPrunedRun { run_id, ok: false, pruned_runs: 0, error: Some(error) }
            }
        });
        Ok(Reply::ok(&BulkPruned { results: results.collect() }))
    });
    Ok(reply.await)
}

fn check(runs: &[RunId]) -> Result<(), ApiError> {
    if runs.is_empty() || runs.len() > MAX_RUNS {
        let many = format!("/runIds must name 1 to {MAX_RUNS} runs.");
        return Err(ApiError::invalid(many).with("maxRunIds", MAX_RUNS));
    }
    let wrong = |id: &RunId| id.as_str().is_empty() || id.as_str().chars().count() > MAX_ID_CHARS;
    match runs.iter().position(wrong) {
        Some(index) => Err(ApiError::invalid(format!("/runIds/{index} must have 1 to {MAX_ID_CHARS} characters."))),
        None => Ok(()),
    }
}

/// What the host's retention rules would prune of this tenant now, without pruning it (host extension).
#[utoipa::path(get, path = "/v1/host/baton/retention", tag = "runs",
    params(("limit" = Option<u64>, Query, description = "1 to 200, default 50")),
    responses((status = 200, description = "What would be pruned", body = RetentionDue)))]
pub(crate) async fn due(State(app): State<App>, who: Allowed<RunsPrune>, params: Params) -> Result<Response, ApiError> {
    params.only(&["limit"])?;
    let limit = params.int("limit", 1..=MAX_RUNS as u64)?.unwrap_or(DEFAULT_LIMIT) as usize;
    let policy = app.host.retention_policy();
    let (enabled, window_seconds) = (policy.is_on(), policy.window_ms / 1000);
    let (due, more) = if enabled { app.host.retention_due(&who.tenant, limit).await? } else { (Vec::new(), false) };
    let runs = due.into_iter().map(|due| RetentionDueRun {
        run_id: due.tree.id,
        workflow_id: due.tree.workflow,
        status: due.tree.status,
        ended_at: due.tree.updated_at,
        runs: due.tree.runs,
        records: due.tree.records,
        reason: due.reason.as_str().to_owned(),
    });
    Ok(Reply::ok(&RetentionDue { enabled, window_seconds, runs: runs.collect(), more }).into_response())
}
