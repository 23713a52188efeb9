//! Everything about a run that may leave the host, in one document, for whoever has to find out what went wrong.
//! What a caller or a model put in stays behind; [`shown::BundleRedactor`] decides what goes.

mod shown;
mod spans;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use baton_model::{RunId, TenantId, Timestamp};
use baton_runtime::Host;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use self::shown::BundleRedactor;
use self::spans::{Spans, unwritable};
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::path::Ids;
use crate::reply::Reply;
use crate::sse::{PAGE, PAGE_BYTES};

const BUNDLE_VERSION: &str = "1.0";
/// What a bundle may weigh; beyond it events, then spans, are left out from the end, and the bundle says so.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Room for everything in a bundle that is neither the run nor an event.
const FRAME_BYTES: usize = 4 * 1024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bundle<'a> {
    bundle_version: &'static str,
    generated_at: Timestamp,
    host: Value,
    run: &'a RawValue,
    events: &'a [Box<RawValue>],
    spans: &'a [Box<RawValue>],
    metrics: Value,
    redaction_applied: bool,
    redaction_mode: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_reason: Option<&'static str>,
}

/// One document with all there is to know about a run, without the values it worked on.
#[utoipa::path(get, path = "/v1/runs/{runId}/debug-bundle", tag = "runs", params(("runId" = String, Path)),
    responses((status = 200, description = "The bundle", body = Object),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 410, description = "The log was pruned", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let run = RunId::new(run);
    let snapshot = app.host.snapshot(tenant, &run).await?;
    let node_count = snapshot.node_states.len();
    let mut redactor = BundleRedactor::new(&app.host.options().secrets);
    let view = redactor.shown(serde_json::to_value(&snapshot).unwrap_or_default());
    let view = to_raw_value(&view).map_err(|_| unwritable())?;
    let room = MAX_BYTES.saturating_sub(FRAME_BYTES + view.get().len());
    let log = Log::read(&app.host, tenant, &run, &mut redactor, room).await?;
    let spans = Spans::read(&app.host, tenant, &run, log.events.len() as u64, log.room).await?;
    let truncated_reason = match (log.cut, spans.cut) {
        (true, _) => Some("events_truncated_to_size_cap"),
        (false, true) => Some("spans_truncated_to_size_cap"),
        (false, false) => None,
    };
    let bundle = Bundle {
        bundle_version: BUNDLE_VERSION,
        generated_at: app.host.now(),
        host: json!({"name": "Baton", "version": app.version, "vendor": "Baton"}),
        run: &view,
        events: &log.events,
        spans: &spans.all,
        metrics: json!({"nodeCount": node_count, "eventCount": log.events.len()}),
        redaction_applied: true,
        redaction_mode: "omit",
        truncated: truncated_reason.is_some(),
        truncated_reason,
    };
    Ok(Reply::ok(&bundle).header(CACHE_CONTROL, HeaderValue::from_static("no-store")).into_response())
}

/// As many events as there is room for, from the first on.
struct Log {
    events: Vec<Box<RawValue>>,
    room: usize,
    cut: bool,
}

impl Log {
    async fn read(
        host: &Host,
        tenant: &TenantId,
        run: &RunId,
        redactor: &mut BundleRedactor<'_>,
        room: usize,
    ) -> Result<Self, ApiError> {
        let mut log = Self { events: Vec::new(), room, cut: false };
        let mut after = None;
        // A run that goes on while it is looked at must not keep the reader for ever.
        let mut end = None;
        loop {
            let page = host.events_within(tenant, run, after, PAGE, PAGE_BYTES).await?;
            let end = *end.get_or_insert(page.next_seq);
            for line in &page.events {
                if line.seq >= end {
                    return Ok(log);
                }
                log.add(&line.body, redactor)?;
                if log.cut {
                    return Ok(log);
                }
                after = Some(line.seq);
            }
            if page.events.is_empty() || page.reaches_end(after) {
                return Ok(log);
            }
        }
    }

    fn add(&mut self, body: &str, redactor: &mut BundleRedactor<'_>) -> Result<(), ApiError> {
        let event: Value = serde_json::from_str(body).map_err(|_| unwritable())?;
        let event = to_raw_value(&redactor.shown(event)).map_err(|_| unwritable())?;
        // One more for the comma.
        match self.room.checked_sub(event.get().len() + 1) {
            Some(room) => {
                self.room = room;
                self.events.push(event);
            }
            None => self.cut = true,
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn events_that_do_not_fit_are_left_out_from_the_end_and_that_is_said() {
        let event = |seq: u64| json!({"sequence": seq, "type": "node.started", "payload": {"nodeId": "n"}}).to_string();
        let mut log = Log { events: Vec::new(), room: 3 * (event(0).len() + 1), cut: false };
        let mut redactor = BundleRedactor::new(&[]);
        for seq in 0..3 {
            log.add(&event(seq), &mut redactor).unwrap();
        }
        assert!(!log.cut, "three fit exactly");
        log.add(&event(3), &mut redactor).unwrap();
        assert_eq!((log.cut, log.events.len()), (true, 3));
    }
}
