//! Changing a live run's variables from outside its graph.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::RunId;
use baton_server::endpoint::scope::RunsCreate;
use baton_server::endpoint::{Allowed, ApiError, App, Ids, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::Body;

#[derive(Deserialize)]
pub(super) struct Change {
    variables: Map<String, Value>,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Ids(run): Ids<String>,
    Body(change): Body<Change>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let variables = app.host.set_variables(tenant, &RunId::new(run), change.variables).await?;
    Ok(Reply::ok(&json!({"variables": variables})).into_response())
}
