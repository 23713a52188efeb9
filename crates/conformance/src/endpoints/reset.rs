use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_server::endpoint::{AnyKey, ApiError, App, Reply};
use serde_json::json;

use crate::mode::Conformance;

/// Puts every capability back to what the host really offers, and lets the mock provider forget what it was told and
/// the test endpoints what they were shown.
pub(super) async fn post(State(app): State<App>, _: AnyKey) -> Result<Response, ApiError> {
    let mode = Conformance::of(&app.host)?;
    mode.toggle_capability(None);
    mode.reset_mock();
    mode.journal.forget();
    Ok(Reply::ok(&json!({"ok": true})).into_response())
}
