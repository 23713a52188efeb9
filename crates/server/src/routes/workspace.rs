//! The files a tenant's runs share. The owner is the tenant of the key and nobody a caller could name.

mod changes;

pub(crate) use changes::{__path_changes, changes};

use axum::extract::State;
use axum::http::header::{ETAG, HeaderValue, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_api::FileList;
use baton_model::workspace::{DEFAULT_WORKSPACE, path_problem};
use baton_model::{Limits, RunId, TenantId, WorkspaceFile, code};
use baton_runtime::NewFile;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{RunsRead, WorkspaceRead, WorkspaceWrite};
use crate::error::ApiError;
use crate::headers;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

/// A byte of a file takes at most six in JSON (`\u0000`).
const JSON_BYTES_PER_BYTE: usize = 6;
/// The rest of the body: names, quotes, a content type.
const JSON_AROUND: usize = 4096;
const MAX_CONTENT_TYPE: usize = 255;

/// One workspace of one tenant.
pub struct Files<'a> {
    pub app: &'a App,
    pub tenant: &'a TenantId,
    pub workspace: &'a str,
}

/// List files.
#[utoipa::path(get, path = "/v1/host/workspace/files", tag = "workspace",
    params(("prefix" = Option<String>, Query)),
    responses((status = 200, description = "Files by path, without their contents", body = FileList)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<WorkspaceRead>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["prefix"])?;
    let prefix = params.one("prefix")?.map(str::to_owned);
    Ok(Files::of(&app, tenant).list(prefix).await?.into_response())
}

/// Read a file, or one of its versions.
#[utoipa::path(get, path = "/v1/host/workspace/files/{*path}", tag = "workspace",
    params(("path" = String, Path, description = "Slashes may be sent as they are or percent-encoded"),
        ("version" = Option<u64>, Query, description = "Since the file was last created")),
    responses((status = 200, description = "The file", body = baton_model::WorkspaceFile,
            headers(("ETag" = String))),
        (status = 400, description = "Not a path", body = baton_api::ErrorBody),
        (status = 404, description = "No such file or version", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<WorkspaceRead>,
    Ids(path): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["version"])?;
    let version = params.int("version", 1..=u64::MAX)?;
    Ok(Files::of(&app, tenant).get(&path, version).await?.into_response())
}

/// Write a file.
#[utoipa::path(put, path = "/v1/host/workspace/files/{*path}", tag = "workspace", request_body = api::NewFile,
    params(("path" = String, Path), ("Idempotency-Key" = Option<String>, Header),
        ("If-Match" = Option<String>, Header, description = "Only if the file's etag is still this one")),
    responses((status = 200, description = "The file as it is now", body = baton_model::WorkspaceFile,
            headers(("ETag" = String))),
        (status = 400, description = "Not a path, or not a file", body = baton_api::ErrorBody),
        (status = 409, description = "The file is not the one named", body = baton_api::ErrorBody),
        (status = 413, description = "The file, or the workspace, is too large", body = baton_api::ErrorBody)))]
pub(crate) async fn put(
    State(app): State<App>,
    who: Allowed<WorkspaceWrite>,
    Ids(path): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    check_path(&app, &path)?;
    let limits = &app.host.options().limits;
    let request = request.with_room(largest_body(limits), too_large(limits));
    let reply = request.once(app, tenant.clone(), "PUT /v1/host/workspace/files/{path}", move |call| async move {
        let if_match = if_match(&call.headers)?;
        let api::NewFile { content, content_type } = call.json()?;
        let file = NewFile { path, content, content_type, if_match };
        Files::of(&call.app, &tenant).put(file).await
    });
    Ok(reply.await)
}

/// Delete a file. Its history stays.
#[utoipa::path(delete, path = "/v1/host/workspace/files/{*path}", tag = "workspace",
    params(("path" = String, Path), ("Idempotency-Key" = Option<String>, Header),
        ("If-Match" = Option<String>, Header, description = "Only if the file's etag is still this one")),
    responses((status = 204, description = "Deleted"),
        (status = 404, description = "No such file", body = baton_api::ErrorBody),
        (status = 409, description = "The file is not the one named", body = baton_api::ErrorBody)))]
pub(crate) async fn delete(
    State(app): State<App>,
    who: Allowed<WorkspaceWrite>,
    Ids(path): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let operation = "DELETE /v1/host/workspace/files/{path}";
    let reply = request.once(app, tenant.clone(), operation, move |call| async move {
        let if_match = if_match(&call.headers)?;
        Files::of(&call.app, &tenant).delete(&path, if_match).await
    });
    Ok(reply.await)
}

