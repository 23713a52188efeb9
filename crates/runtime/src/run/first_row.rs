//! The row of a run that is about to begin.

use baton_engine::{Plan, Start};
use baton_model::event::RunSettings;
use baton_model::{Limits, RunId, RunStatus, TenantId, Timestamp};
use baton_store::{LogChain, RunRow};

use crate::Options;

/// The row of a run that has no records yet.
pub(crate) fn first_row(run: &RunId, tenant: &TenantId, plan: &Plan, start: &Start, at: Timestamp) -> RunRow {
    RunRow {
        id: run.clone(),
        tenant: tenant.clone(),
        workflow: plan.id().clone(),
        digest: plan.digest().clone(),
        status: RunStatus::Pending,
        created_at: at,
        updated_at: at,
        next_seq: 0,
        wake_at: None,
        busy: true,
        parent: start.settings.parent.as_ref().map(|link| link.run.clone()),
        root: start.settings.parent.as_ref().map(|link| link.root.clone()),
        scope: start.settings.scope_id.clone(),
        tags: start.tags.clone(),
        current_node: None,
        error_code: None,
        memory_scope: memory_scope(run, start).to_owned(),
        workspace_scope: baton_model::workspace::DEFAULT_WORKSPACE.to_owned(),
        origin: None,
        pruned: None,
        summary: None,
        chain: LogChain::default(),
    }
}

/// The tightest of what was asked, what the workflow sets and what the host allows.
pub(crate) fn duration_bound(limits: &Limits, plan: &Plan, asked: Option<u64>) -> u64 {
    let own = plan.definition().settings.timeout.filter(|&ms| ms > 0);
    [asked, own].into_iter().flatten().fold(limits.max_run_duration_ms, u64::min)
}

/// Where the run remembers: what an isolated ancestor or the caller named, else the tree's own scope.
pub(crate) fn memory_scope<'a>(run: &'a RunId, start: &'a Start) -> &'a str {
    let root = start.settings.parent.as_ref().map(|link| link.root.as_str());
    start.settings.memory_scope.as_deref().or(start.settings.scope_id.as_deref()).or(root).unwrap_or(run.as_str())
}

/// What every run is pinned to that begins on this host, unless it asks for something else.
pub(crate) fn of_this_host(options: &Options) -> RunSettings {
    let limits = &options.limits;
    RunSettings {
        max_node_executions: limits.max_node_executions,
        max_duration_ms: limits.max_run_duration_ms,
        max_loop_iterations: limits.max_loop_iterations,
        max_fan_out: limits.max_fan_out,
        escalation: Box::new(options.escalation.clone()),
        values: Some(Box::new(limits.values())),
        context: Some(options.context),
        ..RunSettings::default()
    }
}
