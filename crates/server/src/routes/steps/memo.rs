//! What programs keep under the steps that they have in hand.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_api as api;

use crate::app::App;
use crate::auth::step::StepToken;
use crate::body;
use crate::error::ApiError;
use crate::path::Ids;
use crate::reply::Reply;

/// A value of 256 KiB may take up to six times as much where every letter is escaped.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// Keep a value under a step. The first value under a key counts, whatever is sent later: the reply has the one that counts.
/// It is on the run's log when this answers.
#[utoipa::path(put, path = "/v1/host/baton/steps/memo/{key}", tag = "steps", params(("key" = String, Path)),
    request_body = api::KeepValue,
    responses((status = 201, description = "It is kept", body = api::StepValue),
        (status = 200, description = "There was a value already, and this is it", body = api::StepValue),
        (status = 409, description = "The runner does not have the step any more", body = api::ErrorBody),
        (status = 413, description = "The value is too large, or all of the step's together", body = api::ErrorBody),
        (status = 422, description = "The step keeps as many values as one may", body = api::ErrorBody)))]
pub(crate) async fn put(
    State(app): State<App>,
    StepToken(claims): StepToken,
    Ids(key): Ids<String>,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, ApiError> {
    let bytes = body::read(&headers, content, MOST_BYTES, app.arrival).await?;
    let api::KeepValue { value } = body::parse(&bytes)?;
    let kept = app.host.keep_for_step(&claims, key.clone(), value).await?;
    let status = if kept.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Reply::json(status, &api::StepValue { key, value: kept.value, created: Some(kept.created) }).into_response())
}

/// The value that a step keeps under a key, also when the step was given out again.
#[utoipa::path(get, path = "/v1/host/baton/steps/memo/{key}", tag = "steps", params(("key" = String, Path)),
    responses((status = 200, description = "The value", body = api::StepValue),
        (status = 404, description = "Nothing is kept under this key", body = api::ErrorBody),
        (status = 409, description = "The runner does not have the step any more", body = api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    StepToken(claims): StepToken,
    Ids(key): Ids<String>,
) -> Result<Response, ApiError> {
    let value = app.host.kept_for_step(&claims, &key).await?;
    Ok(Reply::ok(&api::StepValue { key, value, created: None }).into_response())
}
