//! Webhook subscriptions. Whether a URL may be called is the runtime's judgement.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use baton_api as api;
use baton_api::WebhookSecret;
use baton_model::{Principal, WebhookId};
use baton_runtime::{NewWebhook, RegisteredWebhook};

use crate::app::App;
use crate::auth::scope::WebhooksManage;
use crate::auth::{Allowed, check_tenant};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;
use crate::routes::runs::check_tags;
use crate::routes::webhook_events::check_event;

/// Longer than any address that is used, as servers and proxies refuse such.
const MAX_URL_BYTES: usize = 2048;
/// More than there are types of events.
const MAX_EVENTS: usize = 500;

pub(super) fn secret(registered: RegisteredWebhook) -> WebhookSecret {
    let RegisteredWebhook { id, secret, fingerprint } = registered;
    WebhookSecret { webhook_id: id, secret, secret_fingerprint: fingerprint }
}

/// Subscribe to events.
#[utoipa::path(post, path = "/v1/webhooks", tag = "webhooks", request_body = api::NewWebhook,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, description = "Subscribed", body = WebhookSecret),
        (status = 400, description = "The URL or the events are not acceptable", body = baton_api::ErrorBody),
        (status = 403, description = "Another tenant was named", body = baton_api::ErrorBody)))]
pub(crate) async fn register(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/webhooks", move |call| async move {
        let webhook = check(call.json()?, &who)?;
        let registered = call.app.host.register_webhook(&who, webhook).await?;
        Ok(Reply::json(StatusCode::CREATED, &secret(registered)))
    });
    Ok(reply.await)
}

fn check(asked: api::NewWebhook, who: &Principal) -> Result<NewWebhook, ApiError> {
    check_tenant(who, asked.tenant_id.as_deref())?;
    if asked.events.is_empty() || asked.events.iter().any(String::is_empty) {
        return Err(ApiError::invalid("/events must name at least one event type.").with("pointer", "/events"));
    }
    if asked.events.len() > MAX_EVENTS {
        return Err(ApiError::at("/events", "may have at most 500 entries").with("max", MAX_EVENTS));
    }
    if asked.url.len() > MAX_URL_BYTES {
        return Err(ApiError::at("/url", "may have at most 2048 bytes").with("max", MAX_URL_BYTES));
    }
    // As with runs: no run has a tag that is not like this.
    check_tags(asked.tags.as_deref().unwrap_or_default())?;
    for (index, name) in asked.events.iter().enumerate() {
        check_event(name).map_err(|problem| problem.with("pointer", format!("/events/{index}")))?;
    }
    Ok(NewWebhook { url: asked.url, events: asked.events, tags: asked.tags.unwrap_or_default() })
}

/// End a subscription.
#[utoipa::path(delete, path = "/v1/webhooks/{webhookId}", tag = "webhooks",
    params(("webhookId" = String, Path), ("tenantId" = Option<String>, Query)),
    responses((status = 204, description = "Ended"),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody)))]
pub(crate) async fn remove(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    check_tenant(&who, params.one("tenantId")?)?;
    let reply = request.once(app, tenant.clone(), "DELETE /v1/webhooks/{webhookId}", move |call| async move {
        call.app.host.delete_webhook(&who, &WebhookId::new(id)).await?;
        Ok(Reply::no_content())
    });
    Ok(reply.await)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::auth::tests::caller;
    use crate::body;

    fn check(text: &str) -> Result<NewWebhook, ApiError> {
        super::check(body::parse(text.as_bytes())?, &caller("k:acme"))
    }

    #[test]
    fn url_and_events_are_required_and_the_rest_is_tolerated() {
        let webhook =
            check(r#"{"url":"https://x.example","events":["run.completed"],"secret":"?","tags":null}"#).unwrap();
        assert_eq!((webhook.url.as_str(), webhook.events.len(), webhook.tags.len()), ("https://x.example", 1, 0));
        for bad in [
            r#"{"events":["*"]}"#,
            r#"{"url":"https://x.example"}"#,
            r#"{"url":"x","events":[]}"#,
            r#"{"url":1,"events":["*"]}"#,
        ] {
            let error = check(bad).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "validation_error"), "{bad}");
        }
        let asked = |url: usize, tags: usize, tag: usize, events: usize| {
            let tags = vec!["t".repeat(tag); tags];
            let body = serde_json::json!({"url": "x".repeat(url), "events": vec!["*"; events], "tags": tags});
            check(&body.to_string())
        };
        assert!(asked(2048, 100, 256, 500).is_ok());
        for (bad, place) in [
            (asked(2049, 1, 1, 1), "/url"),
            (asked(1, 101, 1, 1), "/tags"),
            (asked(1, 1, 257, 1), "/tags/0"),
            (asked(1, 1, 0, 1), "/tags/0"),
            (asked(1, 1, 1, 501), "/events"),
        ] {
            let error = bad.unwrap_err();
            assert_eq!((error.status.as_u16(), &error.details["pointer"]), (400, &place.into()));
        }
        assert_eq!(check(r#"{"url":"x","events":["*"],"tenantId":"other"}"#).unwrap_err().status, 403);
    }
}
