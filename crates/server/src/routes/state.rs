//! A run as of one of its records, with the memory and the files it had then (host extension).

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api as api;
use baton_api::RunSurroundings;
use baton_model::{Principal, RunId, Scope};
use baton_runtime::{StateAt, Surroundings};

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::{Params, bad};
use crate::reply::Reply;

/// A run as of one of its records (host extension).
#[utoipa::path(get, path = "/v1/host/baton/runs/{runId}/state", tag = "runs",
    params(("runId" = String, Path),
        ("at" = Option<u64>, Query, description = "Sequence of a record; the latest when absent")),
    responses((status = 200, description = "The run as it was", body = api::StateAt),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 422, description = "The log does not reach there, or what it was is no longer kept",
            body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["at"])?;
    let seq = params.int("at", 0..=u64::MAX)?;
    let state = app.host.state_at(tenant, &RunId::new(run), seq).await?;
    Ok(Reply::ok(&shown(state, &who)).into_response())
}

/// Memory and files as of a record, without the run's own state: as fast for the last record of a long log as for the
/// first (host extension).
#[utoipa::path(get, path = "/v1/host/baton/runs/{runId}/surroundings", tag = "runs",
    params(("runId" = String, Path), ("at" = u64, Query, description = "Sequence of a record")),
    responses((status = 200, description = "What was around the run", body = RunSurroundings),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 422, description = "The log does not reach there, or what it was is no longer kept",
            body = baton_api::ErrorBody)))]
pub(crate) async fn surroundings(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["at"])?;
    let seq = params.int("at", 0..=u64::MAX)?.ok_or_else(|| bad("at", "is required: the sequence of a record"))?;
    let run_id = RunId::new(run);
    let found = app.host.surroundings(tenant, &run_id, seq).await?;
    Ok(Reply::ok(&RunSurroundings { run_id, seq, around: around(found, &who) }).into_response())
}

fn around(found: Surroundings, who: &Principal) -> api::Surroundings {
    let mut omitted = Vec::new();
    let mut may = |scope: Scope, part: &str| {
        let allowed = who.scopes.allow(scope);
        if !allowed {
            omitted.push(part.to_owned());
        }
        allowed
    };
    let memory = may(Scope::MemoryRead, "memory").then_some(found.memory);
    let workspace = may(Scope::WorkspaceRead, "workspace").then_some(found.workspace);
    api::Surroundings {
        memory_scope: found.memory_scope,
        memory_version: found.versions.memory,
        workspace_version: found.versions.workspace,
        memory,
        workspace,
        omitted,
    }
}

fn shown(StateAt { seq, at, view, surroundings }: StateAt, who: &Principal) -> api::StateAt {
    api::StateAt {
        run_id: view.run_id,
        seq,
        at,
        status: view.status,
        variables: view.variables,
        channels: view.channels,
        node_states: view.node_states,
        interrupt: view.interrupt,
        child_runs: view.child_runs,
        around: around(surroundings, who),
    }
}
