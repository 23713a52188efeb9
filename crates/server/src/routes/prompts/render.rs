//! What a template would read like.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_agent::prompts;
use baton_api::RenderPrompt;
use serde_json::Value;

use super::{member_of, refused};
use crate::app::App;
use crate::auth::AnyKey;
use crate::body::Json;
use crate::error::ApiError;
use crate::reply::Reply;

/// Fill a template without running anything. Secrets stay markers; the hash is the one that a run would record.
#[utoipa::path(post, path = "/v1/prompts:render", tag = "prompts", request_body = RenderPrompt,
    responses((status = 200, description = "The text and its hash", body = Object),
        (status = 400, description = "A value is missing or of another type", body = baton_api::ErrorBody),
        (status = 404, description = "No such template", body = baton_api::ErrorBody)))]
pub(crate) async fn render(
    State(app): State<App>,
    who: AnyKey,
    Json(asked): Json<RenderPrompt>,
) -> Result<Response, ApiError> {
    member_of(asked.workspace_id.as_deref())?;
    let library = app.prompts(&who.tenant);
    let context = [("tenantId".to_owned(), Value::from(who.tenant.as_str()))].into_iter().collect();
    let rendered = prompts::render(&library, &asked.reference, &asked.variables, asked.content_trust, &context);
    let rendered = rendered.map_err(|error| refused(error).without(&app.host.options().secrets))?;
    Ok(Reply::ok(&rendered).into_response())
}
