//! Reading headers that anybody may have filled with anything.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH};

/// A header as text; `None` when absent, `Some(Err)` when it is not readable ASCII.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<Result<&'a str, ()>> {
    headers.get(name).map(|value| value.to_str().map(str::trim).map_err(|_| ()))
}

/// What a reader of `/events` asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventsAs {
    Stream,
    Json,
}

/// JSON only for a client that names `application/json` and does not name `text/event-stream`: browsers and `curl`
/// send wildcards, and for them this address is a stream.
pub(crate) fn events_as(headers: &HeaderMap) -> EventsAs {
    let (mut json, mut stream) = (false, false);
    for value in headers.get_all(ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let refused = parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
            json |= media.eq_ignore_ascii_case("application/json") && !refused;
            stream |= media.eq_ignore_ascii_case("text/event-stream") && !refused;
        }
    }
    if json && !stream { EventsAs::Json } else { EventsAs::Stream }
}

/// Whether the caller already has the representation named by `etag`.
pub(crate) fn has_etag(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|candidate| candidate == "*" || candidate.strip_prefix("W/").unwrap_or(candidate) == etag)
}

/// Whether the caller reads a body that is packed.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"))
            && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn with(name: axum::http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn json_is_chosen_only_when_it_is_named_and_a_stream_is_not() {
        let cases: [(&[&str], EventsAs); 9] = [
            (&[], EventsAs::Stream),
            (&["*/*"], EventsAs::Stream),
            (&["application/json"], EventsAs::Json),
            (&["Application/JSON; charset=utf-8, */*;q=0.1"], EventsAs::Json),
            (&["text/event-stream"], EventsAs::Stream),
            (&["application/json, text/event-stream"], EventsAs::Stream),
            (&["application/json", "text/event-stream"], EventsAs::Stream),
            (&["application/json, text/event-stream;q=0"], EventsAs::Json),
            (&["text/html"], EventsAs::Stream),
        ];
        for (accept, expected) in cases {
            assert_eq!(events_as(&with(ACCEPT, accept)), expected, "{accept:?}");
        }
    }

    #[test]
    fn etags_match_by_list_star_and_weak_form() {
        let etag = "\"abc\"";
        for yes in ["\"abc\"", "\"x\", \"abc\"", "*", "W/\"abc\""] {
            assert!(has_etag(&with(IF_NONE_MATCH, &[yes]), etag), "{yes}");
        }
        for no in ["\"abcd\"", "abc", ""] {
            assert!(!has_etag(&with(IF_NONE_MATCH, &[no]), etag), "{no}");
        }
    }

    #[test]
    fn gzip_is_sent_to_whoever_takes_it() {
        let takes = |value: &str| takes_gzip(&with(ACCEPT_ENCODING, &[value]));
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate,gzip, br"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("xgzip") && !takes_gzip(&HeaderMap::new()));
    }
}
