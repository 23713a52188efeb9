//! A JSON document that does not change while the process runs: written once, served from memory, revalidated by ETag.

use axum::http::header::{CACHE_CONTROL, ETAG, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_model::Digest;
use bytes::Bytes;
use serde_json::Value;

use crate::headers::has_etag;
use crate::reply::Reply;

pub(crate) struct Document {
    bytes: Bytes,
    etag: HeaderValue,
}

impl Document {
    pub(crate) fn new(value: &Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        let etag = etag(&Digest::of_bytes(&bytes));
        Self { bytes, etag }
    }

    pub(crate) fn respond(&self, headers: &HeaderMap) -> Response {
        let known = has_etag(headers, self.etag.to_str().unwrap_or_default());
        let reply = if known {
            Reply::new(StatusCode::NOT_MODIFIED, Bytes::new())
        } else {
            Reply::new(StatusCode::OK, self.bytes.clone())
        };
        reply
            .header(ETAG, self.etag.clone())
            .header(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"))
            .into_response()
    }
}

/// A strong entity tag for content with this digest.
pub(crate) fn etag(digest: &Digest) -> HeaderValue {
    // Hexadecimal digits in quotes are always a valid header value.
    HeaderValue::try_from(format!("\"{digest}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use axum::http::header::IF_NONE_MATCH;

    #[test]
    fn a_matching_etag_gives_304_and_another_the_document() {
        let document = Document::new(&serde_json::json!({"a": 1}));
        let first = document.respond(&HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert!(first.headers().contains_key(CACHE_CONTROL));
        let etag = first.headers()[ETAG].clone();
        let again = |value: HeaderValue| document.respond(&HeaderMap::from_iter([(IF_NONE_MATCH, value)])).status();
        assert_eq!(again(etag), StatusCode::NOT_MODIFIED);
        assert_eq!(again("\"old\"".parse().unwrap()), StatusCode::OK);
    }
}
