//! Memory from outside a run: what people and tools want remembered (host extension). The tenant is that of the key, so
//! somebody else's scope is an empty scope of one's own.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_api::{MemoryList, MemoryScope, MemoryScopes};
use baton_model::{MAX_TAG_CHARS, MemoryEntry, Timestamp};
use baton_runtime::NewMemory;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{MemoryRead, MemoryWrite};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::{Params, bad};
use crate::reply::{self, Reply};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1000;
const MAX_TAGS: usize = 100;
/// Ten years; who wants longer wants for ever.
const LONGEST_TTL_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

/// The memory scopes of the tenant (host extension).
#[utoipa::path(get, path = "/v1/host/baton/memory", tag = "memory",
    responses((status = 200, description = "Scopes that somebody wrote to", body = MemoryScopes)))]
pub(crate) async fn scopes(State(app): State<App>, who: Allowed<MemoryRead>) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let rows = app.host.memory_scopes(tenant).await?;
    let scopes =
        rows.into_iter().map(|row| MemoryScope { scope: row.scope, version: row.version, updated_at: row.updated_at });
    Ok(Reply::ok(&MemoryScopes { scopes: scopes.collect() }).into_response())
}

/// What a scope holds (host extension). A scope that nobody wrote to holds nothing.
#[utoipa::path(get, path = "/v1/host/baton/memory/{scope}", tag = "memory",
    params(("scope" = String, Path), ("tag" = Option<String>, Query),
        ("limit" = Option<u64>, Query, description = "At most 1000; 0 or absent means 100"),
        ("cursor" = Option<String>, Query, description = "What the page before said")),
    responses((status = 200, description = "Entries, newest first", body = MemoryList)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<MemoryRead>,
    Ids(scope): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["tag", "limit", "cursor"])?;
    let tag = params.one("tag")?;
    if tag.is_some_and(|tag| !(1..=MAX_TAG_CHARS).contains(&tag.chars().count())) {
        return Err(bad("tag", &format!("must have 1 to {MAX_TAG_CHARS} characters")));
    }
    let limit = params.int("limit", 0..=MAX_LIMIT)?.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
    let cursor = params.int("cursor", 1..=i64::MAX.unsigned_abs())?;
    let page = app.host.memory_page(tenant, &scope, tag.map(str::to_owned), cursor, limit as usize).await?;
    let next_cursor = page.next.map(|cursor| cursor.to_string());
    Ok(Reply::ok(&MemoryList { entries: page.items, next_cursor }).into_response())
}

/// Remember something (host extension).
#[utoipa::path(post, path = "/v1/host/baton/memory/{scope}", tag = "memory", request_body = api::NewMemory,
    params(("scope" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, description = "The entry as it was stored, secrets taken out",
            body = baton_model::MemoryEntry),
        (status = 400, description = "The entry does not fit", body = baton_api::ErrorBody),
        (status = 413, description = "The scope is full", body = baton_api::ErrorBody)))]
pub(crate) async fn remember(
    State(app): State<App>,
    who: Allowed<MemoryWrite>,
    Ids(scope): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/host/baton/memory/{scope}", move |call| async move {
        call.app.refuse_secret("scope", &scope)?;
        let new = check(call.json()?, call.app.host.now())?;
        let entry = call.app.host.put_memory(&tenant, &scope, new, call.stored_with_effect(render)).await?;
        Ok(Reply::new(StatusCode::CREATED, render(&entry).1).already_stored())
    });
    Ok(reply.await)
}

/// One entry (host extension).
#[utoipa::path(get, path = "/v1/host/baton/memory/{scope}/{entryId}", tag = "memory",
    params(("scope" = String, Path), ("entryId" = String, Path)),
    responses((status = 200, description = "The entry", body = baton_model::MemoryEntry),
        (status = 404, description = "No such entry, or it has expired", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<MemoryRead>,
    Ids((scope, id)): Ids<(String, String)>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let entry = app.host.memory_entry(tenant, &scope, &id).await?;
    Ok(Reply::ok(&entry.ok_or_else(no_such_entry)?).into_response())
}

/// Forget one entry (host extension).
#[utoipa::path(delete, path = "/v1/host/baton/memory/{scope}/{entryId}", tag = "memory",
    params(("scope" = String, Path), ("entryId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 204, description = "Forgotten"),
        (status = 404, description = "No such entry, or it has expired", body = baton_api::ErrorBody)))]
pub(crate) async fn forget(
    State(app): State<App>,
    who: Allowed<MemoryWrite>,
    Ids((scope, id)): Ids<(String, String)>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let operation = "DELETE /v1/host/baton/memory/{scope}/{entryId}";
    let reply = request.once(app, tenant.clone(), operation, move |call| async move {
        match call.app.host.delete_memory(&tenant, &scope, &id).await? {
            true => Ok(Reply::no_content()),
            false => Err(no_such_entry()),
        }
    });
    Ok(reply.await)
}

/// The stored and the sent form of an entry are the same bytes.
fn render(entry: &MemoryEntry) -> (u16, String) {
    reply::rendered(StatusCode::CREATED, entry)
}

fn check(asked: api::NewMemory, now: Timestamp) -> Result<NewMemory, ApiError> {
    if asked.tags.len() > MAX_TAGS {
        return Err(ApiError::at("/tags", &format!("may have at most {MAX_TAGS} entries")));
    }
    let ttl_ms = match (asked.ttl_seconds, asked.expires_at) {
        (Some(_), Some(_)) => return Err(ApiError::at("/expiresAt", "cannot be combined with ttlSeconds")),
        (None, None) => None,
        (Some(seconds), None) => Some(millis(seconds)?),
        (None, Some(end)) if end <= now => return Err(ApiError::at("/expiresAt", "has passed already")),
        // Rounded up: never earlier than asked for.
        (None, Some(end)) => Some(end.as_micros().abs_diff(now.as_micros()).div_ceil(1000)),
    };
    Ok(NewMemory { content: asked.content, tags: asked.tags, ttl_ms })
}

fn millis(seconds: f64) -> Result<u64, ApiError> {
    if !(0.001..=LONGEST_TTL_SECONDS).contains(&seconds) {
        return Err(ApiError::at("/ttlSeconds", &format!("must be a number from 0.001 to {LONGEST_TTL_SECONDS}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just above")]
    Ok((seconds * 1000.0).round() as u64)
}

fn no_such_entry() -> ApiError {
    ApiError::not_found("There is no such entry in this scope, or it has expired.")
}
