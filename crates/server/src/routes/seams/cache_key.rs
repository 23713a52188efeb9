//! The key of a model call, worked out by the function that stamps it on the log.

use axum::response::{IntoResponse as _, Response};
use baton_model::{Scope, SemanticRequest};
use serde_json::{Map, Value, json};

use super::mock_ai::wrong;
use super::stage::Body;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::reply::Reply;

pub(super) async fn post(who: Caller, Body(request): Body<Map<String, Value>>) -> Result<Response, ApiError> {
    who.need(Scope::RunsRead)?;
    let request = SemanticRequest::read(&request).map_err(|error| wrong(&error.field, format!("{error}.")))?;
    Ok(Reply::ok(&json!({"cacheKey": request.cache_key()})).into_response())
}
