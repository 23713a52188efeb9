//! What went wrong, in our own words. A vendor's message may repeat the prompt, and that of a self-hosted one may tell
//! where it is, so only words from the list below are ever handed on.

use serde_json::Value;

use crate::ProviderFault;

/// The vendors' own words for what is wrong.
const KNOWN: &[&str] = &[
    "context_length_exceeded",
    "insufficient_quota",
    "invalid_api_key",
    "model_not_found",
    "rate_limit_exceeded",
    "string_above_max_length",
    "unsupported_parameter",
    "unsupported_value",
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "rate_limit_error",
    "timeout_error",
    "api_error",
    "server_error",
    "overloaded_error",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "NOT_FOUND",
    "RESOURCE_EXHAUSTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
];

/// Whether it helps to ask again, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    Never,
    Soon,
}

/// What an answer with this status means.
pub(crate) fn status(status: u16, body: &Value) -> (ProviderFault, Again) {
    let word = word(body);
    let said = match word {
        Some(word) => format!("{status}, {word}"),
        None => status.to_string(),
    };
    let rejected = |why: &str| (ProviderFault::Rejected(format!("{why} ({said})")), Again::Never);
    match status {
        429 if word == Some("insufficient_quota") => (ProviderFault::Exhausted, Again::Never),
        429 => (ProviderFault::Exhausted, Again::Soon),
        402 => (ProviderFault::Exhausted, Again::Never),
        408 => (ProviderFault::TimedOut, Again::Never),
        500.. => (ProviderFault::Unavailable(format!("it answered {said}")), Again::Soon),
        300..=399 => rejected("it points elsewhere; set its base URL to where it really is"),
        401 | 403 => rejected("the provider's API key is missing, wrong, or not allowed to do this"),
        404 => rejected("it does not know this model, or its base URL is wrong"),
        413 => rejected("the request is too large"),
        _ if word == Some("context_length_exceeded") => rejected("the conversation is longer than this model reads"),
        _ => rejected("it finds the request invalid"),
    }
}

/// What an error in the middle of an answer means.
pub(crate) fn in_answer(body: &Value) -> ProviderFault {
    match word(body) {
        Some("rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" | "insufficient_quota") => {
            ProviderFault::Exhausted
        }
        Some("timeout_error" | "DEADLINE_EXCEEDED") => ProviderFault::TimedOut,
        Some(word @ ("invalid_request_error" | "INVALID_ARGUMENT" | "context_length_exceeded")) => {
            ProviderFault::Rejected(format!("it finds the request invalid ({word})"))
        }
        Some(word) => ProviderFault::Unavailable(format!("it reported {word} instead of an answer")),
        None => ProviderFault::Unavailable("it reported an error instead of an answer".to_owned()),
    }
}

/// The most telling word of the list that the error has.
fn word(body: &Value) -> Option<&'static str> {
    let error = body.get("error").or_else(|| body.get(0)?.get("error"))?;
    let said = ["code", "type", "status"].map(|field| error.get(field).and_then(Value::as_str));
    let known = |text: &str| KNOWN.iter().copied().find(|word| *word == text);
    said.into_iter().flatten().find_map(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_known_words_are_handed_on() {
        let body = json!({"error": {"code": "http://10.0.0.7:8000/v1 said no", "type": "invalid_request_error",
            "message": "your prompt: the secret plan"}});
        let (fault, again) = status(400, &body);
        assert_eq!(fault, ProviderFault::Rejected("it finds the request invalid (400, invalid_request_error)".into()));
        assert_eq!(again, Again::Never);
        assert!(!in_answer(&body).to_string().contains("10.0.0.7"));
    }

    #[test]
    fn who_may_be_asked_again() {
        let again = |code: u16| status(code, &Value::Null).1;
        for code in [429, 500, 502, 503, 504, 529] {
            assert_eq!(again(code), Again::Soon, "{code}");
        }
        for code in [301, 400, 401, 402, 403, 404, 408, 409, 413, 422] {
            assert_eq!(again(code), Again::Never, "{code}");
        }
        assert_eq!(status(429, &json!({"error": {"code": "insufficient_quota"}})).1, Again::Never);
        assert_eq!(status(404, &json!([{"error": {"status": "NOT_FOUND"}}])).0.outcome(), "rejected");
    }
}
