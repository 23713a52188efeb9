//! Cancelling, pausing and resuming runs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use baton_api as api;
use baton_api::{CancelledRun, Reason};
use baton_model::{Principal, RunId, RunStatus, code};
use baton_runtime::{ErrorKind, PauseRun, PausedRun};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsCancel;
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::reply::{self, Reply};
use crate::verb_path::RunBeforeVerb;

const MAX_BULK: usize = 100;
const MAX_BULK_REASON: usize = 512;
const MAX_ID_CHARS: usize = 128;

/// Cancel a run. Cancelling one that has ended reports how it ended.
#[utoipa::path(post, path = "/v1/runs/{runId}/cancel", tag = "runs", request_body = Option<Reason>,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "Cancelled, cancelling, or already ended", body = CancelledRun),
        (status = 404, description = "No such run", body = baton_api::ErrorBody)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    who: Allowed<RunsCancel>,
    Ids(id): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/runs/{runId}/cancel", move |call| async move {
        let run_id = RunId::new(id);
        let status = call.app.host.cancel(&who, &run_id, call.json_or_default::<Reason>()?.reason).await?;
        Ok(Reply::ok(&CancelledRun { run_id, status }))
    });
    Ok(reply.await)
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BulkCancel {
    /// 1 to 100 run ids.
    run_ids: Vec<String>,
    reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct BulkCancelled {
    /// In the order asked for.
    results: Vec<BulkItem>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkItem {
    run_id: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    status: Option<RunStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<BulkItemError>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct BulkItemError {
    code: &'static str,
    message: String,
}

/// Cancel up to 100 runs. Each item succeeds or fails by itself.
#[utoipa::path(post, path = "/v1/runs:bulk-cancel", tag = "runs", request_body = BulkCancel,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "One result per id", body = BulkCancelled),
        (status = 400, description = "The list is wrong", body = baton_api::ErrorBody)))]
pub(crate) async fn bulk_cancel(
    State(app): State<App>,
    who: Allowed<RunsCancel>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/runs:bulk-cancel", move |call| async move {
        let BulkCancel { run_ids, reason } = call.json::<BulkCancel>()?.check()?;
        // All at once: their commits then share the disk's round trips.
        let results = join_all(run_ids.into_iter().map(|id| cancel_one(&call.app, &who, id, reason.clone()))).await;
        Ok(Reply::ok(&BulkCancelled { results }))
    });
    Ok(reply.await)
}

impl BulkCancel {
    fn check(self) -> Result<Self, ApiError> {
        let many = || format!("/runIds must name 1 to {MAX_BULK} runs.");
        if self.run_ids.is_empty() || self.run_ids.len() > MAX_BULK {
            return Err(ApiError::invalid(many()).with("maxRunIds", MAX_BULK));
        }
        if let Some(index) = self.run_ids.iter().position(|id| id.is_empty() || id.chars().count() > MAX_ID_CHARS) {
            return Err(ApiError::invalid(format!("/runIds/{index} must have 1 to {MAX_ID_CHARS} characters.")));
        }
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_BULK_REASON) {
            return Err(ApiError::invalid(format!("/reason may have at most {MAX_BULK_REASON} characters.")));
        }
        Ok(self)
    }
}

async fn cancel_one(app: &App, who: &Principal, id: String, reason: Option<String>) -> BulkItem {
    bulk_item(app.host.cancel(who, &RunId::from(id.as_str()), reason).await, id)
}

fn bulk_item(outcome: Result<RunStatus, baton_runtime::Error>, run_id: String) -> BulkItem {
    let refuse = |code, message| BulkItem {
        run_id: run_id.clone(),
        ok: false,
        status: None,
        error: Some(BulkItemError { code, message }),
    };
    match outcome {
        Ok(status @ (RunStatus::Completed | RunStatus::Failed)) => {
            refuse(code::RUN_TERMINAL, format!("The run has already ended as {status}."))
        }
        Ok(status) => BulkItem { run_id, ok: true, status: Some(status), error: None },
        Err(error) => {
            let code = match error.kind {
                ErrorKind::NotFound => code::NOT_FOUND,
                ErrorKind::Forbidden => code::FORBIDDEN,
                ErrorKind::Invalid | ErrorKind::Unprocessable => code::VALIDATION_ERROR,
                ErrorKind::Conflict
                | ErrorKind::Gone
                | ErrorKind::TooLarge
                | ErrorKind::TooMany
                | ErrorKind::Unavailable
                | ErrorKind::Internal => error.code,
            };
            if matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Internal) {
                tracing::warn!(%error, "one item of a bulk cancel failed");
            }
            refuse(code, error.message)
        }
    }
}

