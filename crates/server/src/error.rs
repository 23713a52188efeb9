//! The one place where a failure becomes a status and an envelope.
//!
//! The envelope is closed: `{error, message, details?}`. What the client may know goes there; the source chain goes to
//! the log together with the correlation id the client was given.

use std::borrow::Cow;
use std::error::Error as StdError;

use axum::http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode};
use baton_api::ErrorBody;
use baton_model::{Scope, Secret, code, redact};
use baton_runtime::ErrorKind;
use serde_json::{Map, Value};

#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub(crate) message: Cow<'static, str>,
    pub(crate) details: Map<String, Value>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// A failure as the client sees it.
pub(crate) struct Envelope {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ErrorBody,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), details: Map::new(), header: None, source: None }
    }

    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::VALIDATION_ERROR, message)
    }

    /// A mistake at one place of the body.
    pub fn at(pointer: &str, problem: &str) -> Self {
        Self::invalid(format!("{pointer} {problem}.")).with("pointer", pointer)
    }

    pub(crate) fn unauthenticated(message: &'static str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code::UNAUTHENTICATED, message)
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(crate) fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code::FORBIDDEN, message)
    }

    pub(crate) fn scope_required(scope: Scope) -> Self {
        Self::forbidden(format!("This key lacks the scope `{scope}`.")).with("scopeRequired", scope.as_str())
    }

    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code::NOT_FOUND, message)
    }

    /// Without `allow` the router fills in what the path supports.
    pub(crate) fn method_not_allowed(method: &Method, allow: Option<&'static str>) -> Self {
        let error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            code::METHOD_NOT_ALLOWED,
            format!("{method} is not supported here. The Allow header lists what is."),
        );
        match allow {
            Some(methods) => error.header(ALLOW, HeaderValue::from_static(methods)),
            None => error,
        }
    }

    pub(crate) fn payload_too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            code::PAYLOAD_TOO_LARGE,
            format!("The request body is larger than {limit} bytes."),
        )
        .with("maxBytes", limit)
    }

    pub fn not_provided(message: impl Into<Cow<'static, str>>, capability: &'static str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, code::CAPABILITY_NOT_PROVIDED, message)
            .with("requiredCapability", capability)
    }

    pub(crate) fn busy(retry_after_seconds: u64) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            code::SERVICE_UNAVAILABLE,
            "The host is at capacity. Try again after the time given.",
        )
        .with("retryAfter", retry_after_seconds)
    }

    pub fn internal(message: &'static str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, message)
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// The same without the operator's secrets: a parser quotes what it did not understand.
    #[must_use]
    pub fn without(mut self, secrets: &[Secret]) -> Self {
        self.message = redact(&self.message, secrets).into();
        for value in self.details.values_mut() {
            if let Value::String(text) = value {
                *text = redact(text, secrets);
            }
        }
        self
    }

    /// What is sent of it. A server fault is logged here, once, under the id the client gets.
    pub(crate) fn into_envelope(mut self) -> Envelope {
        if self.status == StatusCode::SERVICE_UNAVAILABLE && !self.details.contains_key("retryAfter") {
            self.details.insert("retryAfter".to_owned(), 1.into());
        }
        if matches!(self.status, StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE) {
            let id = uuid::Uuid::now_v7().simple().to_string();
            self.log(&id);
            self.details.insert("correlationId".to_owned(), id.into());
        }
        let retry_after = self.details.get("retryAfter").and_then(Value::as_u64);
        let mut headers = HeaderMap::new();
        headers.extend(retry_after.map(|seconds| (RETRY_AFTER, seconds.into())));
        headers.extend(self.header.map(|header| *header));
        let body = ErrorBody { error: self.code.to_owned(), message: self.message.into_owned(), details: self.details };
        Envelope { status: self.status, headers, body }
    }

    fn log(&self, correlation_id: &str) {
        let mut chain = String::new();
        let mut next: Option<&(dyn StdError + 'static)> = self.source.as_deref().map(|error| error as _);
        while let Some(error) = next {
            if !chain.is_empty() {
                chain.push_str(": ");
            }
            chain.push_str(&error.to_string());
            next = error.source();
        }
        let (status, code, message) = (self.status.as_u16(), self.code, &*self.message);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            tracing::warn!(correlation_id, status, code, cause = chain, "{message}");
        } else {
            tracing::error!(correlation_id, status, code, cause = chain, "{message}");
        }
    }
}

