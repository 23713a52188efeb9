//! For whom a run calls tools, with which scopes, and whether for real.

use baton_engine::ToolCall;
use baton_model::{Owner, SideEffects, TraceContext, tenant_subject};

use crate::run::live::LiveRun;
use crate::services::tools::invocation::ToolInvocation;

/// A tool call on behalf of a run.
pub(super) fn invocation(head: &LiveRun, call: Box<ToolCall>, trace: Option<TraceContext>) -> ToolInvocation {
    let (principal, scopes) = on_behalf(head);
    let (tenant, simulated) = (head.row.tenant.clone(), simulates(head));
    ToolInvocation { call, tenant, principal, subject: subject(head), scopes, trace, simulated }
}

/// Whose runners do steps of a run.
fn subject(head: &LiveRun) -> String {
    let started = head.state.started();
    let own = started.map(|started| &started.owner).filter(|owner| owner.tenant == head.row.tenant);
    own.map_or_else(|| tenant_subject(&head.row.tenant), Owner::run_subject)
}

/// On whose behalf a run calls tools, and with which scopes; `None` means all.
pub(crate) fn on_behalf(head: &LiveRun) -> (String, Option<Vec<String>>) {
    let started = head.state.started();
    // Somebody of another tenant, whom only a file speaks of, is nobody here.
    let own = started.map(|started| &started.owner).filter(|owner| owner.tenant == head.row.tenant);
    let principal = own.and_then(|owner| owner.principal.clone()).unwrap_or_default();
    (principal, started.and_then(|started| started.private.tool_scopes.clone()))
}

/// Whether calls of this run are answered from the record: it, or the run it descends from, is such a branch.
pub(crate) fn simulates(head: &LiveRun) -> bool {
    match &head.row.origin {
        Some(origin) => origin.side_effects == SideEffects::Simulated,
        None => head.state.started().is_some_and(|started| started.private.simulated),
    }
}
