//! Runners show a token of their own. It opens their channel; keys do not.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use baton_runtime::RunnerBearer;

use super::{STEP_TOKEN, bearer, is_step, known};
use crate::app::App;
use crate::error::ApiError;

pub(crate) const SWITCHED_OFF: &str = "Runners are switched off on this host (`runner_channel`).";

/// A caller with a token of a runner.
#[derive(Clone, Debug)]
pub(crate) struct RunnerToken(pub(crate) RunnerBearer);

impl FromRequestParts<App> for RunnerToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if !app.host.options().runner_channel {
            return Err(ApiError::not_found(SWITCHED_OFF));
        }
        let Some(token) = bearer(&parts.headers) else {
            return Err(ApiError::unauthenticated("Send a runner's token as `Authorization: Bearer <token>`."));
        };
        if let Some(found) = app.host.runner_bearer(token).await? {
            return Ok(Self(found));
        }
        if is_step(parts, app) {
            return Err(ApiError::forbidden(STEP_TOKEN));
        }
        Err(match known(app, &parts.headers) {
            Some(_) => ApiError::forbidden("This needs a runner's token. POST /v1/host/baton/runner-tokens makes one."),
            None => ApiError::unauthenticated("This token is not known here, was revoked, or has expired."),
        })
    }
}
