//! The OpenAPI document, as it is handed out.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::app::App;
use crate::auth::access::Public;

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "discovery",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(crate) async fn get(_: Public, State(app): State<App>, headers: HeaderMap) -> Response {
    app.documents.openapi.respond(&headers)
}
