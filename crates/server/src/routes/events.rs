//! A run's log: as a stream, or whole as JSON.

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use baton_model::{EventId, RunId, TenantId};
use baton_runtime::{EventPage, Host};
use bytes::Bytes;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::event_view;
use crate::headers::{self, EventsAs};
use crate::path::Ids;
use crate::query::Params;
use crate::reply::APPLICATION_JSON;
use crate::sse::{Feed, Modes, PAGE, PAGE_BYTES, Pieces as _, buffer_ms, stream_response};

/// Follow a run's events, or read them all with `Accept: application/json`.
#[utoipa::path(get, path = "/v1/runs/{runId}/events", tag = "events",
    params(
        ("runId" = String, Path),
        ("streamMode" = Option<String>, Query, description = "values, updates (default), messages, debug; all but values may be combined with commas"),
        ("bufferMs" = Option<u64>, Query, description = "0 to 5000: gather events into `batch` frames"),
        ("Last-Event-ID" = Option<String>, Header, description = "Resume after this sequence")),
    responses(
        (status = 200, description = "Server-sent events until the run ends", content_type = "text/event-stream", body = String),
        (status = 400, description = "The mode or the buffer is wrong", body = baton_api::ErrorBody),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 429, description = "The tenant has as many streams as it may have", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let modes = Modes::from_query(&params)?;
    let buffer = buffer_ms(&params)?;
    let run = RunId::new(run);
    match headers::events_as(&headers) {
        EventsAs::Json => whole_log(app.host.clone(), tenant, run).await,
        EventsAs::Stream => {
            let open = app.quotas.stream(&who.tenant)?;
            let after = last_event_id(&headers, &run);
            let shutdown = app.shutdown.clone();
            let feed = Feed::open(app.host.clone(), who, run, after, modes, buffer, shutdown).await?;
            Ok(stream_response(feed.into_body(open)))
        }
    }
}

/// A sequence, or an event id of this run; anything else means from the start.
fn last_event_id(headers: &HeaderMap, run: &RunId) -> Option<u64> {
    let text = headers::text(headers, "last-event-id")?.ok()?;
    text.parse().ok().or_else(|| EventId::from(text).sequence_in(run))
}

/// The log up to its length now, written page by page as it lies in storage.
async fn whole_log(host: Host, tenant: TenantId, run: RunId) -> Result<Response, ApiError> {
    let first = host.events_within(&tenant, &run, None, PAGE, PAGE_BYTES).await?;
    let end = first.next_seq;
    let mut response = if reaches(&first, end) {
        let mut out = event_view::LOG_BEGINS.to_vec();
        event_view::push_all(&mut out, &first, true);
        out.extend_from_slice(event_view::END);
        Response::new(Body::from(out))
    } else {
        Response::new(paged(host, tenant, run, first, end))
    };
    response.headers_mut().insert(CONTENT_TYPE, APPLICATION_JSON);
    Ok(response)
}

fn paged(host: Host, tenant: TenantId, run: RunId, first: EventPage, end: u64) -> Body {
    struct NewerFields {
        after: u64,
        done: bool,
    }
    let mut head = event_view::LOG_BEGINS.to_vec();
    event_view::push_all(&mut head, &first, true);
    let rest = NewerFields { after: last_of(&first), done: false };
    let tail =
        futures_util::stream::unfold((rest, host, tenant, run), move |(mut rest, host, tenant, run)| async move {
            if rest.done {
                return None;
            }
            let chunk = match host.events_within(&tenant, &run, Some(rest.after), PAGE, PAGE_BYTES).await {
                Ok(page) => {
                    let mut out = Vec::new();
                    event_view::push_all(&mut out, &page, false);
                    rest.done = page.events.is_empty() || reaches(&page, end);
                    rest.after = rest.after.max(last_of(&page));
                    if rest.done {
                        out.extend_from_slice(event_view::END);
                    }
                    Ok(Bytes::from(out))
                }
                Err(error) => {
                    // Too late for a status: a body that breaks off cannot be mistaken for a whole one.
                    rest.done = true;
                    tracing::warn!(%run, %error, "a log was cut off while being sent");
                    Err(io::Error::other(error.to_string()))
                }
            };
            Some((chunk, (rest, host, tenant, run)))
        });
    let head = futures_util::stream::iter([Ok::<_, io::Error>(Bytes::from(head))]);
    Body::from_stream(futures_util::StreamExt::chain(head, tail))
}

fn last_of(page: &EventPage) -> u64 {
    page.events.last().map_or(0, |line| line.seq)
}

fn reaches(page: &EventPage, end: u64) -> bool {
    page.events.last().map_or(end == 0, |line| line.seq + 1 >= end)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    #[test]
    fn a_reader_resumes_by_sequence_or_event_id() {
        let run = RunId::new("run_a");
        let read = |text: &str| {
            last_event_id(
                &HeaderMap::from_iter([(HeaderName::from_static("last-event-id"), text.parse().unwrap())]),
                &run,
            )
        };
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("run_a.9"), Some(9));
        for unknown in ["run_b.9", "-1", "x", "", "99999999999999999999"] {
            assert_eq!(read(unknown), None, "{unknown}");
        }
        assert_eq!(last_event_id(&HeaderMap::new(), &run), None);
    }
}
