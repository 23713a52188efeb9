//! Long polling: what is new after a sequence, as soon as there is something.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_model::{RunId, TenantId};
use baton_runtime::EventPage;
use tokio::time::Instant;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::event_view;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
const MAX_TIMEOUT_SECONDS: u64 = 60;
const DEFAULT_LIMIT: u64 = 1000;
const MAX_LIMIT: u64 = 10_000;
/// What an answer may weigh, unless it is a single event: it is held until its reader has it. What does not fit is behind
/// `lastEventSeq`, and is there at once for whoever asks again.
const MAX_BYTES: usize = 1024 * 1024;

struct Poll {
    after: Option<u64>,
    timeout: Duration,
    limit: usize,
}

/// Wait for events after a sequence.
#[utoipa::path(get, path = "/v1/runs/{runId}/events/poll", tag = "events",
    params(
        ("runId" = String, Path),
        ("lastSequence" = Option<u64>, Query, description = "Only later events; absent means from the start"),
        ("timeout" = Option<u64>, Query, description = "Seconds to wait, 1 to 60, default 30"),
        ("limit" = Option<u64>, Query, description = "Events per answer, 1 to 10000, default 1000 (host extension)")),
    responses(
        (status = 200, description = "Events, or none when the time is up or the run has ended", body = baton_api::EventPage),
        (status = 400, description = "A parameter is wrong", body = baton_api::ErrorBody),
        (status = 404, description = "No such run", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let poll = Poll::from_query(&params)?;
    let run = RunId::new(run);
    let page = wait(&app, tenant, &run, &poll).await?;
    Ok(Reply::new(StatusCode::OK, event_view::page(&run, &page, poll.after)).into_response())
}

impl Poll {
    fn from_query(params: &Params) -> Result<Self, ApiError> {
        let after = match params.int("lastSequence", 0..=u64::MAX)? {
            Some(sequence) => Some(sequence),
            None => params.int("since", 0..=u64::MAX)?,
        };
        let timeout = params.int("timeout", 1..=MAX_TIMEOUT_SECONDS)?.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
        Ok(Self { after, timeout: Duration::from_secs(timeout), limit })
    }
}

async fn wait(app: &App, tenant: &TenantId, run: &RunId, poll: &Poll) -> Result<EventPage, ApiError> {
    let deadline = Instant::now() + poll.timeout;
    let mut changes = app.host.subscribe(run);
    loop {
        let page = app.host.events_within(tenant, run, poll.after, poll.limit, MAX_BYTES).await?;
        if is_answer(&page, poll.after) {
            return Ok(page);
        }
        tokio::select! {
            biased;
            () = app.shutdown.cancelled() => return Ok(page),
            () = changes.changed() => {}
            () = tokio::time::sleep_until(deadline) => return Ok(page),
        }
    }
}

/// Whether there is a reason to answer now: something new, an ended run, or a cursor past the end of the log.
fn is_answer(page: &EventPage, after: Option<u64>) -> bool {
    !page.events.is_empty() || page.status.is_terminal() || after.is_some_and(|after| after >= page.next_seq)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::RunStatus;
    use baton_runtime::EventLine;

    fn page(seqs: &[u64], status: RunStatus, next_seq: u64) -> EventPage {
        let line =
            |seq: &u64| EventLine { seq: *seq, kind: "node.started".into(), body: format!("{{\"sequence\":{seq}}}") };
        EventPage { events: seqs.iter().map(line).collect(), status, next_seq }
    }

    #[test]
    fn it_waits_only_at_the_end_of_a_living_log() {
        assert!(!is_answer(&page(&[], RunStatus::Running, 3), Some(2)));
        assert!(!is_answer(&page(&[], RunStatus::Pending, 0), None));
        assert!(is_answer(&page(&[], RunStatus::Running, 3), Some(3)));
        assert!(is_answer(&page(&[2], RunStatus::Running, 3), Some(1)));
        assert!(is_answer(&page(&[], RunStatus::Failed, 3), Some(2)));
    }

    #[test]
    fn parameters_are_bounded_and_since_is_an_alias() {
        let of = |query: &str| Poll::from_query(&Params::parse(query));
        let default = of("").unwrap();
        assert_eq!((default.after, default.timeout.as_secs(), default.limit), (None, 30, 1000));
        assert_eq!(of("since=4").unwrap().after, Some(4));
        assert_eq!(of("since=4&lastSequence=5").unwrap().after, Some(5));
        for bad in
            ["lastSequence=-1", "lastSequence=x", "timeout=0", "timeout=61", "limit=0", "limit=10001", "since=1.5"]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
