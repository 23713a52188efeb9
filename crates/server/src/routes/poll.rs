//! Long polling: what is new after a sequence, as soon as there is something.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_model::{RunId, TenantId};
use baton_runtime::EventPage;
use serde_json::json;
use tokio::time::Instant;

use super::events::push_bodies;
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
const MAX_TIMEOUT_SECONDS: u64 = 60;
const DEFAULT_LIMIT: u64 = 1000;
const MAX_LIMIT: u64 = 10_000;

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
        (status = 200, description = "Events, or none when the time is up or the run has ended", body = ref("#/components/schemas/PollResult")),
        (status = 400, description = "A parameter is wrong", body = ref("#/components/schemas/Error")),
        (status = 404, description = "No such run", body = ref("#/components/schemas/Error"))))]
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
    Ok(Reply::new(StatusCode::OK, render(&run, &page, poll.after)).into_response())
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
        let page = app.host.events(tenant, run, poll.after, poll.limit).await?;
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

/// The union of the two published shapes. Both "the end" flags wait until the last event is in the answer.
fn render(run: &RunId, page: &EventPage, after: Option<u64>) -> Vec<u8> {
    let complete = page.is_final(after);
    let last = page.events.last().map(|line| line.seq).or(after);
    let mut head = json!({
        "runId": run,
        "isComplete": complete,
        "isTerminal": complete,
        "runStatus": page.status,
    });
    if let Some(last) = last {
        head["lastEventSeq"] = last.into();
    }
    let mut out = head.to_string().into_bytes();
    out.pop();
    out.extend_from_slice(b",\"events\":[");
    push_bodies(&mut out, page, true);
    out.extend_from_slice(b"]}");
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::RunStatus;
    use baton_runtime::EventLine;
    use serde_json::Value;

    fn page(seqs: &[u64], status: RunStatus, next_seq: u64) -> EventPage {
        let line =
            |seq: &u64| EventLine { seq: *seq, kind: "node.started".into(), body: format!("{{\"sequence\":{seq}}}") };
        EventPage { events: seqs.iter().map(line).collect(), status, next_seq }
    }

    fn shown(page: &EventPage, after: Option<u64>) -> Value {
        serde_json::from_slice(&render(&RunId::new("run_1"), page, after)).unwrap()
    }

    #[test]
    fn the_answer_is_the_union_of_both_shapes() {
        let body = shown(&page(&[1, 2], RunStatus::Completed, 3), Some(0));
        assert_eq!(
            body,
            json!({"runId": "run_1", "isComplete": true, "isTerminal": true, "runStatus": "completed",
                "lastEventSeq": 2, "events": [{"sequence": 1}, {"sequence": 2}]})
        );
        let partial = shown(&page(&[1], RunStatus::Completed, 3), Some(0));
        assert_eq!((&partial["isComplete"], &partial["isTerminal"]), (&false.into(), &false.into()));
        let past = shown(&page(&[], RunStatus::Completed, 3), Some(90));
        assert_eq!(
            (&past["isComplete"], &past["lastEventSeq"], &past["events"]),
            (&true.into(), &90.into(), &json!([]))
        );
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
