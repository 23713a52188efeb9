//! Programs that have a step in hand show its token. It opens the model gateway and the memo of that step, and nothing else.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use baton_runtime::StepClaims;

use super::runner::SWITCHED_OFF;
use super::{bearer, is_runner, known};
use crate::app::App;
use crate::error::ApiError;
use crate::openai::OpenAiError;

/// A caller with a token of a step. Whether its runner still has the step is asked with each call.
#[derive(Clone, Debug)]
pub(crate) struct StepToken(pub(crate) StepClaims);

impl FromRequestParts<App> for StepToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if !app.host.options().runner_channel {
            return Err(ApiError::not_found(SWITCHED_OFF));
        }
        let Some(token) = bearer(&parts.headers) else {
            return Err(ApiError::unauthenticated("Send the step's token as `Authorization: Bearer <token>`."));
        };
        if let Some(claims) = app.host.step_claims(token) {
            return Ok(Self(claims));
        }
        let is_other = known(app, &parts.headers).is_some() || is_runner(parts, app).await;
        Err(match is_other {
            true => ApiError::forbidden("This needs the token of a step. A runner gets one with each step."),
            false => ApiError::unauthenticated("This token is not known here."),
        })
    }
}

/// The same, where clients of OpenAI call: refusals have its shape.
#[derive(Clone, Debug)]
pub(crate) struct OpenAiStep(pub(crate) StepClaims);

impl FromRequestParts<App> for OpenAiStep {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenAiError> {
        Ok(StepToken::from_request_parts(parts, app).await.map(|StepToken(claims)| Self(claims))?)
    }
}
