//! Server-sent events: which events a reader wants ([`mode`]), how they look on the wire ([`frame`]), and the loop that
//! follows a run's log ([`feed`]).

mod activity;
mod feed;
mod frame;
mod mode;
mod runner;

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use tokio::time::Instant;

use crate::quotas::OpenStream;

pub(crate) use activity::ActivityFeed;
pub(crate) use feed::{Feed, PAGE, PAGE_BYTES};
pub(crate) use frame::KEEPALIVE;
pub(crate) use mode::{Modes, buffer_ms};
pub(crate) use runner::RunnerFeed;

/// A reader that has heard nothing for this long is shown that the stream is open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long to wait before reading again where storage was not to be had.
const AGAIN: Duration = Duration::from_secs(1);

/// What is sent piece by piece, for as long as there is something to be said.
pub(crate) trait Pieces: Send + Sized + 'static {
    /// Waits for what comes next. `None` at the end; an error cuts the stream off.
    fn next(&mut self) -> impl Future<Output = Option<io::Result<Vec<u8>>>> + Send;

    /// When a sign of life is due.
    fn heartbeat_at(&mut self) -> &mut Instant;

    /// It counts as open until it ends or its reader goes.
    fn into_body(self, open: OpenStream) -> Body {
        Body::from_stream(futures_util::stream::unfold((self, open), |(mut pieces, open)| async move {
            let piece = pieces.next().await?;
            *pieces.heartbeat_at() = Instant::now() + HEARTBEAT;
            Some((piece.map(Bytes::from), (pieces, open)))
        }))
    }
}

pub(crate) fn stream_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Reverse proxies would otherwise hold frames back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
