//! What a supervisor's turn was told of the turns before it, as the turn recorded it.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{EventId, RunId};
use baton_server::endpoint::scope::RunsRead;
use baton_server::endpoint::{Allowed, ApiError, App, Params, Reply, TOKEN_COUNTER, bad};
use serde_json::{Value, json};

use crate::transcripts::transcript_window;

pub(super) async fn get(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let run = params.one("runId")?.filter(|run| !run.is_empty()).ok_or_else(|| bad("runId", "is required"))?;
    let iteration = params.int("iteration", 1..=u64::MAX)?.ok_or_else(|| bad("iteration", "is required"))?;
    let run = RunId::new(run);
    let window = transcript_window(&app.host, tenant, &run, iteration).await?;
    let id = |seq: u64| EventId::at(&run, seq);
    let entries: Vec<Value> =
        window.entries().map(|entry| json!({"eventId": id(entry.seq), "rendered": entry.text})).collect();
    let answer = json!({
        "runId": run,
        "iteration": iteration,
        "tokenCounter": TOKEN_COUNTER,
        "tokenCount": window.chars(),
        "eventIds": window.entries().map(|entry| id(entry.seq)).collect::<Vec<_>>(),
        // Nothing is summed up: what does not fit is left out.
        "summarizedRanges": [],
        "entries": entries,
    });
    Ok(Reply::ok(&answer).into_response())
}
