//! What is told of a call before it returns: that nobody has taken it yet, and how far it is.

use baton_model::event::{REDACTED, RunnerWaiting, ToolProgress};
use baton_model::{Draft, Event, NodeId};

use crate::invocation::OpenCall;
use crate::state::{Phase, RunState};

/// No runner has taken the call yet. Said once, however often it is tried.
pub(super) fn awaited(state: &RunState, node_id: &NodeId, call_id: &str, wait_for_runner_ms: u64) -> Vec<Draft> {
    let Some((_, open)) = open_call(state, node_id, call_id) else { return Vec::new() };
    if open.call.told_waiting {
        return Vec::new();
    }
    let event = RunnerWaiting {
        node_id: node_id.clone(),
        call_id: call_id.to_owned(),
        tool_name: open.tool.id.clone(),
        wait_for_runner_ms,
    };
    vec![Draft { causation: open.call.seq, ..Event::from(event).into() }]
}

/// How far the call is. What it is about is not told where the node's values are sensitive.
pub(super) fn told(
    state: &RunState,
    node_id: &NodeId,
    call_id: &str,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
) -> Vec<Draft> {
    let Some((node, open)) = open_call(state, node_id, call_id) else { return Vec::new() };
    let sensitive = state.plan.nodes[node].sensitive;
    let event = ToolProgress {
        node_id: node_id.clone(),
        call_id: call_id.to_owned(),
        tool_name: open.tool.id.clone(),
        progress,
        total,
        message: message.map(|message| if sensitive { REDACTED.to_owned() } else { message.to_owned() }),
    };
    vec![Draft { causation: open.call.seq, ..Event::from(event).into() }]
}

/// The call, as long as the run waits for it to return.
fn open_call<'a>(state: &'a RunState, node_id: &NodeId, call_id: &str) -> Option<(usize, OpenCall<'a>)> {
    let over = matches!(state.phase, Phase::New | Phase::Ended { .. } | Phase::Ending(_));
    let node = state.plan.index.get(node_id).copied().filter(|node| !over && state.active.contains(node))?;
    let open = state.open_call(node, call_id)?;
    open.call.is_wanted().then_some((node, open))
}
