//! An answer on its way out. It keeps its request open until the last piece is taken, and notes when a piece was.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use super::place::{OpenRequest, millis};

/// The most that is handed over at once. What was handed over is held until the client has taken it, so a large answer
/// goes in pieces: until its last one is taken it is work in progress, and counts as such.
const PIECE: usize = 64 * 1024;

/// The answer is not waiting for its client.
const NOT_WAITING: u64 = u64::MAX;

/// Since when the client has to take something before the answer can go on.
#[derive(Debug)]
pub(super) struct Taken {
    epoch: Instant,
    since: AtomicU64,
}

impl Taken {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { epoch: Instant::now(), since: AtomicU64::new(NOT_WAITING) })
    }

    fn wait(&self) {
        self.since.store(millis(self.epoch.elapsed()), Ordering::Release);
    }

    fn go_on(&self) {
        self.since.store(NOT_WAITING, Ordering::Release);
    }

    /// How long the client has taken nothing.
    pub(super) fn waiting_for(&self) -> Duration {
        match self.since.load(Ordering::Acquire) {
            NOT_WAITING => Duration::ZERO,
            since => self.epoch.elapsed().saturating_sub(Duration::from_millis(since)),
        }
    }
}

pub(super) struct Sent {
    body: Body,
    rest: Bytes,
    taken: Arc<Taken>,
    _open: OpenRequest,
}

impl Sent {
    pub(super) fn new(body: Body, open: OpenRequest, taken: Arc<Taken>) -> Self {
        // The client decides when the first piece is asked for.
        taken.wait();
        Self { body, rest: Bytes::new(), taken, _open: open }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        self.taken.wait();
        Frame::data(self.rest.split_to(self.rest.len().min(PIECE)))
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        self.taken.go_on();
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    Poll::Ready(Some(Ok(self.piece())))
                }
                Err(trailers) => Poll::Ready(Some(Ok(trailers))),
            },
            end => Poll::Ready(end),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}
