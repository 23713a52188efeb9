//! Forking a run: a replay proves it, a branch goes another way.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use baton_api as api;
use baton_model::{ForkMode, Principal, RunStatus, code, json};
use baton_runtime::{ForkRun, ForkedRun};
use serde_json::{Map, Value};

use super::runs::addresses;
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{RunsCreate, RunsRead};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::reply::{self, Reply};
use crate::verb_path::RunBeforeVerb;

/// How deeply an overlaid value may nest: as deeply as an input of a new run.
const MAX_DEPTH: usize = 64;

/// Fork a run at a point of its log.
#[utoipa::path(post, path = "/v1/runs/{runId}:fork", tag = "runs", request_body = api::Fork,
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, description = "Forked, and durable", body = api::ForkedRun),
        (status = 400, description = "Refused", body = baton_api::ErrorBody),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 409, description = "Conflict with a key", body = baton_api::ErrorBody),
        (status = 422, description = "The log does not reach there, or what it was is no longer kept",
            body = baton_api::ErrorBody)))]
pub(crate) async fn post(
    State(app): State<App>,
    who: Allowed<(RunsCreate, RunsRead)>,
    RunBeforeVerb(run): RunBeforeVerb,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply = request.once(app, tenant.clone(), "POST /v1/runs/{runId}:fork", move |call| async move {
        let fork = check(call.json()?)?;
        check_mock_provider(&who, &fork.configurable)?;
        let forked = call.app.host.fork(&who, &run, fork, call.stored_with_effect(render)).await?;
        Ok(Reply::new(StatusCode::CREATED, render(&forked).1).already_stored())
    });
    Ok(reply.await)
}

/// The stored and the sent form are the same bytes.
fn render(forked: &ForkedRun) -> (u16, String) {
    let (status_url, events_url) = addresses(&forked.run_id);
    let body = api::ForkedRun {
        run_id: forked.run_id.clone(),
        source_run_id: forked.source_run_id.clone(),
        from_seq: forked.from_seq,
        requested_from_seq: forked.requested_from_seq,
        mode: forked.mode,
        status: RunStatus::Pending,
        events_url,
        status_url,
    };
    reply::rendered(StatusCode::CREATED, &body)
}

fn check(asked: api::Fork) -> Result<ForkRun, ApiError> {
    let mode = match asked.mode.as_str() {
        "replay" => ForkMode::Replay,
        "branch" => ForkMode::Branch,
        _ => return Err(ApiError::at("/mode", "must be \"replay\" or \"branch\"")),
    };
    let overlay = asked.run_options_overlay.unwrap_or_default();
    if mode == ForkMode::Replay && overlay != api::ForkOverlay::default() {
        return Err(ApiError::at("/runOptionsOverlay", "changes what is replayed; it belongs to a branch"));
    }
    let from_seq = match asked.from_seq {
        None if mode == ForkMode::Replay => 0,
        None => return Err(ApiError::at("/fromSeq", "is required for a branch")),
        Some(value) => value.as_u64().ok_or_else(|| ApiError::at("/fromSeq", "must be an integer of at least 0"))?,
    };
    let api::ForkOverlay { inputs, variables, configurable, side_effects } = overlay;
    for (name, map) in [("inputs", &inputs), ("variables", &variables), ("configurable", &configurable)] {
        check_depth(name, map)?;
    }
    Ok(ForkRun { mode, from_seq, inputs, variables, configurable, side_effects: side_effects.unwrap_or_default() })
}

/// A branch must not be a way around what a new run is refused.
fn check_mock_provider(who: &Principal, configurable: &Map<String, Value>) -> Result<(), ApiError> {
    if who.test || !configurable.contains_key("mockProvider") {
        return Ok(());
    }
    let message = "Mock providers need a test key (one that starts with hk_test_).";
    Err(ApiError::new(StatusCode::FORBIDDEN, code::MOCK_PROVIDER_FORBIDDEN, message))
}

fn check_depth(name: &str, map: &Map<String, Value>) -> Result<(), ApiError> {
    match map.iter().find(|(_, value)| json::depth(value) > MAX_DEPTH) {
        None => Ok(()),
        Some((key, _)) => {
            let pointer = format!("/runOptionsOverlay/{name}/{}", key.replace('~', "~0").replace('/', "~1"));
            Err(ApiError::at(&pointer, &format!("may nest at most {MAX_DEPTH} levels")).with("max", MAX_DEPTH))
        }
    }
}
