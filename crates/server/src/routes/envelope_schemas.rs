//! The shapes of the envelopes that this host takes: the very schemas that it holds them against.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use baton_runtime::acceptor::Kinds;

use crate::auth::access::Public;
use crate::document::Document;
use crate::error::ApiError;
use crate::path::Ids;

const SUFFIX: &str = ".schema.json";

/// The JSON Schema of the payload of an envelope, by its kind.
#[utoipa::path(get, path = "/schemas/envelopes/{file}", tag = "discovery",
    params(("file" = String, Path, description = "A kind of `supportedEnvelopes`, and `.schema.json`")),
    responses(
        (status = 200, description = "A JSON Schema, draft 2020-12", body = Object,
            content_type = "application/schema+json"),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "This host takes no such envelope", body = baton_api::ErrorBody)))]
pub(crate) async fn get(_: Public, Ids(file): Ids<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let schema = file.strip_suffix(SUFFIX).and_then(|kind| Kinds::shared().schema(kind));
    let schema = schema.ok_or_else(|| {
        ApiError::not_found(
            "This host takes no such envelope. `supportedEnvelopes` of the discovery document lists them.",
        )
    })?;
    let mut response = Document::new(schema).respond(&headers);
    if response.headers().contains_key(CONTENT_TYPE) {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/schema+json"));
    }
    Ok(response)
}
