//! The types of nodes that a definition may use here.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_runtime::node_types;
use baton_server::endpoint::scope::ManifestRead;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde_json::{Value, json};

/// None of them says `requiredModelCapabilities`: here a node asks for those in its configuration, its type for none.
pub(super) async fn get(State(app): State<App>, _: Allowed<ManifestRead>) -> Result<Response, ApiError> {
    let entry = |id: &str| json!({"typeId": id, "source": "local"});
    let nodes: Vec<Value> = node_types(app.host.options().test_hooks.is_some()).into_iter().map(entry).collect();
    Ok(Reply::ok(&json!({"nodes": nodes})).into_response())
}
