//! A finished answer as plain bytes, so that it can be sent, shared between equal requests, and stored.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

use crate::error::{ApiError, Envelope};

pub(crate) const APPLICATION_JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Clone, Debug)]
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// Already stored under its idempotency key, together with the effect it reports.
    stored: bool,
}

/// A reply in the form in which it is stored with its effect. For bodies of strings and numbers, which always serialise.
pub(crate) fn rendered(status: StatusCode, body: &impl Serialize) -> (u16, String) {
    (status.as_u16(), serde_json::to_string(body).unwrap_or_default())
}

impl Reply {
    pub(crate) fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let mut headers = HeaderMap::new();
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, APPLICATION_JSON);
        }
        Self { status, headers, body, stored: false }
    }

    pub fn json(status: StatusCode, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::new(status, body),
            Err(error) => {
                tracing::error!(%error, "a response did not serialise");
                ApiError::internal("The response could not be written.").into_reply()
            }
        }
    }

    pub fn ok(value: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, value)
    }

    pub(crate) fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, Bytes::new())
    }

    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// It may hold a credential, such as the link to an open question: nobody on the way keeps it.
    #[must_use]
    pub(crate) fn unkept(self) -> Self {
        self.header(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    #[must_use]
    pub(crate) fn already_stored(mut self) -> Self {
        self.stored = true;
        self
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.stored
    }

    /// Whether sending the request again could only give this answer: success, or a refusal that is neither about the
    /// request's form or credential (which the caller will correct) nor temporary.
    pub(crate) fn is_final(&self) -> bool {
        let correctable = matches!(self.status.as_u16(), 400 | 401 | 403 | 408 | 413 | 429);
        let refused = self.status.is_client_error() && !correctable && !self.headers.contains_key(RETRY_AFTER);
        self.status.is_success() || refused
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    #[cfg(test)]
    pub(crate) fn header_text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl ApiError {
    pub(crate) fn into_reply(self) -> Reply {
        let Envelope { status, headers, body } = self.into_envelope();
        let mut reply = Reply::json(status, &body);
        reply.headers.extend(headers);
        reply
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.into_reply().into_response()
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_final_answers_may_be_kept() {
        let is_final = |status: u16| Reply::new(StatusCode::from_u16(status).unwrap(), "{}").is_final();
        for kept in [200, 201, 202, 204, 404, 409, 410, 422] {
            assert!(is_final(kept), "{kept}");
        }
        for dropped in [400, 401, 403, 408, 413, 429, 500, 501, 502, 503, 504] {
            assert!(!is_final(dropped), "{dropped}");
        }
        let later = Reply::new(StatusCode::CONFLICT, "{}").header(RETRY_AFTER, 1.into());
        assert!(!later.is_final());
    }

    #[test]
    fn an_empty_reply_has_no_content_type() {
        assert!(Reply::no_content().into_response().headers().is_empty());
        assert_eq!(Reply::ok(&1).header_text(&CONTENT_TYPE), Some("application/json"));
    }
}