/// A file as a run had it at one of its records, a branch's own files included (host extension).
#[utoipa::path(get, path = "/v1/host/baton/runs/{runId}/files/{*path}", tag = "runs",
    params(("runId" = String, Path), ("path" = String, Path),
        ("at" = Option<u64>, Query, description = "Sequence of a record; the latest when absent")),
    responses((status = 200, description = "The file", body = baton_model::WorkspaceFile),
        (status = 404, description = "No such run or file", body = baton_api::ErrorBody),
        (status = 422, description = "The log does not reach there, or what it was is no longer kept",
            body = baton_api::ErrorBody)))]
pub(crate) async fn at_record(
    State(app): State<App>,
    who: Allowed<(RunsRead, WorkspaceRead)>,
    Ids((run, path)): Ids<(String, String)>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["at"])?;
    let seq = params.int("at", 0..=u64::MAX)?;
    check_path(&app, &path)?;
    let file = app.host.file_at(tenant, &RunId::new(run), seq, &path).await?;
    Ok(shown(&file.ok_or_else(no_such_file)?).into_response())
}

impl<'a> Files<'a> {
    fn of(app: &'a App, tenant: &'a TenantId) -> Self {
        Self { app, tenant, workspace: DEFAULT_WORKSPACE }
    }

    pub async fn list(&self, prefix: Option<String>) -> Result<Reply, ApiError> {
        let files = self.app.host.files(self.tenant, self.workspace, prefix).await?;
        Ok(Reply::ok(&FileList { files }))
    }

    pub async fn get(&self, path: &str, version: Option<u64>) -> Result<Reply, ApiError> {
        check_path(self.app, path)?;
        let file = self.app.host.file(self.tenant, self.workspace, path, version).await?;
        Ok(shown(&file.ok_or_else(no_such_file)?))
    }

    pub async fn put(&self, file: NewFile) -> Result<Reply, ApiError> {
        check_path(self.app, &file.path)?;
        if let Some(content_type) = &file.content_type {
            self.app.refuse_secret("content type", content_type)?;
            check_content_type(content_type)?;
        }
        Ok(shown(&self.app.host.put_file(self.tenant, self.workspace, file).await?))
    }

    pub async fn delete(&self, path: &str, if_match: Option<String>) -> Result<Reply, ApiError> {
        check_path(self.app, path)?;
        match self.app.host.delete_file(self.tenant, self.workspace, path, if_match).await? {
            true => Ok(Reply::no_content()),
            false => Err(no_such_file()),
        }
    }
}

/// No file that fits needs a larger body than this.
pub fn largest_body(limits: &Limits) -> usize {
    limits.max_workspace_file_bytes.saturating_mul(JSON_BYTES_PER_BYTE).saturating_add(JSON_AROUND)
}

/// The refusal of a body that no file fits in.
pub fn too_large(limits: &Limits) -> ApiError {
    let most = limits.max_workspace_file_bytes;
    let message = format!("A workspace file holds at most {most} bytes.");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, code::WORKSPACE_TOO_LARGE, message)
        .with("limit", "maxFileBytes")
        .with("maxFileBytes", most)
}

fn shown(file: &WorkspaceFile) -> Reply {
    let reply = Reply::ok(file);
    match HeaderValue::from_str(&format!("\"{}\"", file.meta.etag)) {
        Ok(etag) => reply.header(ETAG, etag),
        Err(_) => reply,
    }
}

fn check_path(app: &App, path: &str) -> Result<(), ApiError> {
    app.refuse_secret("path", path)?;
    match path_problem(path) {
        None => Ok(()),
        Some(why) => Err(ApiError::invalid(format!("This path cannot name a file: {why}.")).with("path", path)),
    }
}

fn check_content_type(text: &str) -> Result<(), ApiError> {
    let fits = (1..=MAX_CONTENT_TYPE).contains(&text.len()) && text.bytes().all(|b| matches!(b, b' '..=b'~'));
    if fits {
        return Ok(());
    }
    Err(ApiError::at("/contentType", &format!("must have 1 to {MAX_CONTENT_TYPE} printable ASCII characters")))
}

fn if_match(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    match headers::text(headers, IF_MATCH.as_str()) {
        None => Ok(None),
        Some(Ok(etag)) if headers.get_all(IF_MATCH).iter().count() == 1 => Ok(Some(etag.to_owned())),
        Some(_) => Err(ApiError::invalid("`If-Match` must be given once, as readable ASCII.")),
    }
}

fn no_such_file() -> ApiError {
    ApiError::not_found("There is no such file, or no such version of it. GET /v1/host/workspace/files lists them.")
}
