//! What went wrong, in our own words. A vendor's message may repeat the prompt, and that of a self-hosted one may tell
//! where it is, so only words from the list below are ever handed on.

use serde_json::Value;

use crate::ProviderFault;

/// The vendors' own words for what is wrong.
const KNOWN: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
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
    let told = |why: &str| format!("{why} ({said})");
    let fault = match status {
        429 if word == Some("insufficient_quota") => return (ProviderFault::Exhausted, Again::Never),
        429 => return (ProviderFault::Exhausted, Again::Soon),
        500.. => return (ProviderFault::Unavailable(format!("it answered {said}")), Again::Soon),
        402 => ProviderFault::Exhausted,
        408 => ProviderFault::TimedOut,
        300..=399 => ProviderFault::Unusable(told("it points elsewhere; set its base URL to where it really is")),
        401 | 403 => ProviderFault::Unusable(told("its API key is missing, wrong, or not allowed to do this")),
        404 => ProviderFault::UnknownModel(told("it does not know this model, or its base URL is wrong")),
        413 => ProviderFault::TooLong(told("it does not take so much at once")),
        _ if word == Some("model_not_found") => ProviderFault::UnknownModel(told("it does not know this model")),
        _ if is_too_long(word, body) => {
            ProviderFault::TooLong(told("the conversation is longer than this model reads"))
        }
        _ => ProviderFault::Rejected(told("it finds the request invalid")),
    };
    (fault, Again::Never)
}

/// Whether a request was refused for its length. Some have a word for it, some only say so; what they say is read here
/// and not repeated.
fn is_too_long(word: Option<&str>, body: &Value) -> bool {
    const WORDS: &[&str] =
        &["context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length"];
    const SAYINGS: &[&str] = &[
        "prompt is too long",
        "maximum context length",
        "exceeds the maximum number of tokens",
        "exceed context limit",
        "exceeds the available context size",
    ];
    let message = error(body).and_then(|error| error.get("message")).and_then(Value::as_str);
    let message = message.unwrap_or_default().to_ascii_lowercase();
    word.is_some_and(|word| WORDS.contains(&word)) || SAYINGS.iter().any(|saying| message.contains(saying))
}

/// What an error in the middle of an answer means.
pub(crate) fn in_answer(body: &Value) -> ProviderFault {
    let word = word(body);
    if is_too_long(word, body) {
        return ProviderFault::TooLong("the conversation is longer than this model reads".to_owned());
    }
    match word {
        Some("rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" | "insufficient_quota") => {
            ProviderFault::Exhausted
        }
        Some("timeout_error" | "DEADLINE_EXCEEDED") => ProviderFault::TimedOut,
        Some(word @ ("model_not_found" | "not_found_error" | "NOT_FOUND")) => {
            ProviderFault::UnknownModel(format!("it does not know this model ({word})"))
        }
        Some(
            word @ ("authentication_error"
            | "permission_error"
            | "invalid_api_key"
            | "UNAUTHENTICATED"
            | "PERMISSION_DENIED"),
        ) => ProviderFault::Unusable(format!("its API key is missing, wrong, or not allowed to do this ({word})")),
        Some(word @ ("invalid_request_error" | "INVALID_ARGUMENT")) => {
            ProviderFault::Rejected(format!("it finds the request invalid ({word})"))
        }
        Some(word) => ProviderFault::Unavailable(format!("it reported {word} instead of an answer")),
        None => ProviderFault::Unavailable("it reported an error instead of an answer".to_owned()),
    }
}

fn error(body: &Value) -> Option<&Value> {
    body.get("error").or_else(|| body.get(0)?.get("error"))
}

/// The most telling word of the list that the error has.
fn word(body: &Value) -> Option<&'static str> {
    let error = error(body)?;
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
    fn each_trouble_has_its_own_kind() {
        let says = |message: &str| json!({"error": {"type": "invalid_request_error", "message": message}});
        type Kind = fn(String) -> ProviderFault;
        let kinds: [(u16, Value, Kind); 14] = [
            (301, Value::Null, ProviderFault::Unusable),
            (401, Value::Null, ProviderFault::Unusable),
            (403, json!({"error": {"status": "PERMISSION_DENIED"}}), ProviderFault::Unusable),
            (404, Value::Null, ProviderFault::UnknownModel),
            (404, json!({"error": {"code": "model_not_found"}}), ProviderFault::UnknownModel),
            (400, json!({"error": {"code": "model_not_found"}}), ProviderFault::UnknownModel),
            (413, Value::Null, ProviderFault::TooLong),
            (400, json!({"error": {"code": "context_length_exceeded"}}), ProviderFault::TooLong),
            (400, says("prompt is too long: 210000 tokens > 200000 maximum"), ProviderFault::TooLong),
            (400, says("This model's maximum context length is 4096 tokens."), ProviderFault::TooLong),
            (
                400,
                json!([{"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}]),
                ProviderFault::TooLong,
            ),
            (400, says("No."), ProviderFault::Rejected),
            (422, Value::Null, ProviderFault::Rejected),
            (500, says("prompt is too long"), ProviderFault::Unavailable),
        ];
        for (code, body, kind) in kinds {
            let (fault, _) = status(code, &body);
            assert_eq!(
                std::mem::discriminant(&fault),
                std::mem::discriminant(&kind(String::new())),
                "{code} {body}: {fault}"
            );
            assert!(!fault.to_string().contains("210000"), "{fault}");
        }
        assert_eq!(status(500, &Value::Null).0.to_string(), "the provider failed: it answered 500");
        assert_eq!(in_answer(&says("Prompt is too long")).outcome(), "rejected");
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
