//! A run as of one of its records, with the memory and the files it had then (host extension).

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{
    ChildRun, FileMeta, InterruptView, MemoryEntry, NodeId, NodeStateView, RunId, RunStatus, Scope, Timestamp,
};
use baton_runtime::{StateAt, Surroundings};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::{Params, bad};
use crate::reply::Reply;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunState {
    #[schema(value_type = String)]
    run_id: RunId,
    seq: u64,
    /// When that record was written.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    #[schema(value_type = String)]
    status: RunStatus,
    variables: Map<String, Value>,
    channels: Map<String, Value>,
    #[schema(value_type = Object)]
    node_states: BTreeMap<NodeId, NodeStateView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    interrupt: Option<InterruptView>,
    #[schema(value_type = Vec<Object>)]
    child_runs: Vec<ChildRun>,
    #[serde(flatten)]
    around: Around,
}

/// A run as of one of its records (host extension).
#[utoipa::path(get, path = "/v1/host/baton/runs/{runId}/state", tag = "runs",
    params(("runId" = String, Path),
        ("at" = Option<u64>, Query, description = "Sequence of a record; the latest when absent")),
    responses((status = 200, description = "The run as it was", body = RunState),
        (status = 404, description = "No such run", body = ref("#/components/schemas/Error")),
        (status = 422, description = "The log does not reach there, or what it was is no longer kept",
            body = ref("#/components/schemas/Error"))))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Caller,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = who.need(Scope::RunsRead)?;
    params.only(&["at"])?;
    let seq = params.int("at", 0..=u64::MAX)?;
    let state = app.host.state_at(tenant, &RunId::new(run), seq).await?;
    Ok(Reply::ok(&shown(state, &who)).into_response())
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunSurroundings {
    #[schema(value_type = String)]
    run_id: RunId,
    seq: u64,
    #[serde(flatten)]
    around: Around,
}

/// What was around a run: memory and files.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Around {
    memory_scope: String,
    memory_version: u64,
    workspace_version: u64,
    /// Newest first; only with `memory:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    memory: Option<Vec<MemoryEntry>>,
    /// By path, without the contents; only with `workspace:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    workspace: Option<Vec<FileMeta>>,
    /// What was left out because the key lacks its scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<&'static str>,
}

/// Memory and files as of a record, without the run's own state: as fast for the last record of a long log as for the
/// first (host extension).
#[utoipa::path(get, path = "/v1/host/baton/runs/{runId}/surroundings", tag = "runs",
    params(("runId" = String, Path), ("at" = u64, Query, description = "Sequence of a record")),
    responses((status = 200, description = "What was around the run", body = RunSurroundings),
        (status = 404, description = "No such run", body = ref("#/components/schemas/Error")),
        (status = 422, description = "The log does not reach there, or what it was is no longer kept",
            body = ref("#/components/schemas/Error"))))]
pub(crate) async fn surroundings(
    State(app): State<App>,
    who: Caller,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = who.need(Scope::RunsRead)?;
    params.only(&["at"])?;
    let seq = params.int("at", 0..=u64::MAX)?.ok_or_else(|| bad("at", "is required: the sequence of a record"))?;
    let run_id = RunId::new(run);
    let found = app.host.surroundings(tenant, &run_id, seq).await?;
    Ok(Reply::ok(&RunSurroundings { run_id, seq, around: around(found, &who) }).into_response())
}

fn around(found: Surroundings, who: &Caller) -> Around {
    let mut omitted = Vec::new();
    let mut may = |scope: Scope, part: &'static str| {
        let allowed = who.scopes.allow(scope);
        if !allowed {
            omitted.push(part);
        }
        allowed
    };
    let memory = may(Scope::MemoryRead, "memory").then_some(found.memory);
    let workspace = may(Scope::WorkspaceRead, "workspace").then_some(found.workspace);
    Around {
        memory_scope: found.memory_scope,
        memory_version: found.versions.memory,
        workspace_version: found.versions.workspace,
        memory,
        workspace,
        omitted,
    }
}

fn shown(StateAt { seq, at, view, surroundings }: StateAt, who: &Caller) -> RunState {
    RunState {
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
