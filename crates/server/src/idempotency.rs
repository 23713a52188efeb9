//! `Idempotency-Key`: one effect and one answer, however often a request is sent.
//!
//! Three layers answer for a key. Requests that are running right now share one execution ([`InFlight`]). A finished
//! one is replayed from storage. A new one runs, and its answer is durable before anybody sees it: in the same commit
//! as its effect where asking again would be refused (starting, answering, pausing, resuming,
//! remembering), right after the effect
//! elsewhere. Raw keys are never stored or logged.

mod in_flight;

use std::convert::Infallible;
use std::future::Future;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use baton_model::{Digest, TenantId, code, json};
use baton_runtime::{Idempotent, KeyLookup};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::App;
use crate::error::ApiError;
use crate::reply::Reply;
use crate::{body, headers};
use in_flight::Entry;
pub(crate) use in_flight::InFlight;

const KEY_HEADER: &str = "idempotency-key";
const REPLAY_HEADER: HeaderName = HeaderName::from_static("openwop-idempotent-replay");
const MAX_KEY_CHARS: usize = 255;

/// A request that changes something; its body is still unread, so that it is refused before it is received.
pub(crate) struct Mutation {
    headers: HeaderMap,
    uri: Uri,
    body: Body,
    room: Option<Room>,
}

/// How large a body may be where that is not the host's general limit, and what is said of a larger one.
struct Room {
    bytes: usize,
    refusal: ApiError,
}

impl FromRequest<App> for Mutation {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &App) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Self { headers: parts.headers, uri: parts.uri, body, room: None })
    }
}

/// What an operation gets to see of its request.
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    key: Option<Key>,
}

/// An idempotency key in force: where the answer is kept, and what was asked.
#[derive(Clone)]
struct Key {
    key: Digest,
    request: Digest,
}

impl Call {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        body::parse(&self.body).map_err(|error| error.without(&self.app.host.options().secrets))
    }

    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, ApiError> {
        body::parse_or_default(&self.body).map_err(|error| error.without(&self.app.host.options().secrets))
    }

    /// For an effect that can store its answer in its own commit.
    pub(crate) fn stored_with_effect<T: 'static>(&self, render: fn(&T) -> (u16, String)) -> Option<Idempotent<T>> {
        self.key.as_ref().map(|key| Idempotent {
            key: key.key.clone(),
            request: key.request.clone(),
            render: Box::new(render),
        })
    }
}

impl Mutation {
    /// Takes bodies of up to `bytes` instead of what the host takes elsewhere; larger ones are refused with `refusal`.
    #[must_use]
    pub(crate) fn with_room(mut self, bytes: usize, refusal: ApiError) -> Self {
        self.room = Some(Room { bytes, refusal });
        self
    }

