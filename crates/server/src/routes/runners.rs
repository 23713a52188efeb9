//! Runners: programs of a user's own that dial in and do steps of runs (RFC 0122). What they say is taken as it is said;
//! who may say it, and what follows, is the runtime's business.

mod shown;
pub(crate) mod tokens;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use futures_util::future::join_all;

use self::shown::{read_report, read_result, read_tools, runner, work};
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::runner::RunnerToken;
use crate::auth::scope::RunsRead;
use crate::body::{self, Json};
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;
use crate::sse::{Pieces as _, RunnerFeed, stream_response};

/// How many results may come at once.
const MOST_RESULTS: usize = 500;

/// The runners of the subject of the caller's key.
#[utoipa::path(get, path = "/v1/host/baton/runners", tag = "runners",
    responses((status = 200, description = "All of them, by id", body = api::RunnerList)))]
pub(crate) async fn list(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    params.only(&[])?;
    let runners = app.host.runners(&who).into_iter().map(runner).collect();
    Ok(Reply::ok(&api::RunnerList { runners }).into_response())
}

/// Sign a runner in, or say again what it can do.
#[utoipa::path(post, path = "/v1/host/baton/runners", tag = "runners", request_body = api::RegisterRunner,
    responses((status = 201, description = "It is new", body = api::RunnerRegistered),
        (status = 200, description = "It was known", body = api::RunnerRegistered),
        (status = 403, description = "Another subject than the token's", body = api::ErrorBody)))]
pub(crate) async fn register(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    Json(frame): Json<api::RegisterRunner>,
) -> Result<Response, ApiError> {
    let api::RunnerCapabilities { providers, models, tools } = frame.capabilities;
    let capabilities = baton_runtime::RunnerCapabilities { providers, models, tools };
    let (runner_id, subject) = (frame.runner_id, frame.subject);
    let frame = baton_runtime::RunnerRegistration { runner_id: runner_id.clone(), subject, capabilities };
    let is_new = app.host.register_runner(&bearer, frame).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Reply::json(status, &api::RunnerRegistered { runner_id }).into_response())
}

/// Say what a runner brings: its pool and version, its tools with their schemas, how many steps it does at a time.
#[utoipa::path(put, path = "/v1/host/baton/runners/{runnerId}/tools", tag = "runners", params(("runnerId" = String, Path)),
    request_body = api::RunnerTools,
    responses((status = 200, description = "Its tools are in the catalogue of its subject", body = api::RunnerRegistered),
        (status = 404, description = "No such runner of this token's subject", body = api::ErrorBody)))]
pub(crate) async fn put_tools(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    Ids(runner_id): Ids<String>,
    Json(tools): Json<api::RunnerTools>,
) -> Result<Response, ApiError> {
    app.host.put_runner_tools(&bearer, &runner_id, read_tools(tools)).await?;
    Ok(Reply::ok(&api::RunnerRegistered { runner_id }).into_response())
}

/// Sign a runner off. What it has in hand is lost.
#[utoipa::path(delete, path = "/v1/host/baton/runners/{runnerId}", tag = "runners", params(("runnerId" = String, Path)),
    responses((status = 204, description = "It is gone"),
        (status = 404, description = "No such runner of this token's subject", body = api::ErrorBody)))]
pub(crate) async fn sign_off(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    Ids(runner_id): Ids<String>,
) -> Result<Response, ApiError> {
    app.host.sign_off_runner(&bearer, &runner_id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Follow the steps that a runner is given: `baton.context` and `dispatch` for each, `cancel`, `drain`. A second stream
/// ends the first with `superseded`.
#[utoipa::path(get, path = "/v1/host/baton/runners/{runnerId}/dispatch", tag = "runners",
    params(("runnerId" = String, Path),
        ("Last-Event-ID" = Option<u64>, Header, description = "The last `seq` that the runner has seen")),
    responses((status = 200, description = "Server-sent events", content_type = "text/event-stream", body = String),
        (status = 404, description = "No such runner of this token's subject", body = api::ErrorBody)))]
pub(crate) async fn dispatch(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    Ids(runner_id): Ids<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = match headers.get("last-event-id") {
        None => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
            Some(number.ok_or_else(|| ApiError::invalid("`Last-Event-ID` must be the `seq` of a step."))?)
        }
    };
    let open = app.quotas.stream(&bearer.owner.tenant)?;
    let stream = app.host.runner_stream(&bearer, &runner_id, after).await?;
    let feed = RunnerFeed::open(stream, app.shutdown.clone());
    Ok(stream_response(feed.into_body(open)))
}

/// Say what came of a step, or of several (`{"results": […]}`). It is on the run's log when this answers.
#[utoipa::path(post, path = "/v1/host/baton/runners/{runnerId}/results", tag = "runners",
    params(("runnerId" = String, Path)), request_body = api::StepResult,
    responses((status = 200, description = "Recorded, now or before", body = api::StepResultTaken),
        (status = 409, description = "Never given to this runner, another result is recorded, or the run has ended", body = api::ErrorBody),
        (status = 413, description = "The output is too large", body = api::ErrorBody)))]
pub(crate) async fn results(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    Ids(runner_id): Ids<String>,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, ApiError> {
    let bytes = body::read(&headers, content, app.max_body_bytes, app.arrival).await?;
    let several = serde_json::from_slice::<api::StepResults>(&bytes);
    let Ok(api::StepResults { results }) = several else {
        let frame: api::StepResult = body::parse(&bytes)?;
        let duplicate = app.host.runner_result(&bearer, &runner_id, read_result(frame)).await?;
        return Ok(Reply::ok(&api::StepResultTaken { accepted: true, duplicate }).into_response());
    };
    if results.len() > MOST_RESULTS {
        return Err(ApiError::invalid(format!("At most {MOST_RESULTS} results may be sent at once.")));
    }
    // Side by side: they share a commit.
    let taken = results.into_iter().map(|frame| app.host.runner_result(&bearer, &runner_id, read_result(frame)));
    let results = join_all(taken).await.into_iter().map(shown::outcome).collect();
    Ok(Reply::ok(&api::StepResultsTaken { results }).into_response())
}

/// Say how a runner and its steps are doing. Every report keeps what it has in hand from counting as lost.
#[utoipa::path(post, path = "/v1/host/baton/runners/{runnerId}/reports", tag = "runners",
    params(("runnerId" = String, Path)), request_body = api::RunnerReports,
    responses((status = 200, description = "What it has in hand, and what nobody wants any more", body = api::RunnerWork),
        (status = 404, description = "No such runner of this token's subject", body = api::ErrorBody)))]
pub(crate) async fn reports(
    State(app): State<App>,
    RunnerToken(bearer): RunnerToken,
    Ids(runner_id): Ids<String>,
    Json(reports): Json<api::RunnerReports>,
) -> Result<Response, ApiError> {
    let told = app.host.runner_report(&bearer, &runner_id, read_report(reports)).await?;
    Ok(Reply::ok(&work(told)).into_response())
}
