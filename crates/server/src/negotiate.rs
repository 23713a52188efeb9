//! Which version of the protocol a request is in. The path says it; a client that asks for another by header is told so
//! before anything is done, instead of getting an answer that it reads wrongly.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HeaderValue;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use baton_model::code;
use serde_json::json;

use crate::error::ApiError;
use crate::headers;

pub(crate) const PROTOCOL_VERSION: &str = "1.0";
const HEADER: &str = "openwop-version";

/// Refuses what this host does not speak, and says on every answer what it speaks.
pub(crate) async fn version(request: Request, next: Next) -> Response {
    let mut response = match headers::text(request.headers(), HEADER) {
        Some(wanted) if !wanted.is_ok_and(is_served) => unsupported().into_response(),
        _ => next.run(request).await,
    };
    response.headers_mut().insert(HEADER, HeaderValue::from_static(PROTOCOL_VERSION));
    response
}

/// The major decides. A minor only ever adds.
fn is_served(wanted: &str) -> bool {
    let served = PROTOCOL_VERSION.split('.').next().unwrap_or_default();
    let mut numbers = wanted.split('.');
    let major = numbers.next().unwrap_or_default();
    major == served && numbers.all(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn unsupported() -> ApiError {
    let message =
        format!("This host does not speak that version. Leave OpenWOP-Version out, or send {PROTOCOL_VERSION}.");
    ApiError::new(StatusCode::NOT_ACCEPTABLE, code::PROTOCOL_VERSION_UNSUPPORTED, message)
        .with("protocolVersions", json!([PROTOCOL_VERSION]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_decides() {
        for served in ["1", "1.0", "1.1", "1.12.3"] {
            assert!(is_served(served), "{served}");
        }
        for foreign in ["2", "2.0", "10", "0.9", "", "v1", "1.", "1.x", "1,2"] {
            assert!(!is_served(foreign), "{foreign}");
        }
    }
}
