//! Tokens for runners. A token is shown once, in the reply that makes it: such a request has no idempotency key, because
//! its reply is not kept.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_runtime::NewToken;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::runner::{RunnerToken, SWITCHED_OFF};
use crate::auth::scope::RunnersManage;
use crate::body::Json;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

/// Make a token for runners.
#[utoipa::path(post, path = "/v1/host/baton/runner-tokens", tag = "runners", request_body = api::NewRunnerToken,
    responses((status = 201, description = "The token, shown this once", body = api::RunnerTokenMade),
        (status = 403, description = "Another subject than the key's", body = api::ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    who: Allowed<RunnersManage>,
    Json(new): Json<api::NewRunnerToken>,
) -> Result<Response, ApiError> {
    if !app.host.options().runner_channel {
        return Err(ApiError::not_found(SWITCHED_OFF));
    }
    let api::NewRunnerToken { name, subject, expires_at } = new;
    let (made, token) = app.host.new_runner_token(&who, NewToken { name, subject, expires_at }).await?;
    let (token_id, subject, expires_at) = (made.id, made.subject, made.expires_at);
    Ok(Reply::json(StatusCode::CREATED, &api::RunnerTokenMade { token_id, token, subject, expires_at }).into_response())
}

/// The tokens of the subject of the caller's key; with `runners:manage:any`, of all subjects of its tenant.
#[utoipa::path(get, path = "/v1/host/baton/runner-tokens", tag = "runners",
    responses((status = 200, description = "All of them, by id", body = api::RunnerTokenList)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<RunnersManage>,
    params: Params,
) -> Result<Response, ApiError> {
    params.only(&[])?;
    let tokens = app.host.runner_tokens(&who).into_iter().map(shown).collect();
    Ok(Reply::ok(&api::RunnerTokenList { tokens }).into_response())
}

/// The token that a runner shows: on whose behalf it works.
#[utoipa::path(get, path = "/v1/host/baton/runner-tokens/self", tag = "runners",
    responses((status = 200, description = "The caller's own", body = api::RunnerTokenEntry)))]
pub(crate) async fn own(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    params: Params,
) -> Result<Response, ApiError> {
    params.only(&[])?;
    let own = app.host.runner_token_of(&bearer);
    let own = own.ok_or_else(|| ApiError::unauthenticated("This token was revoked."))?;
    Ok(Reply::ok(&shown(own)).into_response())
}

fn shown(token: baton_runtime::RunnerToken) -> api::RunnerTokenEntry {
    let baton_runtime::RunnerToken { id, name, subject, created_at, expires_at } = token;
    api::RunnerTokenEntry { token_id: id, name, subject, created_at, expires_at }
}

/// Revoke a token. The streams of its runners end at once, and what they have in hand is lost.
#[utoipa::path(delete, path = "/v1/host/baton/runner-tokens/{tokenId}", tag = "runners", params(("tokenId" = String, Path)),
    responses((status = 204, description = "It opens nothing any more"),
        (status = 404, description = "No such token", body = api::ErrorBody)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    who: Allowed<RunnersManage>,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    app.host.revoke_runner_token(&who, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
