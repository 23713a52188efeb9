//! Registering workflows and reading them back.

use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_api::{WorkflowList, WorkflowVersion};
use baton_runtime::RegisteredWorkflow;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{ManifestRead, WorkflowsWrite};
use crate::document::etag;
use crate::error::ApiError;
use crate::headers::has_etag;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::reply::Reply;

pub(super) fn shown(workflow: RegisteredWorkflow) -> WorkflowVersion {
    WorkflowVersion {
        workflow_id: workflow.id,
        version: workflow.version,
        digest: workflow.digest,
        name: workflow.name,
        registered_at: workflow.registered_at,
    }
}

/// Register a workflow definition (host extension). The same content twice is one version.
#[utoipa::path(post, path = "/v1/workflows", tag = "workflows", request_body = baton_model::workflow::Definition,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, description = "A new version", body = WorkflowVersion),
        (status = 200, description = "This content was already the newest version", body = WorkflowVersion),
        (status = 400, description = "The definition is not valid", body = baton_api::ErrorBody)))]
pub(crate) async fn register(
    State(app): State<App>,
    who: Allowed<WorkflowsWrite>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/workflows", move |call| async move {
        let definition = Value::Object(call.json::<Map<String, Value>>()?);
        let registered = call.app.host.register_workflow(&tenant, definition).await?;
        let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Reply::json(status, &shown(registered)))
    });
    Ok(reply.await)
}

/// The newest version of every workflow (host extension).
#[utoipa::path(get, path = "/v1/workflows", tag = "workflows",
    responses((status = 200, description = "All workflows of the tenant", body = WorkflowList)))]
pub(crate) async fn list(State(app): State<App>, who: Allowed<ManifestRead>) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let workflows = app.host.workflows(tenant).await?.into_iter().map(shown).collect();
    Ok(Reply::ok(&WorkflowList { workflows }).into_response())
}

/// A workflow definition, verbatim.
#[utoipa::path(get, path = "/v1/workflows/{workflowId}", tag = "workflows", params(("workflowId" = String, Path)),
    responses((status = 200, description = "The newest version", body = baton_model::workflow::Definition),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "No such workflow", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<ManifestRead>,
    Ids(id): Ids<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let (registered, definition) = app.host.workflow(tenant, &id).await?;
    let etag = etag(&registered.digest);
    let reply = if has_etag(&headers, etag.to_str().unwrap_or_default()) {
        Reply::new(StatusCode::NOT_MODIFIED, Bytes::new())
    } else {
        Reply::ok(&definition)
    };
    Ok(reply.header(ETAG, etag).into_response())
}
