//! What leaves the host shows no text that looks like a credential, whoever put it there.
//!
//! This is the last thing that happens to an answer, so no route can forget it. Routes that hand out what somebody put
//! there to get it back (files, memory, definitions, exports) say so and stay as they are; their refusals do not. The
//! log itself is never changed, nor is anything that is computed from it.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use baton_model::mask_shapes_in_json;
use bytes::Bytes;
use futures_util::TryStreamExt as _;

/// Set on the answers of routes that give back what was put there.
#[derive(Clone, Copy)]
pub(crate) struct Verbatim;

pub(crate) async fn verbatim(mut response: Response) -> Response {
    response.extensions_mut().insert(Verbatim);
    response
}

pub(crate) async fn shapes(response: Response) -> Response {
    let as_it_is = response.status().is_success() && response.extensions().get::<Verbatim>().is_some();
    // What is packed was masked before.
    if as_it_is || response.headers().contains_key(CONTENT_ENCODING) || !is_view(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    if body.size_hint().exact().is_none() {
        // Every piece of a stream holds whole events: no word goes from one to the next.
        let pieces = body.into_data_stream().map_ok(|piece| mask_shapes_in_json(&piece).map_or(piece, Bytes::from));
        return Response::from_parts(parts, Body::from_stream(pieces));
    }
    // It lies in memory already; nothing is waited for.
    let Ok(whole) = to_bytes(body, usize::MAX).await else { return Response::from_parts(parts, Body::empty()) };
    let body = match mask_shapes_in_json(&whole) {
        Some(masked) => {
            parts.headers.remove(CONTENT_LENGTH);
            Body::from(masked)
        }
        None => Body::from(whole),
    };
    Response::from_parts(parts, body)
}

/// JSON, and streams of it. Pages and pictures are ours.
fn is_view(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("application/json") || kind.starts_with("text/event-stream")
}
