//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::io::WatchedIo;
use super::limits::ConnectionLimits;
use super::place::{Place, Why};
use super::reserve;
use super::sent::{Sent, Taken};
use super::stream_tasks::StreamTasks;
use super::table::Admitted;
use crate::Entrance;

/// The longest header, and what is read ahead of or written before a client that does not keep up.
const BUFFER: usize = 128 * 1024;
/// The same for HTTP/2: a header, one request's body, and all bodies of a connection.
const HEADER_LIST: u32 = 64 * 1024;
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
const SEND_BUFFER: usize = 64 * 1024;
/// Requests that a client may take back before they were begun, and those refused for a mistake, until it is cut off.
const TAKEN_BACK: usize = 20;
const MISTAKEN: usize = 128;
/// How often a client on HTTP/2 is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(20);

/// How long a client has to take leave once there is nothing in progress and it was told to.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) async fn drive(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    admitted: Admitted,
    entrance: Entrance,
    limits: ConnectionLimits,
    cut: CancellationToken,
) {
    let place = &admitted.place;
    let over = CancellationToken::new();
    let _ends_tasks = over.clone().drop_guard();
    let tasks = StreamTasks::new(limits.write, over);
    let service = Answering { entrance: entrance.clone(), place: Arc::clone(place), tasks: tasks.clone() };
    let builder = builder(tasks, &limits);
    let io = TokioIo::new(WatchedIo { socket, place: Arc::clone(place) });
    let mut connection = pin!(builder.serve_connection(io, service));
    let told = tokio::select! {
        biased;
        ended = connection.as_mut() => return note(ended),
        () = cut.cancelled() => return,
        why = place.closed() => Some(why),
        () = entrance.shutdown().cancelled() => None,
    };
    tracing::debug!(why = told.map_or("shutdown", Why::as_str), "a connection is closed");
    if told.is_some_and(|why| why != Why::Idle) {
        return;
    }
    connection.as_mut().graceful_shutdown();
    let long_enough = async {
        match told {
            // A request may have come just then. It has the time of any that nobody reads the answer of.
            Some(_) => drop(tokio::time::timeout(limits.write, place.over_with(LAST_WORDS)).await),
            // What is in progress may be finished while the host stops, by a client that does its part.
            None => tokio::select! {
                _ = place.closed() => {}
                () = place.over_with(LAST_WORDS) => {}
            },
        }
    };
    tokio::select! {
        biased;
        ended = connection.as_mut() => note(ended),
        () = cut.cancelled() => {}
        () = long_enough => {}
    }
}

fn note(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// One request at a time on HTTP/1, and a bounded number on HTTP/2. Deadlines are not set here: there is one place for
/// them, which knows of both.
fn builder(tasks: StreamTasks, limits: &ConnectionLimits) -> Builder<StreamTasks> {
    let mut builder = Builder::new(tasks);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams.max(1))
        .max_header_list_size(HEADER_LIST)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(TAKEN_BACK)
        .max_local_error_reset_streams(MISTAKEN)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN);
    builder
}

struct Answering {
    entrance: Entrance,
    place: Arc<Place>,
    tasks: StreamTasks,
}

impl Service<Request<Incoming>> for Answering {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let http2 = request.version() == Version::HTTP_2;
        let open = self.place.begin(http2);
        let taken = Taken::new();
        if http2 {
            self.tasks.begin(&taken);
        }
        if self.place.in_reserve && !reserve::may_ask(request.method(), request.uri().path()) {
            let refusal = if http2 { reserve::refusal() } else { reserve::last(reserve::refusal()) };
            return Box::pin(async move { Ok(refusal.map(|body| Body::new(Sent::new(body, open, taken)))) });
        }
        // HTTP/2 has no such header; there the connection is one of those that make room as soon as they are quiet.
        let is_last = self.place.in_reserve && !http2;
        let answer = self.entrance.clone().call(request.map(Body::new));
        Box::pin(async move {
            let response = answer.await?;
            let response = if is_last { reserve::last(response) } else { response };
            Ok(response.map(|body| Body::new(Sent::new(body, open, taken))))
        })
    }
}
