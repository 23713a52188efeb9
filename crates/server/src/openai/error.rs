//! Refusals in OpenAI's shape. The codes are ours; each has its page.

use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use baton_model::code;
use serde_json::{Value, json};

use crate::error::{ApiError, Envelope};
use crate::reply::Reply;

/// The clients of OpenAI try again by themselves, unless they are told that it is of no use.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

#[derive(Debug)]
pub(crate) struct OpenAiError {
    error: ApiError,
    param: Option<String>,
}

impl OpenAiError {
    /// A parameter is wrong, or cannot be passed on.
    pub(crate) fn param(param: &str, problem: impl Into<String>) -> Self {
        Self { error: ApiError::invalid(problem.into()), param: Some(param.to_owned()) }
    }

    fn parts(self) -> (StatusCode, HeaderMap, Value) {
        let Envelope { status, mut headers, body } = self.error.into_envelope();
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        if matches!(body.error.as_str(), code::STEP_NOT_LEASED | code::BUDGET_EXCEEDED) {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        let error = json!({"message": body.message, "type": kind, "param": self.param, "code": body.error});
        (status, headers, json!({"error": error}))
    }

    /// As it is told where an answer has begun.
    pub(crate) fn into_body(self) -> Value {
        self.parts().2
    }
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        Self { error, param: None }
    }
}

impl From<baton_runtime::Error> for OpenAiError {
    fn from(error: baton_runtime::Error) -> Self {
        let param = (error.code == code::MODEL_NOT_FOUND).then(|| "model".to_owned());
        Self { error: error.into(), param }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let (status, headers, body) = self.parts();
        let mut response = Reply::json(status, &body).into_response();
        response.headers_mut().extend(headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_their_shape_and_our_code() {
        let (status, _, body) = OpenAiError::param("n", "`n` is 1.").parts();
        let told = json!({"error": {
            "message": "`n` is 1.", "type": "invalid_request_error", "param": "n", "code": "validation_error",
        }});
        assert_eq!((status.as_u16(), body), (400, told));
        let late = ApiError::new(StatusCode::CONFLICT, code::STEP_NOT_LEASED, "late");
        let (status, headers, body) = OpenAiError::from(late).parts();
        assert_eq!((status.as_u16(), &headers[SHOULD_RETRY]), (409, &HeaderValue::from_static("false")));
        assert_eq!(body["error"]["code"], "step_not_leased");
    }
}
