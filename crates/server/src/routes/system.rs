//! The host about itself.

mod connections;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{Limits, RunStatus, Scope, TenantId, Timestamp, redact};
use baton_runtime::{HostStatus, StorageUsage};
use serde::Serialize;
use utoipa::ToSchema;

use self::connections::ShownConnection;
use crate::app::App;
use crate::auth::AnyKey;
use crate::error::ApiError;
use crate::log_tail::LogLine;
use crate::query::Params;
use crate::reply::Reply;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct System {
    version: String,
    /// `release` or `debug`.
    build: &'static str,
    licence: &'static str,
    host_id: String,
    /// Another one after each start.
    instance: String,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    now: Timestamp,
    /// The host takes writes.
    ready: bool,
    /// Runs of the tenant.
    runs: RunCounts,
    /// Open questions of the tenant.
    open_interrupts: u64,
    limits: ShownLimits,
    /// Only for callers with `host:operate`: it is about the host and all its tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<Operator>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunCounts {
    total: u64,
    by_status: BTreeMap<&'static str, u64>,
}

/// What no run may exceed, whatever it asks for; 0 where there is no ceiling.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShownLimits {
    max_node_executions: u64,
    max_run_duration_ms: u64,
    max_nesting_depth: u32,
    max_loop_iterations: u64,
    max_fan_out: u32,
    max_children_per_tree: u64,
    max_memory_entries: u64,
    max_memory_entry_bytes: usize,
    max_workspace_files: u64,
    max_workspace_file_bytes: usize,
    max_value_bytes: u64,
    max_run_bytes: u64,
    max_request_body_bytes: u64,
    max_budget_tokens: u64,
    max_budget_cost_cents: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Operator {
    storage: Storage,
    /// Grows with each failed commit.
    generation: u64,
    /// Why the host does not take writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// What the last start found; absent while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<Recovery>,
    /// Calls since the start of which nobody knew whether they took place.
    unknown_calls: u64,
    /// Links to MCP servers, model providers and other hosts.
    connections: Vec<ShownConnection>,
    /// The newest lines of the host's log, oldest first.
    logs: Vec<LogLine>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Storage {
    /// `unknown` where the store does not say.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Since the start; less than nothing where something was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    grown_bytes: Option<i64>,
    /// About how much of it is what.
    classes: Vec<StorageClass>,
}

#[derive(Serialize, ToSchema)]
struct StorageClass {
    class: &'static str,
    bytes: u64,
    count: u64,
}

#[derive(Serialize, ToSchema)]
struct Recovery {
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Unfinished runs.
    found: u64,
    /// Those that went on at once; the others are tried again.
    resumed: u64,
}

/// What this host is, and how it is (host extension).
#[utoipa::path(get, path = "/v1/host/baton/system", tag = "operations",
    responses((status = 200, description = "`operator` only with the scope host:operate", body = System)))]
pub(crate) async fn get(State(app): State<App>, who: AnyKey, params: Params) -> Result<Response, ApiError> {
    params.only(&[])?;
    let condition = app.host.condition();
    let operator = match who.scopes.allow(Scope::HostOperate) {
        true => Some(operator(&app, &condition).await?),
        false => None,
    };
    let system = System {
        version: app.version.clone(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" },
        licence: env!("CARGO_PKG_LICENSE"),
        host_id: app.host.options().host_id.clone(),
        instance: condition.instance,
        started_at: condition.started_at,
        now: app.host.now(),
        ready: condition.readiness.ready && !app.shutdown.is_cancelled(),
        runs: run_counts(&app, &who.tenant).await?,
        open_interrupts: app.host.open_interrupts(&who.tenant).await?,
        limits: shown(&app.host.options().limits),
        operator,
    };
    Ok(Reply::ok(&system).into_response())
}

async fn run_counts(app: &App, tenant: &TenantId) -> Result<RunCounts, ApiError> {
    let counts = app.host.run_counts(tenant).await?;
    let total = counts.iter().map(|(_, count)| count).sum();
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    Ok(RunCounts { total, by_status: some.map(|(status, count): (RunStatus, _)| (status.as_str(), count)).collect() })
}

async fn operator(app: &App, condition: &HostStatus) -> Result<Operator, ApiError> {
    let StorageUsage { usage, grown } = app.host.held().await?;
    let secrets = &app.host.options().secrets;
    let clean = |line: LogLine| LogLine { message: redact(&line.message, secrets), ..line };
    Ok(Operator {
        storage: Storage {
            kind: if usage.kind.is_empty() { "unknown" } else { usage.kind },
            bytes: usage.bytes,
            grown_bytes: grown,
            classes: usage
                .classes
                .into_iter()
                .map(|class| StorageClass { class: class.class, bytes: class.bytes, count: class.count })
                .collect(),
        },
        generation: condition.generation,
        trouble: condition.readiness.detail.as_deref().map(|reason| redact(reason, secrets)),
        recovery: condition.recovery.map(|recovery| Recovery {
            at: recovery.at,
            found: recovery.found,
            resumed: recovery.resumed,
        }),
        unknown_calls: condition.unknown_calls,
        connections: connections::shown(&app.host),
        logs: app.logs.lines().into_iter().map(clean).collect(),
    })
}

fn shown(limits: &Limits) -> ShownLimits {
    ShownLimits {
        max_node_executions: limits.max_node_executions,
        max_run_duration_ms: limits.max_run_duration_ms,
        max_nesting_depth: limits.max_nesting_depth,
        max_loop_iterations: limits.max_loop_iterations,
        max_fan_out: limits.max_fan_out,
        max_children_per_tree: limits.max_children_per_tree,
        max_memory_entries: limits.max_memory_entries,
        max_memory_entry_bytes: limits.max_memory_entry_bytes,
        max_workspace_files: limits.max_workspace_files,
        max_workspace_file_bytes: limits.max_workspace_file_bytes,
        max_value_bytes: limits.values().max_value_bytes,
        max_run_bytes: limits.values().max_run_bytes,
        max_request_body_bytes: limits.max_request_body_bytes,
        max_budget_tokens: limits.max_budget_tokens,
        max_budget_cost_cents: limits.max_budget_cost_cents,
    }
}
