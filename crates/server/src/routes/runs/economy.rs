//! Reading a run again and again for little: a validator that says whether anything changed, and a body that is packed
//! for whoever takes it so.

use std::io::Write as _;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, VARY};
use axum::response::{IntoResponse as _, Response};
use baton_model::{Digest, RunSnapshot, Timestamp, mask_shapes_in_json};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::ApiError;
use crate::headers::{has_etag, takes_gzip};
use crate::reply::Reply;

/// What discovery lists; see [`answer`].
pub(crate) const ENCODINGS: [&str; 1] = ["gzip"];
/// Links in a view expire. One that was shown this long ago is shown anew, well before it does.
const LINKS_SHOWN_MS: i64 = 10 * 60 * 1000;

pub(super) fn answer(snapshot: &RunSnapshot, headers: &HeaderMap, now: Timestamp) -> Result<Response, ApiError> {
    let written = serde_json::to_vec(snapshot).map_err(|_| ApiError::internal("The run could not be written."))?;
    // Before it is packed: nobody can mask it after that.
    let body = mask_shapes_in_json(&written).unwrap_or(written);
    let plain = validator(snapshot, &body, now);
    // A validator names bytes, and packed ones are others.
    let packed = format!("{plain}-gzip");
    let pack = takes_gzip(headers);
    let tag = format!("\"{}\"", if pack { &packed } else { &plain });
    let known = [&plain, &packed].iter().any(|tag| has_etag(headers, &format!("\"{tag}\"")));
    let reply = match (known, pack) {
        (true, _) => Reply::new(StatusCode::NOT_MODIFIED, Bytes::new()),
        (false, false) => Reply::new(StatusCode::OK, body),
        (false, true) => {
            let packed = gzip(&body).ok_or_else(|| ApiError::internal("The run could not be packed."))?;
            Reply::new(StatusCode::OK, packed).header(CONTENT_ENCODING, HeaderValue::from_static(ENCODINGS[0]))
        }
    };
    let tag = HeaderValue::try_from(tag).map_err(|_| ApiError::internal("The run could not be written."))?;
    let vary = HeaderValue::from_static("Accept-Encoding, Authorization");
    Ok(reply.header(ETAG, tag).header(VARY, vary).unkept().into_response())
}

/// The sequence, and a digest of everything else that is shown: children, budgets and retention change without it. Links
/// are signed anew each time and do not count, but for how old they are.
fn validator(snapshot: &RunSnapshot, body: &[u8], now: Timestamp) -> String {
    let mut without = None;
    let linked = snapshot.interrupt.as_ref().is_some_and(|open| open.interrupt_token.is_some());
    if linked {
        let mut bare = snapshot.clone();
        if let Some(open) = &mut bare.interrupt {
            (open.interrupt_token, open.callback_url) = (None, None);
        }
        let shown = now.as_micros() / (LINKS_SHOWN_MS * 1000);
        without = serde_json::to_vec(&(bare, shown)).ok();
    }
    let digest = Digest::of_bytes(without.as_deref().unwrap_or(body));
    let digest = digest.as_str();
    format!("{}-{}", snapshot.at_seq, digest.get(..24).unwrap_or(digest))
}

fn gzip(plain: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::fast());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()
}
