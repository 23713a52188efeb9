//! Listing runs: newest first, filtered, in pages.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_api::RunList;
use baton_model::{RunId, RunStatus, TenantId, Timestamp, WorkflowId};
use baton_store::{RunFilter, RunPlace};

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::query::{Params, bad};
use crate::reply::Reply;
use crate::run_rows::items;

const FILTERS: [&str; 18] = [
    "status",
    "workflowId",
    "tag",
    "parentRunId",
    "rootRunId",
    "idPrefix",
    "createdAfter",
    "createdBefore",
    "updatedAfter",
    "updatedBefore",
    "waiting",
    "diverged",
    "overBudget",
    "minCostUsd",
    "topLevel",
    "q",
    "limit",
    "cursor",
];
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

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
        ("updatedAfter" = Option<String>, Query, description = "RFC 3339: something happened since"),
        ("updatedBefore" = Option<String>, Query, description = "RFC 3339: nothing happened since"),
        ("waiting" = Option<bool>, Query, description = "Whether somebody or something outside is waited for"),
        ("diverged" = Option<bool>, Query, description = "Whether a replay went another way than its source"),
        ("overBudget" = Option<bool>, Query, description = "Whether nothing, or too little, is left of what its tree may spend"),
        ("minCostUsd" = Option<f64>, Query, description = "Whose own model calls cost at least this much"),
        ("topLevel" = Option<bool>, Query, description = "`true`: only runs without a parent"),
        ("q" = Option<String>, Query, description = "The beginning of the run's id, or of its workflow's"),
        ("limit" = Option<u64>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")),
    responses((status = 200, description = "One page", body = RunList),
        (status = 400, description = "A filter is wrong", body = baton_api::ErrorBody)))]
pub(crate) async fn list(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let Some(filter) = filter(tenant, &params)? else {
        return Ok(Reply::ok(&RunList { runs: Vec::new(), next_cursor: None }).into_response());
    };
    let page = app.host.runs(&filter).await?;
    let runs = items(&app.host, tenant, page.items).await?;
    Ok(Reply::ok(&RunList { runs, next_cursor: page.next.map(write_cursor) }).into_response())
}

/// None where no run can be as asked.
fn filter(tenant: &TenantId, params: &Params) -> Result<Option<RunFilter>, ApiError> {
    params.only(&FILTERS)?;
    let known = || format!("must be among {}", RunStatus::ALL.map(RunStatus::as_str).join(", "));
    let status = params.list("status").map(|name| RunStatus::parse(name).ok_or_else(|| bad("status", &known())));
    let mut status: Vec<RunStatus> = status.collect::<Result<_, _>>()?;
    if let Some(waiting) = params.flag("waiting")? {
        if status.is_empty() {
            status = RunStatus::ALL.to_vec();
        }
        status.retain(|status| status.is_waiting() == waiting);
        if status.is_empty() {
            return Ok(None);
        }
    }
    let cursor = params.one("cursor")?;
    let cursor = cursor.map(|text| read_cursor(text).ok_or_else(|| bad("cursor", "is not one this host gave out")));
    let cost = params.one("minCostUsd")?.map(|text| {
        let cost = text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
        cost.ok_or_else(|| bad("minCostUsd", "must be a number of dollars"))
    });
    let (created_until, updated_until) = (params.instant("createdBefore")?, params.instant("updatedBefore")?);
    Ok(Some(RunFilter {
        tenant: Some(tenant.clone()),
        status,
        workflow: params.one("workflowId")?.map(WorkflowId::from),
        tag: params.one("tag")?.map(str::to_owned),
        parent: params.one("parentRunId")?.map(RunId::from),
        root: params.one("rootRunId")?.map(RunId::from),
        id_prefix: params.one("idPrefix")?.map(str::to_owned),
        ids: Vec::new(),
        created_from: params.instant("createdAfter")?,
        // A run is not younger than what happened last in it, and lists are in the order of creation: this saves going
        // through all that is newer.
        created_until: created_until.into_iter().chain(updated_until).min(),
        updated_from: params.instant("updatedAfter")?,
        updated_until,
        diverged: params.flag("diverged")?,
        over_budget: params.flag("overBudget")?,
        cost_usd_from: cost.transpose()?,
        text_prefix: params.one("q")?.map(str::to_owned),
        top_level: params.flag("topLevel")?.unwrap_or(false),
        cursor: cursor.transpose()?,
        limit: params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize,
    }))
}

fn write_cursor(place: RunPlace) -> String {
    let (at, position) = (place.created_at.as_micros().to_be_bytes(), place.position.to_be_bytes());
    URL_SAFE_NO_PAD.encode([at, position].concat())
}

fn read_cursor(text: &str) -> Option<RunPlace> {
    let bytes: [u8; 16] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
    let (at, position) = bytes.split_first_chunk::<8>()?;
    let created_at = Timestamp::from_micros(i64::from_be_bytes(*at));
    Some(RunPlace { created_at, position: u64::from_be_bytes(position.try_into().ok()?) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<RunFilter, ApiError> {
        filter(&TenantId::new("acme"), &Params::parse(query)).map(Option::unwrap)
    }

    #[test]
    fn waiting_is_a_matter_of_status() {
        let waiting = read("waiting=true").unwrap().status;
        assert!(waiting.contains(&RunStatus::WaitingApproval) && waiting.iter().all(|status| status.is_waiting()));
        let others = read("waiting=false").unwrap().status;
        assert_eq!(waiting.len() + others.len(), RunStatus::ALL.len());
        assert_eq!(read("waiting=false&status=running,waiting-input").unwrap().status, [RunStatus::Running]);
        assert_eq!(filter(&TenantId::new("acme"), &Params::parse("waiting=true&status=failed")).unwrap(), None);
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
        for query in [
            "status=nope",
            "limit=0",
            "limit=201",
            "cursor=xyz",
            "createdAfter=x",
            "stauts=running",
            "tag=a&tag=b",
            "waiting=yes",
            "diverged=1",
            "minCostUsd=-1",
            "minCostUsd=NaN",
            "updatedBefore=now",
        ] {
            assert_eq!(read(query).unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn cursors_survive_the_trip() {
        let place = |micros, position| RunPlace { created_at: Timestamp::from_micros(micros), position };
        for place in [place(0, 0), place(1, u64::MAX), place(i64::MAX, 1)] {
            assert_eq!(read_cursor(&write_cursor(place)), Some(place));
        }
        assert_eq!(read(&format!("cursor={}", write_cursor(place(8, 7)))).unwrap().cursor, Some(place(8, 7)));
    }
}
