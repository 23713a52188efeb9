//! The key of a model call, worked out by the function that stamps it on the log.

use axum::response::{IntoResponse as _, Response};
use baton_model::SemanticRequest;
use baton_server::endpoint::scope::RunsRead;
use baton_server::endpoint::{Allowed, ApiError, Reply};
use serde_json::{Map, Value, json};

use super::mock_ai::wrong;
use super::stage::Body;

pub(super) async fn post(_: Allowed<RunsRead>, Body(request): Body<Map<String, Value>>) -> Result<Response, ApiError> {
    let request = SemanticRequest::read(&request).map_err(|error| wrong(&error.field, format!("{error}.")))?;
    Ok(Reply::ok(&json!({"cacheKey": request.cache_key()})).into_response())
}
