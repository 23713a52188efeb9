//! What subscribers did not take: looking at it, sending it again, letting it go. The list is the protocol's manner of
//! dead letters; the rest is a host extension.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_api::{DeadLetter, DeadLetterList, Redelivery};
use baton_model::{EventId, RunId, Timestamp, WebhookId};
use baton_runtime::DeadLetterView;
use baton_store::{DeadLetterPlace, Letters};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::WebhooksManage;
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::{Params, bad};
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
pub(crate) const MAX_LIMIT: u64 = 200;

fn shown(view: DeadLetterView) -> DeadLetter {
    let letter = view.letter;
    DeadLetter {
        letter_id: format!("{}.{}", letter.run, letter.seq),
        webhook_id: letter.webhook,
        run_id: letter.run,
        sequence: letter.seq,
        kind: letter.kind,
        reason: letter.reason.as_str().to_owned(),
        last_status: letter.status,
        attempts: letter.attempts,
        dead_lettered_at: letter.at,
        expires_at: view.expires_at,
    }
}

/// What a subscriber did not take, newest first.
#[utoipa::path(get, path = "/v1/webhooks/{webhookId}/dead-letters", tag = "webhooks",
    params(("webhookId" = String, Path), ("limit" = Option<u64>, Query, description = "1 to 200, 50 by default"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")),
    responses((status = 200, description = "One page", body = DeadLetterList),
        (status = 400, description = "The cursor is of another subscription", body = baton_api::ErrorBody),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["limit", "cursor"])?;
    let id = WebhookId::new(id);
    // First whose it is: a stranger learns nothing from what is said about cursors.
    let webhook = app.host.webhook(tenant, &id).await?;
    let limit = usize::try_from(params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(1);
    let before = match params.one("cursor")? {
        Some(text) => Some(read_cursor(text, &id)?),
        None => None,
    };
    let letters = app.host.dead_letters(tenant, &id, before.as_ref(), limit).await?;
    let last = letters.last().filter(|_| letters.len() == limit).map(|view| view.letter.place());
    let body = DeadLetterList {
        next_cursor: last.map(|place| write_cursor(&id, &place)),
        dead_letters: letters.into_iter().map(shown).collect(),
        dropped: webhook.dead_letters_dropped,
        retention_days: app.host.dead_letter_days(),
    };
    Ok(Reply::ok(&body).into_response())
}

fn write_cursor(webhook: &WebhookId, place: &DeadLetterPlace) -> String {
    let parts = (webhook.as_str(), place.at.as_micros(), place.run.as_str(), place.seq);
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&parts).unwrap_or_default())
}

fn read_cursor(text: &str, webhook: &WebhookId) -> Result<DeadLetterPlace, ApiError> {
    let parts = URL_SAFE_NO_PAD.decode(text).ok();
    let parts = parts.and_then(|bytes| serde_json::from_slice::<(String, i64, String, u64)>(&bytes).ok());
    let (of, at, run, seq) = parts.ok_or_else(|| bad("cursor", "is not one this host gave out"))?;
    if of != webhook.as_str() {
        return Err(bad("cursor", "is of another subscription; begin without one"));
    }
    Ok(DeadLetterPlace { at: Timestamp::from_micros(at), run: RunId::new(run), seq })
}

/// There is nothing to choose.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redeliver {}

/// Send everything again that a subscriber did not take (host extension). Bodies and event ids are as they were, the
/// signature is new; asking twice sends nothing twice.
#[utoipa::path(post, path = "/v1/host/baton/webhooks/{webhookId}/dead-letters/redeliver", tag = "webhooks",
    request_body = Option<Redeliver>,
    params(("webhookId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 202, description = "Queued", body = Redelivery),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody),
        (status = 409, description = "It was given up and must be resumed first",
            body = baton_api::ErrorBody)))]
pub(crate) async fn redeliver_all(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    redeliver(app, who, id, Letters::All, request).await
}

/// Send one event again (host extension).
#[utoipa::path(post, path = "/v1/host/baton/webhooks/{webhookId}/dead-letters/{letterId}/redeliver", tag = "webhooks",
    request_body = Option<Redeliver>,
    params(("webhookId" = String, Path), ("letterId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 202, description = "Queued, or on its way already", body = Redelivery),
        (status = 404, description = "No such subscription or letter", body = baton_api::ErrorBody),
        (status = 409, description = "It was given up and must be resumed first",
            body = baton_api::ErrorBody),
        (status = 410, description = "The log of its run was pruned", body = baton_api::ErrorBody)))]