/// What each kind of refusal means in HTTP.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<baton_runtime::Error> for ApiError {
    fn from(error: baton_runtime::Error) -> Self {
        Self {
            status: status_of(error.kind),
            code: error.code,
            message: error.message.into(),
            details: error.details,
            header: None,
            source: error.source,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    fn body(reply: &Reply) -> Value {
        serde_json::from_slice(reply.body()).unwrap()
    }

    #[test]
    fn every_kind_has_its_status() {
        let table = [
            (ErrorKind::Invalid, 400),
            (ErrorKind::Forbidden, 403),
            (ErrorKind::NotFound, 404),
            (ErrorKind::Conflict, 409),
            (ErrorKind::Gone, 410),
            (ErrorKind::TooLarge, 413),
            (ErrorKind::TooMany, 429),
            (ErrorKind::Unprocessable, 422),
            (ErrorKind::Unavailable, 503),
            (ErrorKind::Internal, 500),
        ];
        for (kind, status) in table {
            let error = ApiError::from(baton_runtime::Error::new(kind, "some_code", "text").with("a", 1));
            assert_eq!(error.status.as_u16(), status, "{kind:?}");
            let body = body(&error.into_reply());
            assert_eq!((&body["error"], &body["message"]), (&"some_code".into(), &"text".into()));
            assert_eq!(body["details"]["a"], 1);
        }
    }

    #[test]
    fn the_envelope_is_closed_and_details_are_left_out_when_empty() {
        let reply = ApiError::not_found("No such thing.").into_reply();
        let body = body(&reply);
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["error", "message"]);
    }

    #[test]
    fn server_faults_carry_a_correlation_id_and_hide_their_cause() {
        let cause = std::io::Error::other("disk on fire");
        let error = baton_runtime::Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "Broken.").because(cause);
        let reply = ApiError::from(error).into_reply();
        let body = body(&reply);
        assert!(!body["details"]["correlationId"].as_str().unwrap().is_empty());
        assert!(!body.to_string().contains("disk on fire"));
    }

    #[test]
    fn a_secret_in_a_refusal_is_replaced_by_its_name() {
        let secrets = [Secret::new("key", "sk-live-123456")];
        let error = ApiError::invalid("Not `sk-live-123456`.").with("pointer", "/sk-live-123456").with("line", 1);
        let reply = error.without(&secrets).into_reply();
        assert_eq!(body(&reply)["message"], "Not `[REDACTED:key]`.");
        assert_eq!(body(&reply)["details"], serde_json::json!({"pointer": "/[REDACTED:key]", "line": 1}));
    }

    #[test]
    fn unavailable_names_the_same_delay_twice() {
        for error in [ApiError::busy(2), baton_runtime::Error::new(ErrorKind::Unavailable, "x", "y").into()] {
            let reply = error.into_reply();
            let body = body(&reply);
            let header = reply.header_text(&RETRY_AFTER).unwrap();
            assert_eq!(header, body["details"]["retryAfter"].to_string());
        }
    }

    #[test]
    fn refusals_of_a_credential_say_how_to_present_one() {
        let reply = ApiError::unauthenticated("Send a key.").into_reply();
        assert_eq!(reply.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(reply.header_text(&WWW_AUTHENTICATE).unwrap(), "Bearer");
        let scoped = body(&ApiError::scope_required(Scope::RunsRead).into_reply());
        assert_eq!(scoped["details"]["scopeRequired"], "runs:read");
    }
}
