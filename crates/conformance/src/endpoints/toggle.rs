//! Switching a capability off for the registrations that follow, so that a refusal can be provoked.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_server::endpoint::scope::WorkflowsWrite;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::json;

use super::stage::Body;
use crate::mode::Conformance;

#[derive(Deserialize)]
pub(super) struct Toggle {
    name: Option<String>,
    /// Null puts the capability back to what the host really offers.
    value: Option<bool>,
    #[serde(default)]
    reset: bool,
}

pub(super) async fn post(
    State(app): State<App>,
    _: Allowed<WorkflowsWrite>,
    Body(toggle): Body<Toggle>,
) -> Result<Response, ApiError> {
    let change = match (toggle.reset, toggle.name) {
        (true, _) => None,
        (false, Some(name)) => Some((name, toggle.value)),
        (false, None) => return Err(ApiError::invalid("Send {name, value} or {reset: true}.").with("pointer", "/name")),
    };
    Ok(Reply::ok(&json!({"overlay": Conformance::of(&app.host)?.toggle_capability(change)})).into_response())
}
