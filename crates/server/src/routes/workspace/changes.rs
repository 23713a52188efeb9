//! What happened to files, newest first.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunId, Scope, Timestamp};
use baton_runtime::FileChange;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 1000;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changes {
    /// Newest first.
    changes: Vec<ChangeItem>,
    /// `before` of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeItem {
    path: String,
    /// The workspace's version after it.
    change: u64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The run that did it; absent for a change from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    deleted: bool,
}

impl From<FileChange> for ChangeItem {
    fn from(change: FileChange) -> Self {
        let deleted = change.file.is_none();
        let (version, etag) = change.file.map(|file| (file.version, file.etag)).unzip();
        Self { path: change.path, change: change.change, at: change.at, run_id: change.run_id, version, etag, deleted }
    }
}

/// What happened to files (host extension).
#[utoipa::path(get, path = "/v1/host/baton/workspace/changes", tag = "workspace",
    params(("path" = Option<String>, Query, description = "Only this file"),
        ("before" = Option<u64>, Query, description = "Only changes older than this one"),
        ("limit" = Option<u64>, Query, description = "1 to 1000, default 50")),
    responses((status = 200, description = "One page", body = Changes)))]
pub(crate) async fn changes(State(app): State<App>, who: Caller, params: Params) -> Result<Response, ApiError> {
    let tenant = who.need(Scope::WorkspaceRead)?;
    params.only(&["path", "before", "limit"])?;
    let before = params.int("before", 1..=u64::MAX)?;
    let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
    // One more than asked for tells whether there is another page.
    let found = app.host.file_changes(tenant, DEFAULT_WORKSPACE, params.one("path")?, before, limit + 1).await?;
    let more = found.len() > limit;
    let changes: Vec<ChangeItem> = found.into_iter().take(limit).map(ChangeItem::from).collect();
    let next_before = changes.last().map(|last| last.change).filter(|_| more);
    Ok(Reply::ok(&Changes { changes, next_before }).into_response())
}
