//! Webhook subscriptions as their owners see them, and what they change about one. Never with a secret, but for a new one.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api::{Webhook, WebhookFailure, WebhookList, WebhookSecret};
use baton_model::WebhookId;
use baton_runtime::WebhookView;
use serde::Deserialize;
use utoipa::ToSchema;

use super::webhooks::secret;
use crate::app::App;
use crate::auth::scope::WebhooksManage;
use crate::auth::{Allowed, check_tenant};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

fn shown(view: WebhookView) -> Webhook {
    Webhook {
        webhook_id: view.id,
        url: view.url,
        events: view.events,
        tags: view.tags,
        state: view.state.as_str().to_owned(),
        secret_fingerprint: view.fingerprint,
        created_at: view.created_at,
        consecutive_failures: view.consecutive_failures,
        open_until: view.open_until,
        last_failure: view.last_failure.map(|last| WebhookFailure { at: last.at, status: last.status }),
        waiting: view.waiting,
        dead_letters: view.dead_letters,
        dead_letters_dropped: view.dead_letters_dropped,
    }
}

/// The tenant's subscriptions, by id.
#[utoipa::path(get, path = "/v1/webhooks", tag = "webhooks",
    params(("limit" = Option<u64>, Query, description = "1 to 200, 50 by default"), ("cursor" = Option<String>, Query),
        ("tenantId" = Option<String>, Query)),
    responses((status = 200, description = "One page", body = WebhookList),
        (status = 403, description = "Another tenant was named", body = baton_api::ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["limit", "cursor", "tenantId"])?;
    check_tenant(&who, params.one("tenantId")?)?;
    let limit = usize::try_from(params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(1);
    let after = params.one("cursor")?.map(WebhookId::new);
    let found = app.host.webhooks(tenant, after.as_ref(), limit).await?;
    let next_cursor = (found.len() == limit).then(|| found.last().map(|view| view.id.to_string())).flatten();
    let webhooks = found.into_iter().map(shown).collect();
    Ok(Reply::ok(&WebhookList { webhooks, next_cursor }).into_response())
}

/// One subscription.
#[utoipa::path(get, path = "/v1/webhooks/{webhookId}", tag = "webhooks",
    params(("webhookId" = String, Path), ("tenantId" = Option<String>, Query)),
    responses((status = 200, description = "As it is now", body = Webhook),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    check_tenant(&who, params.one("tenantId")?)?;
    let view = app.host.webhook(tenant, &WebhookId::new(id)).await?;
    Ok(Reply::ok(&shown(view)).into_response())
}

/// There is nothing to choose.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoChoice {}

/// Call a subscriber again, at once, though it failed (host extension). Its dead letters stay until they are sent again.
#[utoipa::path(post, path = "/v1/host/baton/webhooks/{webhookId}/resume", tag = "webhooks",
    request_body = Option<NoChoice>,
    params(("webhookId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "As it is now", body = Webhook),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody)))]
pub(crate) async fn resume(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let route = "POST /v1/host/baton/webhooks/{webhookId}/resume";
    let reply = request.once(app, tenant.clone(), route, move |call| async move {
        let NoChoice {} = call.json_or_default()?;
        let view = call.app.host.resume_webhook(&who, &WebhookId::new(id)).await?;
        Ok(Reply::ok(&shown(view)))
    });
    Ok(reply.await)
}

/// Give a subscription a new secret (host extension). Whatever is sent from then on is signed with it.
#[utoipa::path(post, path = "/v1/host/baton/webhooks/{webhookId}/rotate-secret", tag = "webhooks",
    request_body = Option<NoChoice>,
    params(("webhookId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "The new secret, shown once", body = WebhookSecret),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody)))]
pub(crate) async fn rotate_secret(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let route = "POST /v1/host/baton/webhooks/{webhookId}/rotate-secret";
    let reply = request.once(app, tenant.clone(), route, move |call| async move {
        let NoChoice {} = call.json_or_default()?;
        let rotated = call.app.host.rotate_secret(&who, &WebhookId::new(id)).await?;
        Ok(Reply::ok(&secret(rotated)))
    });
    Ok(reply.await)
}
