//! Seams for conformance suites, mounted in conformance mode only. They drive the real engine and report what its log
//! says; they fake nothing.

mod attest;
mod fan_out;
mod log;
mod per_item;
mod stage;
mod toggle;
mod variables;
mod workflow;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::json;

use super::{Route, route};
use crate::app::App;
use crate::auth::Caller;
use crate::reply::Reply;

/// Seams are not part of the API and document nothing.
pub(super) fn table() -> Vec<Route> {
    vec![
        route("/v1/host/sample/test/reset", post(reset), &[]),
        route("/v1/host/sample/test/capability-toggle", post(toggle::post), &[]),
        route("/v1/host/sample/test/runs/{runId}/events", get(log::get), &[]),
        route("/v1/host/sample/test/runs/{runId}/variables", post(variables::post), &[]),
        route("/v1/host/sample/workflows", post(workflow::post), &[]),
        route("/v1/host/sample/subrun/attest", post(attest::post), &[]),
        route("/v1/host/sample/dispatch/fanout", post(fan_out::post), &[]),
        route("/v1/host/sample/dispatch/per-item", post(per_item::post), &[]),
    ]
}

/// Puts every capability back to what the host really offers.
async fn reset(State(app): State<App>, _: Caller) -> Response {
    app.host.toggle_capability(None);
    Reply::ok(&json!({"ok": true})).into_response()
}
