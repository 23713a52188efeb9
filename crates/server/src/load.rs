//! A ceiling on work in progress. Above it callers are told when to come back instead of queueing without end.
//! Discovery and health are mounted outside: they must answer exactly when the host is busiest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::Error;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::app::App;
use crate::auth;
use crate::quotas::InProgress;

/// What is smaller is not counted among the bytes that wait for a reader: it is what every request takes.
const SMALL: usize = 16 * 1024;

pub(crate) async fn shed(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let whose = auth::identify(&app, &mut request);
    let mut in_progress = match app.quotas.enter(whose) {
        Ok(in_progress) => in_progress,
        Err(refusal) => return refusal.into_response(),
    };
    let response = next.run(request).await;
    let whole = response.body().size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if let Some(size) = whole.filter(|size| *size > SMALL)
        && let Err(refusal) = in_progress.hold(size)
    {
        return refusal.into_response();
    }
    // An answer is work in progress until its last byte.
    response.map(|body| Body::new(Held { body, in_progress: Some(in_progress), whole: whole.is_some() }))
}

/// An answer that keeps its place until it is sent.
struct Held {
    body: Body,
    in_progress: Option<InProgress>,
    /// All of it lies in memory until then; otherwise only the piece that was handed over last.
    whole: bool,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let size = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => {
                self.in_progress = None;
                return Poll::Ready(frame);
            }
        };
        let counted = if size > SMALL { size } else { 0 };
        let whole = self.whole;
        if let Some(in_progress) = self.in_progress.as_mut().filter(|_| !whole)
            && in_progress.hold(counted).is_err()
        {
            // The status line is long gone. A reader of events resumes from its cursor.
            self.in_progress = None;
            return Poll::Ready(Some(Err(Error::new(io::Error::other("too much waits for this tenant's readers")))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
