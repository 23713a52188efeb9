//! What happened to files, newest first.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_api::FileChanges;
use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_runtime::FileChange;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::WorkspaceRead;
use crate::error::ApiError;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 1000;

fn shown(change: FileChange) -> api::FileChange {
    let deleted = change.file.is_none();
    let (version, etag) = change.file.map(|file| (file.version, file.etag)).unzip();
    let FileChange { path, change, at, run_id, .. } = change;
    api::FileChange { path, change, at, run_id, version, etag, deleted }
}

/// What happened to files (host extension).
#[utoipa::path(get, path = "/v1/host/baton/workspace/changes", tag = "workspace",
    params(("path" = Option<String>, Query, description = "Only this file"),
        ("before" = Option<u64>, Query, description = "Only changes older than this one"),
        ("limit" = Option<u64>, Query, description = "1 to 1000, default 50")),
    responses((status = 200, description = "One page", body = FileChanges)))]
pub(crate) async fn changes(
    State(app): State<App>,
    who: Allowed<WorkspaceRead>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["path", "before", "limit"])?;
    let before = params.int("before", 1..=u64::MAX)?;
    let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
    // One more than asked for tells whether there is another page.
    let found = app.host.file_changes(tenant, DEFAULT_WORKSPACE, params.one("path")?, before, limit + 1).await?;
    let more = found.len() > limit;
    let changes: Vec<api::FileChange> = found.into_iter().take(limit).map(shown).collect();
    let next_before = changes.last().map(|last| last.change).filter(|_| more);
    Ok(Reply::ok(&FileChanges { changes, next_before }).into_response())
}
