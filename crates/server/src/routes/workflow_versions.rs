//! Earlier versions of a workflow, and what is wrong with one that is not registered yet.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ETAG;
use axum::response::{IntoResponse as _, Response};
use baton_api::{Problem, WorkflowVersions};
use baton_model::{Digest, Position, WorkflowId, code, locate};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::workflows::shown;
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::ManifestRead;
use crate::body;
use crate::document::etag;
use crate::error::ApiError;
use crate::path::Ids;
use crate::reply::Reply;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Validation {
    /// It could be registered as it is.
    valid: bool,
    problems: Vec<Problem>,
    /// The rest only where it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    workflow_id: Option<WorkflowId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    digest: Option<Digest>,
    /// It is what the newest version of this id is already.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<bool>,
}

/// Every version of a workflow (host extension).
#[utoipa::path(get, path = "/v1/host/baton/workflows/{workflowId}/versions", tag = "workflows",
    params(("workflowId" = String, Path)),
    responses((status = 200, description = "Newest first", body = WorkflowVersions),
        (status = 404, description = "No such workflow", body = baton_api::ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<ManifestRead>,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let versions = app.host.workflow_versions(tenant, &id).await?.into_iter().map(shown).collect();
    Ok(Reply::ok(&WorkflowVersions { workflow_id: id, versions }).into_response())
}

/// One version of a workflow, verbatim (host extension).
#[utoipa::path(get, path = "/v1/host/baton/workflows/{workflowId}/versions/{version}", tag = "workflows",
    params(("workflowId" = String, Path), ("version" = u32, Path)),
    responses((status = 200, description = "The definition", body = baton_model::workflow::Definition),
        (status = 404, description = "No such version", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<ManifestRead>,
    Ids((id, version)): Ids<(String, String)>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let number = version.parse().ok().filter(|number| *number > 0);
    let number =
        number.ok_or_else(|| ApiError::not_found("Versions are numbered 1, 2, 3, …; `versions` lists them."))?;
    let (registered, definition) = app.host.workflow_version(tenant, &id, number).await?;
    Ok(Reply::ok(&definition).header(ETAG, etag(&registered.digest)).into_response())
}

/// Say what is wrong with a definition, without registering it (host extension). The body is its text as it stands, be
/// it JSON or not.
#[utoipa::path(post, path = "/v1/host/baton/workflows/validate", tag = "workflows",
    request_body = baton_model::workflow::Definition,
    responses((status = 200, description = "Every problem there is, with its place", body = Validation)))]
pub(crate) async fn validate(
    State(app): State<App>,
    who: Allowed<ManifestRead>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let bytes = body::read(&headers, body, app.max_body_bytes, app.arrival).await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| ApiError::invalid("The request body is not UTF-8."))?;
    let definition: Value = match serde_json::from_str(text) {
        Ok(definition) => definition,
        Err(error) => {
            let problem = Problem {
                pointer: String::new(),
                message: format!("The text is not valid JSON: {error}."),
                code: code::VALIDATION_ERROR.to_owned(),
                line: error.line(),
                column: error.column(),
            };
            return Ok(Reply::ok(&refused(vec![problem])).into_response());
        }
    };
    let validation = match app.host.validate_workflow(tenant, definition).await? {
        Ok((workflow_id, digest)) => {
            let newest = app.host.workflow(tenant, workflow_id.as_str()).await.ok();
            Validation {
                valid: true,
                problems: Vec::new(),
                current: Some(newest.is_some_and(|(newest, _)| newest.digest == digest)),
                workflow_id: Some(workflow_id),
                digest: Some(digest),
            }
        }
        Err(problems) => refused(
            problems
                .into_iter()
                .map(|problem| {
                    let Position { line, column } = locate(text, &problem.pointer);
                    let code = problem.code.to_owned();
                    Problem { pointer: problem.pointer, message: problem.message, code, line, column }
                })
                .collect(),
        ),
    };
    Ok(Reply::ok(&validation).into_response())
}

fn refused(problems: Vec<Problem>) -> Validation {
    Validation { valid: false, problems, workflow_id: None, digest: None, current: None }
}
