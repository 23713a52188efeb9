//! The door of a host. It answers from the moment the listener is bound: before the host is open, `/health` says that the
//! process lives, `/readiness` says what it is busy with, and everything else is told to come back.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{HeaderValue, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::future::RouteFuture;
use baton_model::code;
use baton_runtime::Host;
use futures_util::future::Either;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::app::App;
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::routes::health;
use crate::{ServerOptions, metrics, router};

/// When a caller should try again. Starting takes a moment or many; asking costs little.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Cheap to clone; clones are the same door.
#[derive(Clone)]
pub struct Entrance(Arc<Inner>);

struct Inner {
    open: OnceLock<(App, Router)>,
    /// What the host is busy with until then.
    doing: Mutex<Cow<'static, str>>,
    shutdown: CancellationToken,
}

impl Entrance {
    /// `shutdown` ends streams and long polls.
    pub fn new(shutdown: CancellationToken) -> Self {
        // Before the host opens: what it counts meanwhile would be lost.
        drop(Metrics::shared());
        Self(Arc::new(Inner { open: OnceLock::new(), doing: Mutex::new(Cow::Borrowed("opening")), shutdown }))
    }

    /// Says what the host is busy with: the end of "The host is starting: it is …".
    pub fn doing(&self, what: impl Into<Cow<'static, str>>) {
        *self.0.doing.lock() = what.into();
    }

    /// Lets everybody in. The first host stays.
    pub fn open(&self, host: Host, options: ServerOptions) {
        self.open_with(host, options, Router::new());
    }

    /// The same, with routes of another crate beside the API; see [`crate::endpoint`].
    pub fn open_with(&self, host: Host, options: ServerOptions, beside: Router<App>) {
        let _ = self.0.open.set(router::open(host, options, beside, self.0.shutdown.clone()));
    }

    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// Waits for what goes on after its caller hung up.
    pub(crate) async fn finish(&self) {
        if let Some((app, _)) = self.0.open.get() {
            app.tasks.close();
            app.tasks.wait().await;
        }
    }

    fn closed(&self, request: &Request) -> Response {
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/health") => health::alive(),
            (&Method::GET | &Method::HEAD, "/metrics") => metrics::rendered(&Metrics::shared()),
            _ => {
                let doing = self.0.doing.lock().clone();
                let message = format!("The host is starting: it is {doing}. Try again shortly.");
                let refusal = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code::SERVICE_UNAVAILABLE, message);
                let mut response = refusal.into_response();
                response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
                response
            }
        }
    }
}

impl Service<Request> for Entrance {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<RouteFuture<Infallible>, Ready<Result<Response, Infallible>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.0.open.get() {
            Some((_, router)) => Either::Left(router.clone().call(request)),
            None => Either::Right(ready(Ok(self.closed(&request)))),
        }
    }
}
