//! Starting a run and looking at one.

pub(crate) mod economy;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use baton_api as api;
use baton_model::TraceContext;
use baton_model::{InvocationSource, Principal, RunId, code, json, redact};
use baton_runtime::{StartRun, StartedRun};
use serde_json::{Map, Value};

use super::{cause, conversations};
use crate::app::App;
use crate::auth::scope::{RunsCreate, RunsRead};
use crate::auth::{Allowed, check_tenant};
use crate::error::ApiError;
use crate::headers;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::reply::{self, Reply};

const MAX_ID_CHARS: usize = 128;
const MAX_AGENT_ID_CHARS: usize = 256;
const MAX_TAGS: usize = 100;
const MAX_TAG_CHARS: usize = 256;
const MAX_METADATA_DEPTH: usize = 4;

/// Start a run.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = api::StartRun,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters; equal requests under one key start one run"),
        ("X-Dedup" = Option<String>, Header, description = "`enforce`: refuse while a run of the same tenant and scope is active"),
        ("X-Force-Engine-Version" = Option<i64>, Header, description = "Test keys only"),
        ("traceparent" = Option<String>, Header, description = "W3C trace context, handed on to webhooks"),
        ("tracestate" = Option<String>, Header),
        ("Baton-Causation" = Option<String>, Header, description = "JSON `{hostId, runId, eventId, cause, wellKnownUrl, depth}`: the event on another host that asks for this run. Needs an Idempotency-Key, which names the run for good"),
        ("Baton-Withdrawn" = Option<bool>, Header, description = "With Baton-Causation: the run is not wanted any more; if it does not exist yet it is made as a cancelled one")),
    responses(
        (status = 201, description = "Started, and durable", body = api::StartedRun),
        (status = 400, description = "Refused", body = baton_api::ErrorBody),
        (status = 404, description = "No such workflow", body = baton_api::ErrorBody),
        (status = 409, description = "Conflict with a key or an active run", body = baton_api::ErrorBody),
        (status = 422, description = "Runs of several hosts nest too deeply, or a credential is named that is not to be used", body = baton_api::ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/runs", move |call| async move {
        let host = &call.app.host;
        let (agent, start) = check(call.json()?, &who, &call.headers, host.options().limits.max_metadata_bytes)?;
        conversations::check(&call.app, start.conversation.as_deref())?;
        let (cause, withdrawn) = cause::read(&call.headers, &host.options().secrets)?;
        let start = StartRun { trace: trace(&call.headers, &call.app), cause, withdrawn, ..start };
        let kept = call.stored_with_effect(render);
        let started = match agent {
            None => host.start_run(&who, start, kept).await?,
            Some(_) if host.options().agent_registry.is_empty() => {
                return Err(ApiError::not_provided("This host has no agents.", "agents.liveRuntime"));
            }
            Some(agent) => host.start_agent(&who, &agent, InvocationSource::RunApi, start, kept).await?,
        };
        let (_, body) = render(&started);
        Ok(Reply::new(StatusCode::CREATED, body).already_stored())
    });
    Ok(reply.await)
}

