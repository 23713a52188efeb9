//! The file API with the owner named in the body, so that one caller can play two tenants.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use baton_model::{TenantId, code};
use baton_runtime::NewFile;
use baton_server::endpoint::scope::{WorkspaceRead, WorkspaceWrite};
use baton_server::endpoint::{Allowed, ApiError, App, Files, largest_body, parse, read, too_large};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Operation {
    tenant: String,
    workspace: String,
    op: Op,
    path: Option<String>,
    content: Option<String>,
    content_type: Option<String>,
    if_match: Option<String>,
    prefix: Option<String>,
    version: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Op {
    List,
    Get,
    Put,
    Delete,
}

pub(super) async fn post(
    State(app): State<App>,
    _: Allowed<(WorkspaceRead, WorkspaceWrite)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let limits = &app.host.options().limits;
    let received = read(&headers, body, largest_body(limits), app.arrival).await;
    let received =
        received.map_err(|error| if error.code == code::PAYLOAD_TOO_LARGE { too_large(limits) } else { error })?;
    let parsed: Result<Operation, ApiError> = parse(&received);
    let operation = parsed.map_err(|error| error.without(&app.host.options().secrets))?;
    if operation.tenant.is_empty() || operation.workspace.is_empty() {
        return Err(ApiError::invalid("`tenant` and `workspace` name the owner."));
    }
    let tenant = TenantId::new(operation.tenant.as_str());
    let files = Files { app: &app, tenant: &tenant, workspace: &operation.workspace };
    let path = || operation.path.clone().ok_or_else(|| missing("path"));
    let reply = match operation.op {
        Op::List => files.list(operation.prefix.clone()).await?,
        Op::Get => files.get(&path()?, operation.version).await?,
        Op::Delete => files.delete(&path()?, operation.if_match.clone()).await?,
        Op::Put => {
            let content = operation.content.clone().ok_or_else(|| missing("content"))?;
            let (content_type, if_match) = (operation.content_type.clone(), operation.if_match.clone());
            files.put(NewFile { path: path()?, content, content_type, if_match }).await?
        }
    };
    Ok(reply.into_response())
}

fn missing(name: &str) -> ApiError {
    ApiError::at(&format!("/{name}"), "is required for this operation")
}