    /// Runs `act` once per key. `owner` and `operation` keep equal keys of different tenants and routes apart.
    pub(crate) async fn once<F, Fut>(self, app: App, owner: TenantId, operation: &'static str, act: F) -> Response
    where
        F: FnOnce(Call) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Reply, ApiError>> + Send + 'static,
    {
        self.once_for(app, (owner.to_string(), owner), operation, act).await
    }

    /// The same for whoever is not a tenant: by what name its keys are told apart, and among whose writes its answers are
    /// kept.
    pub(crate) async fn once_for<F, Fut>(
        self,
        app: App,
        owner: (String, TenantId),
        operation: &'static str,
        act: F,
    ) -> Response
    where
        F: FnOnce(Call) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Reply, ApiError>> + Send + 'static,
    {
        self.reply(app, owner, operation, act).await.unwrap_or_else(ApiError::into_reply).into_response()
    }

    async fn reply<F, Fut>(
        self,
        app: App,
        owner: (String, TenantId),
        operation: &'static str,
        act: F,
    ) -> Result<Reply, ApiError>
    where
        F: FnOnce(Call) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Reply, ApiError>> + Send + 'static,
    {
        let ((name, owner), client_key) = (owner, client_key(&self.headers)?);
        let body = match self.room {
            None => body::read(&self.headers, self.body, app.max_body_bytes, app.arrival).await?,
            Some(Room { bytes, refusal }) => body::read(&self.headers, self.body, bytes, app.arrival)
                .await
                .map_err(|error| if error.code == code::PAYLOAD_TOO_LARGE { refusal } else { error })?,
        };
        let Some(client_key) = client_key else {
            return act(Call { app, headers: self.headers, body, key: None }).await;
        };
        let key = Key {
            key: Digest::of_bytes(format!("{name}:{operation}:{client_key}")),
            request: request_digest(&self.uri, &body),
        };
        let call = Call { app: app.clone(), headers: self.headers, body, key: Some(key.clone()) };
        // On its own task: a caller who hangs up and asks again must find this execution, not start another.
        let (reply, replayed) = match app.tasks.spawn(shared(owner, key, call, act)).await {
            Ok(answer) => answer,
            Err(_) => (ApiError::internal("The request could not be handled.").into_reply(), false),
        };
        Ok(reply.header(REPLAY_HEADER, HeaderValue::from_static(if replayed { "true" } else { "false" })))
    }
}

/// The answer, and whether it is a repetition.
async fn shared<F, Fut>(owner: TenantId, key: Key, call: Call, act: F) -> (Reply, bool)
where
    F: FnOnce(Call) -> Fut,
    Fut: Future<Output = Result<Reply, ApiError>>,
{
    let app = call.app.clone();
    let lead = loop {
        match app.in_flight.enter(&key.key, &key.request) {
            Entry::Lead(lead) => break lead,
            Entry::Clash => return (mismatch().into_reply(), false),
            // Without a final answer there is nothing to share: this request has its own turn.
            Entry::Follow(follow) => match follow.answer().await {
                Some(reply) => return (reply, true),
                None => continue,
            },
        }
    };
    let (reply, replayed) = match app.host.recall(&owner, &key.key, &key.request).await {
        Ok(KeyLookup::Replay { status, body }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            (Reply::new(status, body), true)
        }
        Ok(KeyLookup::Mismatch) => return (mismatch().into_reply(), false),
        Ok(KeyLookup::New) => {
            let digest = key.key.clone();
            let reply = remembered(&app, &owner, key, act(call).await).await.unwrap_or_else(ApiError::into_reply);
            app.host.done_with(&owner, &digest);
            (reply, false)
        }
        Err(error) => (ApiError::from(error).into_reply(), false),
    };
    if reply.is_final() {
        lead.publish(reply.clone());
    }
    (reply, replayed)
}

/// Makes an answer durable before anybody sees it, if it is one to keep.
async fn remembered(
    app: &App,
    owner: &TenantId,
    key: Key,
    outcome: Result<Reply, ApiError>,
) -> Result<Reply, ApiError> {
    let reply = outcome.unwrap_or_else(ApiError::into_reply);
    if reply.is_final() && !reply.is_stored() {
        let body = String::from_utf8_lossy(reply.body()).into_owned();
        app.host.remember(owner, key.key, key.request, reply.status().as_u16(), body).await?;
    }
    Ok(reply)
}

fn client_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    match headers::text(headers, KEY_HEADER) {
        None => Ok(None),
        Some(Ok(key)) if (1..=MAX_KEY_CHARS).contains(&key.len()) => Ok(Some(key)),
        Some(_) => {
            Err(ApiError::invalid(format!("`Idempotency-Key` must be 1 to {MAX_KEY_CHARS} visible ASCII characters.")))
        }
    }
}

/// Digest of everything that says what is asked: the path with its ids, the query, and the body's canonical form.
fn request_digest(uri: &Uri, body: &[u8]) -> Digest {
    let mut asked = Vec::with_capacity(body.len() + 64);
    asked.extend_from_slice(uri.path().as_bytes());
    asked.push(0);
    asked.extend_from_slice(uri.query().unwrap_or_default().as_bytes());
    asked.push(0);
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => asked.extend_from_slice(&json::canonical(&value)),
        // Refused later with 400, which is never kept.
        Err(_) => asked.extend_from_slice(body),
    }
    Digest::of_bytes(asked)
}

fn mismatch() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        code::IDEMPOTENCY_KEY_MISMATCH,
        "This Idempotency-Key was used for a different request. Use a new key.",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_and_readable() {
        let read = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(KEY_HEADER, HeaderValue::from_bytes(value).unwrap());
            client_key(&headers).map(|key| key.map(str::to_owned))
        };
        assert_eq!(client_key(&HeaderMap::new()).unwrap(), None);
        assert_eq!(read(b"abc").unwrap().as_deref(), Some("abc"));
        assert!(read(&[b'a'; 255]).is_ok());
        for bad in [&[b'a'; 256][..], b"", b" ", b"\xff"] {
            assert_eq!(read(bad).unwrap_err().status, 400);
        }
    }

    #[test]
    fn the_digest_covers_path_query_and_meaning_of_the_body() {
        let digest = |uri: &str, body: &str| request_digest(&uri.parse().unwrap(), body.as_bytes());
        let base = digest("/v1/runs/a:pause?x=1", r#"{"a":1,"b":2}"#);
        assert_eq!(base, digest("/v1/runs/a:pause?x=1", r#"{ "b":2, "a":1.0 }"#));
        assert_ne!(base, digest("/v1/runs/b:pause?x=1", r#"{"a":1,"b":2}"#));
        assert_ne!(base, digest("/v1/runs/a:pause?x=2", r#"{"a":1,"b":2}"#));
        assert_ne!(base, digest("/v1/runs/a:pause?x=1", r#"{"a":1,"b":3}"#));
    }
}
