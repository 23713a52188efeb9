//! The prompt library: what templates there are, one of them, and what one would read like. Templates come with the host
//! and with packs; nobody writes them here.

pub(crate) mod list;
pub(crate) mod render;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_agent::prompts::{Library, PromptError, PromptRef};
use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Digest, TenantId, code, json as canonical};
use bytes::Bytes;

use crate::app::App;
use crate::auth::AnyKey;
use crate::document::etag;
use crate::error::ApiError;
use crate::headers::has_etag;
use crate::path::Ids;
use crate::query::{Params, bad};
use crate::reply::Reply;

/// A version that was named never changes; the newest one may be another in a minute.
const PINNED: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
const NEWEST: HeaderValue = HeaderValue::from_static("private, max-age=60");

/// One template.
#[utoipa::path(get, path = "/v1/prompts/{templateId}", tag = "prompts",
    params(("templateId" = String, Path),
        ("version" = Option<String>, Query, description = "A semantic version; the newest when absent"),
        ("libraryId" = Option<String>, Query, description = "Where several libraries have a template of that name"),
        ("If-None-Match" = Option<String>, Header)),
    responses((status = 200, description = "The template", body = Object), (status = 304, description = "Unchanged"),
        (status = 404, description = "No such template", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: AnyKey,
    Ids(template_id): Ids<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    params.only(&["version", "libraryId", "workspaceId"])?;
    member_of(params.one("workspaceId")?)?;
    let reference = named(&template_id, params.one("version")?, params.one("libraryId")?)?;
    let library = app.prompts(&who.tenant);
    let template = library.find(&reference).map_err(refused)?;
    let body = canonical::canonical(&serde_json::to_value(template).unwrap_or_default());
    let tag = etag(&Digest::of_bytes(&body));
    let known = has_etag(&headers, tag.to_str().unwrap_or_default());
    let reply = match known {
        true => Reply::new(StatusCode::NOT_MODIFIED, Bytes::new()),
        false => Reply::new(StatusCode::OK, body),
    };
    Ok(reply
        .header(ETAG, tag)
        .header(CACHE_CONTROL, if reference.version.is_some() { PINNED } else { NEWEST })
        .into_response())
}

/// What nobody could ever have named is as unknown as what is not there.
fn named(id: &str, version: Option<&str>, library: Option<&str>) -> Result<PromptRef, ApiError> {
    let unknown = || refused(PromptError::Missing(format!("prompt:{id}")));
    let plain = PromptRef::parse(&format!("prompt:{id}")).ok().filter(|plain| plain.template_id == id);
    let mut reference = plain.ok_or_else(unknown)?;
    if let Some(version) = version {
        let pinned = PromptRef::parse(&format!("prompt:{id}@{version}")).ok().and_then(|pinned| pinned.version);
        reference.version = Some(pinned.ok_or_else(|| bad("version", "must be a semantic version such as 1.4.0"))?);
    }
    reference.library_id = library.map(str::to_owned);
    Ok(reference)
}

/// Put a template into the library. Not offered here.
#[utoipa::path(post, path = "/v1/prompts", tag = "prompts",
    responses((status = 501, description = "Templates come with packs", body = baton_api::ErrorBody)))]
pub(crate) async fn create(_: AnyKey) -> ApiError {
    fixed()
}

/// Replace a template. Not offered here.
#[utoipa::path(put, path = "/v1/prompts/{templateId}", tag = "prompts", params(("templateId" = String, Path)),
    responses((status = 501, description = "Templates come with packs", body = baton_api::ErrorBody)))]
pub(crate) async fn replace(_: AnyKey, _: Ids<String>) -> ApiError {
    fixed()
}

/// Remove a template. Not offered here.
#[utoipa::path(delete, path = "/v1/prompts/{templateId}", tag = "prompts", params(("templateId" = String, Path)),
    responses((status = 501, description = "Templates come with packs", body = baton_api::ErrorBody)))]
pub(crate) async fn remove(_: AnyKey, _: Ids<String>) -> ApiError {
    fixed()
}

fn fixed() -> ApiError {
    let message =
        "The library of this host is not written to over HTTP. Put templates into its prompts folder or a pack.";
    ApiError::not_provided(message, "prompts.mutableLibrary")
}

impl App {
    /// The templates a tenant may use.
    pub(crate) fn prompts(&self, tenant: &TenantId) -> Library {
        self.host.agent_registry().library(tenant)
    }
}

/// A tenant has one workspace, and every key of the tenant belongs to it.
fn member_of(workspace: Option<&str>) -> Result<(), ApiError> {
    match workspace {
        None | Some(DEFAULT_WORKSPACE) => Ok(()),
        Some(_) => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            code::WORKSPACE_MEMBERSHIP_REQUIRED,
            "This key does not belong to the workspace named in the request. Leave workspaceId out.",
        )),
    }
}

pub fn refused(error: PromptError) -> ApiError {
    let (code, missing) = (error.code(), error.is_missing());
    let fault = baton_model::Fault::from(error);
    let (status, code) = match code {
        _ if missing => (StatusCode::NOT_FOUND, code::NOT_FOUND),
        code::PAYLOAD_TOO_LARGE => (StatusCode::PAYLOAD_TOO_LARGE, code),
        code => (StatusCode::BAD_REQUEST, code),
    };
    let refusal = ApiError::new(status, code, fault.message);
    fault.details.into_iter().flatten().fold(refusal, |refusal, (key, value)| refusal.with(&key, value))
}
