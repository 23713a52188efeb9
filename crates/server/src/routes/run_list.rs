//! Listing runs: newest first, filtered, in pages.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_model::{NodeId, RunId, RunStatus, Scope, TenantId, Timestamp, WorkflowId};
use baton_store::{RunFilter, RunRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::query::{Params, bad};
use crate::reply::Reply;

const FILTERS: [&str; 10] = [
    "status",
    "workflowId",
    "tag",
    "parentRunId",
    "rootRunId",
    "idPrefix",
    "createdAfter",
    "createdBefore",
    "limit",
    "cursor",
];
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunList {
    runs: Vec<RunItem>,
    /// Give it back as `cursor` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunItem {
    #[schema(value_type = String)]
    run_id: RunId,
    #[schema(value_type = String)]
    workflow_id: WorkflowId,
    #[schema(value_type = String)]
    status: RunStatus,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    current_node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    parent_run_id: Option<RunId>,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RunItemError>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RunItemError {
    code: String,
}

impl From<RunRow> for RunItem {
    fn from(row: RunRow) -> Self {
        Self {
            run_id: row.id,
            workflow_id: row.workflow,
            status: row.status,
            created_at: row.created_at,
            updated_at: row.updated_at,
            current_node_id: row.current_node,
            parent_run_id: row.parent,
            tags: row.tags,
            error: row.error_code.map(|code| RunItemError { code }),
        }
    }
}

/// List runs, newest first (host extension).
#[utoipa::path(get, path = "/v1/runs", tag = "runs",
    params(
        ("status" = Option<Vec<String>>, Query, description = "Repeatable, or comma separated"),
        ("workflowId" = Option<String>, Query),
        ("tag" = Option<String>, Query),
        ("parentRunId" = Option<String>, Query),
        ("rootRunId" = Option<String>, Query, description = "Every descendant of this top-level run"),
        ("idPrefix" = Option<String>, Query),
        ("createdAfter" = Option<String>, Query, description = "RFC 3339"),
        ("createdBefore" = Option<String>, Query, description = "RFC 3339"),
        ("limit" = Option<u64>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")),
    responses((status = 200, description = "One page", body = RunList),
        (status = 400, description = "A filter is wrong", body = ref("#/components/schemas/Error"))))]
pub(crate) async fn list(State(app): State<App>, who: Caller, params: Params) -> Result<Response, ApiError> {
    let filter = filter(who.need(Scope::RunsRead)?, &params)?;
    let page = app.host.runs(&filter).await?;
    let runs = page.items.into_iter().map(RunItem::from).collect();
    Ok(Reply::ok(&RunList { runs, next_cursor: page.next.map(write_cursor) }).into_response())
}

fn filter(tenant: &TenantId, params: &Params) -> Result<RunFilter, ApiError> {
    params.only(&FILTERS)?;
    let known = || format!("must be among {}", RunStatus::ALL.map(RunStatus::as_str).join(", "));
    let status = params.list("status").map(|name| RunStatus::parse(name).ok_or_else(|| bad("status", &known())));
    let cursor = params.one("cursor")?;
    let cursor = cursor.map(|text| read_cursor(text).ok_or_else(|| bad("cursor", "is not one this host gave out")));
    Ok(RunFilter {
        tenant: Some(tenant.clone()),
        status: status.collect::<Result<_, _>>()?,
        workflow: params.one("workflowId")?.map(WorkflowId::from),
        tag: params.one("tag")?.map(str::to_owned),
        parent: params.one("parentRunId")?.map(RunId::from),
        root: params.one("rootRunId")?.map(RunId::from),
        id_prefix: params.one("idPrefix")?.map(str::to_owned),
        created_from: params.instant("createdAfter")?,
        created_until: params.instant("createdBefore")?,
        cursor: cursor.transpose()?,
        limit: params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize,
    })
}

fn write_cursor(position: u64) -> String {
    URL_SAFE_NO_PAD.encode(position.to_be_bytes())
}

fn read_cursor(text: &str) -> Option<u64> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<RunFilter, ApiError> {
        filter(&TenantId::new("acme"), &Params::parse(query))
    }

    #[test]
    fn filters_are_read_and_bound_to_the_tenant() {
        let filter =
            read("status=running,failed&status=paused&tag=a%20b&limit=200&createdAfter=2026-01-01T00:00:00Z").unwrap();
        assert_eq!(filter.tenant, Some(TenantId::new("acme")));
        assert_eq!(filter.status, [RunStatus::Running, RunStatus::Failed, RunStatus::Paused]);
        assert_eq!((filter.tag.as_deref(), filter.limit), (Some("a b"), 200));
        assert!(filter.created_from.is_some() && filter.created_until.is_none());
        assert_eq!(read("").unwrap().limit, 50);
    }

    #[test]
    fn mistakes_are_refused() {
        for query in
            ["status=nope", "limit=0", "limit=201", "cursor=xyz", "createdAfter=x", "stauts=running", "tag=a&tag=b"]
        {
            assert_eq!(read(query).unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn cursors_survive_the_trip() {
        for position in [0, 1, u64::MAX] {
            assert_eq!(read_cursor(&write_cursor(position)), Some(position));
        }
        assert_eq!(read(&format!("cursor={}", write_cursor(7))).unwrap().cursor, Some(7));
    }
}
