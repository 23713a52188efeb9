//! The tools of this host, as far as the caller's scopes go. A tool that it may not use looks like one that is not there.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::Principal;
use baton_model::tool::SafetyTier;
use baton_tool::catalog::Source;
use baton_tool::hooks::Held;
use baton_tool::{Audience, ToolDescriptor};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::AnyKey;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::{Params, bad};
use crate::reply::Reply;

/// Names and what they may do, for whoever only chooses.
#[derive(Serialize, ToSchema)]
pub(crate) struct CompactTools {
    tools: Vec<CompactTool>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CompactTool {
    tool_id: String,
    #[schema(value_type = String)]
    source: Source,
    #[schema(value_type = String)]
    safety_tier: SafetyTier,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

/// The scopes a caller holds, in the words of tools. Who holds everything that a key can hold is not asked further.
pub(crate) struct HeldScopes(Option<Vec<String>>);

impl HeldScopes {
    pub(crate) fn of(who: &Principal) -> Self {
        Self((!who.scopes.is_whole_tenant()).then(|| who.scopes.names()))
    }

    pub(crate) fn held(&self) -> Held<'_> {
        Held::from(self.0.as_deref())
    }
}

/// Whose tools a caller sees.
fn audience(who: &Principal) -> Audience<'_> {
    Audience { tenant: &who.tenant, subject: who.acts_for.as_deref() }
}

/// What may be called here.
#[utoipa::path(get, path = "/v1/tools", tag = "tools",
    params(
        ("source" = Option<String>, Query, description = "`node-pack`, `workflow`, `mcp`, `connector` or `host-extension`"),
        ("view" = Option<String>, Query, description = "`compact`: names only, as `{tools: […]}`")),
    responses((status = 200, description = "Tool descriptors by id", body = Vec<Object>)))]
pub(crate) async fn list(State(app): State<App>, who: AnyKey, params: Params) -> Result<Response, ApiError> {
    params.only(&["source", "view"])?;
    let source = match params.one("source")? {
        None => None,
        Some(word) => Some(
            Source::read(word)
                .ok_or_else(|| bad("source", "must be node-pack, workflow, mcp, connector or host-extension"))?,
        ),
    };
    let compact = match params.one("view")? {
        None => false,
        Some("compact") => true,
        Some(_) => return Err(bad("view", "must be compact or absent")),
    };
    let mut tools = app.host.options().tools.catalog(audience(&who), HeldScopes::of(&who).held());
    tools.retain(|tool| source.is_none_or(|source| tool.source == source));
    if !compact {
        return Ok(Reply::ok(&tools).into_response());
    }
    let tools = tools.into_iter().map(|ToolDescriptor { tool_id, source, safety_tier, title, .. }| CompactTool {
        tool_id,
        source,
        safety_tier,
        title,
    });
    Ok(Reply::ok(&CompactTools { tools: tools.collect() }).into_response())
}

/// One tool.
#[utoipa::path(get, path = "/v1/tools/{toolId}", tag = "tools", params(("toolId" = String, Path)),
    responses(
        (status = 200, description = "The tool", body = baton_tool::ToolDescriptor),
        (status = 404, description = "No such tool, or not for this caller", body = baton_api::ErrorBody)))]
pub(crate) async fn get(State(app): State<App>, who: AnyKey, Ids(id): Ids<String>) -> Result<Response, ApiError> {
    let tool = app.host.options().tools.describe(audience(&who), HeldScopes::of(&who).held(), &id);
    let tool =
        tool.ok_or_else(|| ApiError::not_found("There is no such tool here. GET /v1/tools lists those that are."))?;
    Ok(Reply::ok(&tool).into_response())
}
