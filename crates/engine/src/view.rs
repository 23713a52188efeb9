//! The public view of a run: a fold of its log, with what must not be seen left out.

use std::collections::BTreeMap;

use baton_model::event::{REDACTED, RunStarted};
use baton_model::{AgentRef, ChildRun, InterruptView, Metrics, NodeId, NodeStateView, RunSnapshot};
use serde_json::{Map, Value};

use crate::state::{Interrupt, MapRun, Phase, RunState};

/// Version of the record format the log is written in.
pub const EVENT_LOG_SCHEMA_VERSION: u32 = 2;

/// Where a run's metadata says whose it is.
const SUBJECT: &str = "subject";

/// The snapshot of a run that has started.
pub fn snapshot(state: &RunState) -> Option<RunSnapshot> {
    let start = state.start.as_ref()?;
    let event = &start.event;
    let facts = &event.private;
    let channels: Map<String, Value> =
        state.channels.iter().map(|(name, channel)| (name.clone(), masked(state, name, channel.value()))).collect();
    let mut variables: Map<String, Value> =
        state.variables.iter().map(|(name, value)| (name.clone(), masked(state, name, value.clone()))).collect();
    variables.extend(channels.clone());
    let status = state.status();
    let suspended = status.is_waiting();
    let open = state.interrupts.values().min_by_key(|interrupt| interrupt.requested_at);
    Some(RunSnapshot {
        run_id: state.run.clone(),
        workflow_id: event.workflow_id.clone(),
        status,
        current_node_id: state.current_node().filter(|_| !status.is_terminal()).cloned(),
        started_at: Some(start.at),
        completed_at: match &state.phase {
            Phase::Ended { at, .. } => Some(*at),
            _ => None,
        },
        at_seq: state.next_seq.saturating_sub(1),
        inputs: event.inputs.clone(),
        variables,
        channels,
        node_states: node_states(state),
        outputs: state.outputs.clone(),
        error: state.error.clone(),
        interrupt: open.filter(|_| suspended).map(interrupt_view),
        quarantine: None,
        child_runs: state
            .children
            .iter()
            .filter(|child| child.dispatched)
            .map(|child| ChildRun {
                run_id: child.plan.run.clone(),
                workflow_id: child.plan.workflow.clone(),
                node_id: state.plan.nodes[child.node].id.clone(),
                status: child.status,
                host_id: child.remote.as_ref().and_then(|remote| remote.host_id.clone()),
                url: child.remote.as_ref().map(|remote| remote.url.clone()),
            })
            .collect(),
        agent: state.worker.clone(),
        run_orchestrator: state.agent.as_deref().map(AgentRef::new),
        metrics: state.cost.clone().map(|openwop_cost| Metrics { openwop_cost: Some(openwop_cost), tree_cost: None }),
        workspace: Vec::new(),
        parent_run_id: facts.parent.as_ref().map(|parent| parent.run.clone()),
        parent_node_id: facts.parent.as_ref().map(|parent| parent.node.clone()),
        owner: event.owner.clone(),
        tags: event.tags.clone(),
        metadata: metadata(event),
        configurable: facts.configurable.clone(),
        workflow_digest: facts.workflow.as_ref().map(ToString::to_string).unwrap_or_default(),
        event_log_schema_version: EVENT_LOG_SCHEMA_VERSION,
        retention: None,
        forked_from: None,
    })
}

/// What its starter said of it, and whose run it is.
fn metadata(event: &RunStarted) -> Map<String, Value> {
    let mut metadata = event.metadata.clone();
    metadata.insert(SUBJECT.to_owned(), event.owner.run_subject().into());
    metadata
}

fn masked(state: &RunState, name: &str, value: Value) -> Value {
    if state.plan.is_sensitive(name) { REDACTED.into() } else { value }
}

fn node_states(state: &RunState) -> BTreeMap<NodeId, NodeStateView> {
    let visited = state.nodes.iter().zip(&state.plan.nodes).filter(|(run, _)| run.status.is_some());
    visited
        .map(|(run, node)| {
            let view = NodeStateView {
                status: run.status(),
                visit: run.visit,
                attempt: run.attempt,
                error: run.error.clone(),
                progress: run.map.as_deref().map(MapRun::progress),
            };
            (node.id.clone(), view)
        })
        .collect()
}

fn interrupt_view(interrupt: &Interrupt) -> InterruptView {
    InterruptView {
        kind: interrupt.kind.clone(),
        node_id: interrupt.node.clone(),
        interrupt_id: interrupt.interrupt_id.clone(),
        key: interrupt.key.clone(),
        data: interrupt.data.clone(),
        payload: interrupt.data.clone(),
        resume_schema: interrupt.resume_schema.clone(),
        requested_at: interrupt.requested_at,
        expires_at: interrupt.expires_at,
        interrupt_token: None,
        callback_url: None,
    }
}