pub(crate) async fn redeliver_one(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids((id, letter)): Ids<(String, String)>,
    request: Mutation,
) -> Result<Response, ApiError> {
    redeliver(app, who, id, which(&letter)?, request).await
}

async fn redeliver(
    app: App,
    who: Allowed<WebhooksManage>,
    id: String,
    which: Letters,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let route = "POST /v1/host/baton/webhooks/{webhookId}/dead-letters/redeliver";
    let reply = request.once(app, tenant.clone(), route, move |call| async move {
        let Redeliver {} = call.json_or_default()?;
        let queued = call.app.host.redeliver(&who, &WebhookId::new(id), which).await?;
        Ok(Reply::json(StatusCode::ACCEPTED, &Redelivery { queued }))
    });
    Ok(reply.await)
}

/// Let all dead letters of a subscriber go (host extension).
#[utoipa::path(delete, path = "/v1/host/baton/webhooks/{webhookId}/dead-letters", tag = "webhooks",
    params(("webhookId" = String, Path)),
    responses((status = 204, description = "Gone"),
        (status = 404, description = "No such subscription", body = baton_api::ErrorBody)))]
pub(crate) async fn forget_all(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids(id): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    forget(app, who, id, Letters::All, request).await
}

/// Let one dead letter go (host extension).
#[utoipa::path(delete, path = "/v1/host/baton/webhooks/{webhookId}/dead-letters/{letterId}", tag = "webhooks",
    params(("webhookId" = String, Path), ("letterId" = String, Path)),
    responses((status = 204, description = "Gone"),
        (status = 404, description = "No such subscription or letter", body = baton_api::ErrorBody)))]
pub(crate) async fn forget_one(
    State(app): State<App>,
    who: Allowed<WebhooksManage>,
    Ids((id, letter)): Ids<(String, String)>,
    request: Mutation,
) -> Result<Response, ApiError> {
    forget(app, who, id, which(&letter)?, request).await
}

async fn forget(
    app: App,
    who: Allowed<WebhooksManage>,
    id: String,
    which: Letters,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let route = "DELETE /v1/host/baton/webhooks/{webhookId}/dead-letters";
    let reply = request.once(app, tenant.clone(), route, move |call| async move {
        call.app.host.forget_letters(&who, &WebhookId::new(id), which).await?;
        Ok(Reply::no_content())
    });
    Ok(reply.await)
}

/// A letter bears the id of its event.
fn which(letter: &str) -> Result<Letters, ApiError> {
    let Some((run, seq)) = EventId::from(letter).place().filter(|(_, seq)| i64::try_from(*seq).is_ok()) else {
        let message = "There is no such dead letter. Its id is that of the event, such as run_….3.";
        return Err(ApiError::not_found(message));
    };
    Ok(Letters::One { run, seq })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_is_of_one_subscription() {
        let (mine, other) = (WebhookId::new("wh_1"), WebhookId::new("wh_2"));
        let place = DeadLetterPlace { at: Timestamp::from_micros(7), run: RunId::new("run_\"ü"), seq: u64::MAX };
        let cursor = write_cursor(&mine, &place);
        assert_eq!(read_cursor(&cursor, &mine).unwrap(), place);
        for (cursor, webhook) in [(cursor.as_str(), &other), ("", &mine), ("AAAA", &mine), ("%%", &mine)] {
            let error = read_cursor(cursor, webhook).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "validation_error"), "{cursor}");
        }
    }

    #[test]
    fn a_letter_bears_the_id_of_its_event() {
        assert_eq!(which("run_1.2.3").unwrap(), Letters::One { run: RunId::new("run_1.2"), seq: 3 });
        for bad in
            ["", "run_1", "run_1.", "run_1.x", "run_1.-1", "run_1.99999999999999999999", "run_1.18446744073709551615"]
        {
            assert_eq!(which(bad).unwrap_err().status.as_u16(), 404, "{bad}");
        }
    }
}
