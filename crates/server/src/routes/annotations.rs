//! What people and programs say about a run. Not part of its log: a stream tells of it, no replay sees it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_api::AnnotationList;
use baton_model::{Anchor, Annotation, RunId};
use baton_runtime::NewAnnotation;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{RunsAnnotate, RunsRead};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::{Reply, rendered};

/// What one answer holds if the caller does not say: each may have two texts of 16 KiB.
const DEFAULT_LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 1000;

/// Say something about a run, an event or a node of it.
#[utoipa::path(post, path = "/v1/runs/{runId}/annotations", tag = "runs", request_body = api::NewAnnotation,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, description = "The annotation as it was stored, secrets taken out", body = Object),
        (status = 400, description = "The annotation does not fit", body = baton_api::ErrorBody),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 410, description = "The log was pruned", body = baton_api::ErrorBody),
        (status = 429, description = "The run has as many as there may be", body = baton_api::ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    who: Allowed<RunsAnnotate>,
    Ids(run): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/runs/{runId}/annotations", move |call| async move {
        let api::NewAnnotation { signal, target, note } = call.json()?;
        let anchor = Anchor { event_id: target.event_id, node_id: target.node_id };
        let new = NewAnnotation { anchor, signal, note };
        let stored = call.stored_with_effect(render);
        let annotation = call.app.host.annotate(&who, &RunId::new(run), new, stored).await?;
        Ok(Reply::new(StatusCode::CREATED, render(&annotation).1).already_stored())
    });
    Ok(reply.await)
}

/// What was said about a run, oldest first.
#[utoipa::path(get, path = "/v1/runs/{runId}/annotations", tag = "runs",
    params(("runId" = String, Path),
        ("limit" = Option<u64>, Query, description = "1 to 1000, default 200 (host extension)"),
        ("after" = Option<String>, Query, description = "Only those after this one (host extension)")),
    responses((status = 200, description = "The annotations", body = AnnotationList),
        (status = 404, description = "No such run", body = baton_api::ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["limit", "after"])?;
    let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
    let after = params.one("after")?;
    let (annotations, next_after) = app.host.annotations(tenant, &RunId::new(run), after, limit).await?;
    Ok(Reply::ok(&AnnotationList { annotations, next_after }).into_response())
}

/// The stored and the sent form are the same bytes.
fn render(annotation: &Annotation) -> (u16, String) {
    rendered(StatusCode::CREATED, annotation)
}
