//! A ceiling on work in progress. Above it callers are told when to come back instead of queueing without end.
//! Discovery and health are mounted outside: they must answer exactly when the host is busiest.

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;

use crate::app::App;
use crate::error::ApiError;

const RETRY_AFTER_SECONDS: u64 = 1;

pub(crate) async fn shed(State(app): State<App>, request: Request, next: Next) -> Response {
    let Ok(permit) = app.capacity.clone().try_acquire_owned() else {
        return ApiError::busy(RETRY_AFTER_SECONDS).into_response();
    };
    let response = next.run(request).await;
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    // An open stream is work in progress until its last byte.
    response.map(|body| {
        axum::body::Body::from_stream(body.into_data_stream().map(move |frame| {
            let _held = &permit;
            frame
        }))
    })
}
