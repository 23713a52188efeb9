//! For load balancers and operators.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::access::Public;
use crate::error::ApiError;
use crate::reply::Reply;

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// The process is alive.
#[utoipa::path(get, path = "/health", tag = "operations",
    responses((status = 200, description = "The process answers", body = Health)))]
pub(crate) async fn health(_: Public) -> Response {
    alive()
}

pub(crate) fn alive() -> Response {
    Reply::ok(&Health { status: "ok" }).into_response()
}

/// The host takes writes.
#[utoipa::path(get, path = "/readiness", tag = "operations",
    responses(
        (status = 200, description = "Ready", body = Health),
        (status = 503, description = "Not ready", body = baton_api::ErrorBody)))]
pub(crate) async fn readiness(_: Public, State(app): State<App>) -> Result<Response, ApiError> {
    let readiness = app.host.readiness();
    if readiness.ready && !app.shutdown.is_cancelled() {
        return Ok(Reply::ok(&Health { status: "ready" }).into_response());
    }
    let reason = readiness.reason.unwrap_or_else(|| "The host is shutting down.".to_owned());
    Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, baton_model::code::SERVICE_UNAVAILABLE, reason))
}
