//! What is asked and answered on a connection above the limit: how the host is, once, and nothing else.

use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_model::code;

use crate::error::ApiError;

/// Connections above the limit. They are short: a probe and a scrape need one each.
pub(super) const PLACES: usize = 64;

const RETRY_AFTER_SECONDS: u64 = 1;

pub(super) fn may_ask(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && matches!(path, "/health" | "/readiness" | "/metrics")
}

pub(super) fn refusal() -> Response {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        code::SERVICE_UNAVAILABLE,
        "The host has as many connections as it takes, or as many from this address. Close some, or try again.",
    )
    .with("retryAfter", RETRY_AFTER_SECONDS)
    .into_response()
}

/// One answer is all there is.
pub(super) fn last(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