fn render_paused(paused: &PausedRun) -> (u16, String) {
    let body = api::PausedRun { run_id: paused.run_id.clone(), status: RunStatus::Paused, paused_at: paused.at };
    reply::rendered(StatusCode::ACCEPTED, &body)
}

/// Pause a run.
#[utoipa::path(post, path = "/v1/runs/{runId}:pause", tag = "runs", request_body = Option<api::PauseRun>,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 202, description = "Paused, or pausing as the drain policy asks", body = api::PausedRun),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 409, description = "The run cannot be paused now", body = baton_api::ErrorBody)))]
pub(crate) async fn pause(
    State(app): State<App>,
    who: Allowed<RunsCancel>,
    RunBeforeVerb(run): RunBeforeVerb,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/runs/{runId}:pause", move |call| async move {
        let body: api::PauseRun = call.json_or_default()?;
        let asked = PauseRun { reason: body.reason, drain: body.drain_policy };
        let paused = call.app.host.pause_once(&who, &run, asked, call.stored_with_effect(render_paused)).await?;
        Ok(Reply::new(StatusCode::ACCEPTED, render_paused(&paused).1).already_stored())
    });
    Ok(reply.await)
}

fn render_resumed(resumed: &PausedRun) -> (u16, String) {
    let body = api::ResumedRun { run_id: resumed.run_id.clone(), status: RunStatus::Running, resumed_at: resumed.at };
    reply::rendered(StatusCode::ACCEPTED, &body)
}

/// Resume a paused run.
#[utoipa::path(post, path = "/v1/runs/{runId}:resume", tag = "runs", request_body = Option<Reason>,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 202, description = "Running again", body = api::ResumedRun),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 409, description = "The run is not paused", body = baton_api::ErrorBody)))]
pub(crate) async fn resume(
    State(app): State<App>,
    who: Allowed<RunsCancel>,
    RunBeforeVerb(run): RunBeforeVerb,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/runs/{runId}:resume", move |call| async move {
        let reason = call.json_or_default::<Reason>()?.reason;
        let resumed = call.app.host.resume_once(&who, &run, reason, call.stored_with_effect(render_resumed)).await?;
        Ok(Reply::new(StatusCode::ACCEPTED, render_resumed(&resumed).1).already_stored())
    });
    Ok(reply.await)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::event::DrainPolicy;

    #[test]
    fn bulk_lists_are_bounded() {
        let of = |run_ids: Vec<String>, reason: Option<String>| BulkCancel { run_ids, reason }.check();
        assert_eq!(of(vec![], None).unwrap_err().details["maxRunIds"], 100);
        assert_eq!(of(vec!["r".into(); 101], None).unwrap_err().details["maxRunIds"], 100);
        assert!(of(vec!["r".into(); 100], Some("x".repeat(512))).is_ok());
        assert!(of(vec!["r".into()], Some("x".repeat(513))).is_err());
        assert!(of(vec![String::new()], None).is_err());
        assert!(of(vec!["r".repeat(129)], None).is_err());
    }

    #[test]
    fn bulk_items_use_their_own_codes() {
        let item = |outcome| serde_json::to_value(bulk_item(outcome, "r".to_owned())).unwrap();
        assert_eq!(
            item(Ok(RunStatus::Cancelled)),
            serde_json::json!({"runId": "r", "ok": true, "status": "cancelled"})
        );
        assert_eq!(item(Ok(RunStatus::Failed))["error"]["code"], "run_terminal");
        assert_eq!(item(Err(baton_runtime::Error::run_not_found()))["error"]["code"], "not_found");
        assert_eq!(item(Err(baton_runtime::Error::run_not_found()))["ok"], false);
        assert_eq!(item(Err(baton_runtime::Error::unavailable("x")))["error"]["code"], "service_unavailable");
    }

    #[test]
    fn a_pause_drains_unless_told_otherwise() {
        let of = |text: &str| crate::body::parse_or_default::<api::PauseRun>(text.as_bytes());
        assert_eq!(of("").unwrap().drain_policy, DrainPolicy::DrainCurrentNode);
        assert_eq!(of(r#"{"drainPolicy":"immediate"}"#).unwrap().drain_policy, DrainPolicy::Immediate);
        assert_eq!(of(r#"{"drainPolicy":"never"}"#).unwrap_err().details["pointer"], "/drainPolicy");
        assert_eq!(of(r#"{"force":true}"#).unwrap_err().details["pointer"], "/force");
    }
}