/// The state of a run.
#[utoipa::path(get, path = "/v1/runs/{runId}", tag = "runs",
    params(("runId" = String, Path), ("If-None-Match" = Option<String>, Header), ("Accept-Encoding" = Option<String>, Header)),
    responses(
        (status = 200, description = "The run", body = baton_model::RunSnapshot, headers(("ETag" = String))),
        (status = 304, description = "Nothing changed since"),
        (status = 404, description = "No such run", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let snapshot = app.host.snapshot_for(&who, &RunId::new(run)).await?;
    economy::answer(&snapshot, &headers, app.host.now())
}

/// Where a run and its events are found.
pub(super) fn addresses(run: &RunId) -> (String, String) {
    (format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events"))
}

/// The stored and the sent form of a started run are the same bytes.
pub(super) fn render(started: &StartedRun) -> (u16, String) {
    let (status_url, events_url) = addresses(&started.run_id);
    let created = api::StartedRun { run_id: started.run_id.clone(), status: started.status, events_url, status_url };
    reply::rendered(StatusCode::CREATED, &created)
}

/// What HTTP can judge. Ranges of `configurable`, the workflow itself and test-key rules belong to the host.
/// With the agent to be started, where that is all the run is.
fn check(
    run: api::StartRun,
    who: &Principal,
    headers: &HeaderMap,
    max_metadata_bytes: usize,
) -> Result<(Option<String>, StartRun), ApiError> {
    check_tenant(who, run.tenant_id.as_deref())?;
    check_unsupported(&run)?;
    let (agent, workflow_id) = match (run.agent_id, run.workflow_id) {
        (Some(_), Some(_)) => return Err(ApiError::at("/agentId", "cannot be combined with workflowId")),
        (None, None) => return Err(ApiError::at("/workflowId", "is required, or agentId in its place")),
        (agent, workflow) => (agent, workflow.unwrap_or_default()),
    };
    let (id, pointer, most) = match &agent {
        Some(agent) => (agent, "/agentId", MAX_AGENT_ID_CHARS),
        None => (&workflow_id, "/workflowId", MAX_ID_CHARS),
    };
    if !(1..=most).contains(&id.chars().count()) {
        return Err(ApiError::at(pointer, &format!("must have 1 to {most} characters")));
    }
    if run.conversation_id.is_some() && run.scope_id.is_some() {
        return Err(ApiError::at("/conversationId", "cannot be combined with scopeId: a conversation is a scope"));
    }
    check_tags(&run.tags)?;
    check_metadata(&run.metadata, max_metadata_bytes)?;
    let start = StartRun {
        workflow_id,
        inputs: run.inputs,
        configurable: run.configurable,
        tags: run.tags,
        metadata: run.metadata,
        scope_id: run.scope_id,
        conversation: run.conversation_id,
        exclusive: exclusive(headers)?,
        force_engine_version: forced_engine_version(headers)?,
        ..StartRun::default()
    };
    Ok((agent, start))
}

/// Members of the protocol that this host does not serve are refused: ignoring them would be a silent lie.
fn check_unsupported(run: &api::StartRun) -> Result<(), ApiError> {
    match run.mode.as_deref() {
        None => {}
        Some("eval") => return Err(ApiError::not_provided("This host does not run evaluations.", "agents.eval")),
        Some(_) => return Err(ApiError::at("/mode", "must be \"eval\" or absent")),
    }
    if run.eval_suite_ref.is_some() {
        return Err(ApiError::at("/evalSuiteRef", "belongs to mode \"eval\" only"));
    }
    if run.callback_url.is_some() {
        let message = "callbackUrl is not served here. Subscribe with POST /v1/webhooks instead.";
        return Err(ApiError::not_provided(message, "callbackUrl"));
    }
    if run.residency.as_ref().is_some_and(|residency| !residency.is_null()) {
        let message = "This host does not place runs by region. Leave residency out.";
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code::RESIDENCY_UNAVAILABLE, message));
    }
    Ok(())
}

pub(super) fn check_tags(tags: &[String]) -> Result<(), ApiError> {
    if tags.len() > MAX_TAGS {
        return Err(ApiError::at("/tags", "may have at most 100 entries").with("max", MAX_TAGS));
    }
    match tags.iter().position(|tag| tag.is_empty() || tag.chars().count() > MAX_TAG_CHARS) {
        Some(index) => Err(ApiError::at(&format!("/tags/{index}"), "must have 1 to 256 characters")),
        None => Ok(()),
    }
}

fn check_metadata(metadata: &Map<String, Value>, max_bytes: usize) -> Result<(), ApiError> {
    if metadata.is_empty() {
        return Ok(());
    }
    if metadata.contains_key("subject") {
        return Err(ApiError::at("/metadata/subject", "is the host's: it follows from the key that starts the run"));
    }
    let depth = 1 + metadata.values().map(json::depth).max().unwrap_or(0);
    if depth > MAX_METADATA_DEPTH {
        return Err(ApiError::at("/metadata", "may nest at most 4 levels").with("max", MAX_METADATA_DEPTH));
    }
    let size = serde_json::to_string(metadata).map_or(0, |text| text.len());
    if size > max_bytes {
        let problem = format!("has {size} bytes when serialised; the limit is {max_bytes}");
        return Err(ApiError::at("/metadata", &problem).with("max", max_bytes));
    }
    Ok(())
}

fn exclusive(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers::text(headers, "x-dedup") {
        None => Ok(false),
        Some(Ok("enforce")) => Ok(true),
        Some(_) => Err(ApiError::invalid("The header X-Dedup must be `enforce` or absent.")),
    }
}

/// The caller's trace, without anything that must not be stored.
pub(super) fn trace(headers: &HeaderMap, app: &App) -> Option<TraceContext> {
    let mut trace = read_trace(headers)?;
    trace.state = trace.state.take().filter(|state| redact(state, &app.host.options().secrets) == *state);
    Some(trace)
}

/// Nothing about a trace is ever refused: what cannot be read is ignored.
fn read_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (parent, None) = (parents.next()?.to_str().ok()?, parents.next()) else { return None };
    let states: Option<Vec<&str>> = headers.get_all("tracestate").iter().map(|state| state.to_str().ok()).collect();
    let state = states.filter(|states| !states.is_empty()).map(|states| states.join(","));
    TraceContext::parse(parent.trim(), state.as_deref())
}

fn forced_engine_version(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    match headers::text(headers, "x-force-engine-version") {
        None => Ok(None),
        Some(text) => text.ok().and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
            let message = "The header X-Force-Engine-Version must be an integer.";
            ApiError::new(StatusCode::BAD_REQUEST, code::UNSUPPORTED_FORCE_ENGINE_VERSION, message)
        }),
    }
}

#[cfg(test)]
#[path = "runs/tests.rs"]
mod tests;
