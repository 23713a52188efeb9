//! The spans of a run, as a collector gets them. They come out of the fold that makes those for the exporter, whether
//! or not a collector is set up. Envelopes that were only judged have theirs from the same place, and come after.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_model::RunId;
use baton_server::endpoint::scope::RunsRead;
use baton_server::endpoint::{Allowed, ApiError, App, Params, Reply, each_span, shown_span};
use baton_telemetry::{Detail, Span};
use serde_json::json;

use super::mock_ai::wrong;
use crate::mode::Conformance;

/// An unknown run has none.
pub(super) async fn get(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["runId", "name"])?;
    let run = params.one("runId")?.filter(|run| !run.is_empty());
    let run = RunId::new(run.ok_or_else(|| wrong("runId", "`runId` is required."))?);
    let name = params.one("name")?;
    let mut all = Vec::new();
    let read = each_span(&app.host, tenant, &run, u64::MAX, Detail::default(), |span| {
        all.push(span);
        Ok(())
    });
    match read.await {
        Err(error) if error.status == StatusCode::NOT_FOUND => {}
        other => other?,
    }
    all.extend(Conformance::of(&app.host)?.journal.spans_of(tenant, run.as_str()));
    all.retain(|span| name.is_none_or(|name| span.name == name));
    let shown = |span: &Span| {
        let mut shown = shown_span(span);
        // Ours have none: what happens during a span is a span or a record.
        shown["events"] = json!([]);
        shown["timestamp"] = shown["startedAt"].clone();
        shown
    };
    Ok(Reply::ok(&json!({"spans": all.iter().map(shown).collect::<Vec<_>>()})).into_response())
}
