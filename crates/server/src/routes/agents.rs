//! The agents a caller may call. Prompts, schemas and what a manifest requires are not shown.

pub(crate) mod effective;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api::AgentList;

use crate::app::App;
use crate::auth::AnyKey;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

/// The agents of the tenant.
#[utoipa::path(get, path = "/v1/agents", tag = "agents",
    responses((status = 200, description = "By id", body = AgentList)))]
pub(crate) async fn list(State(app): State<App>, who: AnyKey, params: Params) -> Result<Response, ApiError> {
    params.only(&[])?;
    let agents = app.inventory(&who.tenant);
    Ok(Reply::ok(&AgentList { total: agents.len(), agents }).into_response())
}

/// One agent. Another tenant's is as unknown as one that does not exist.
#[utoipa::path(get, path = "/v1/agents/{agentId}", tag = "agents", params(("agentId" = String, Path)),
    responses(
        (status = 200, description = "The agent", body = baton_api::Agent),
        (status = 404, description = "No such agent", body = baton_api::ErrorBody)))]
pub(crate) async fn get(State(app): State<App>, who: AnyKey, Ids(id): Ids<String>) -> Result<Response, ApiError> {
    let entry = app.inventory_entry(&who.tenant, &id);
    let entry = entry
        .ok_or_else(|| ApiError::not_found("There is no such agent here. GET /v1/agents lists those that are."))?;
    Ok(Reply::ok(&entry).into_response())
}
