//! What a model said becomes part of the run before anybody judges it.

use std::sync::Arc;

use baton_model::NodeStatus;
use baton_model::event::ProviderUsage;

use super::active_node;
use crate::state::RunState;

pub(super) fn replied(state: &mut RunState, event: &ProviderUsage) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let run = &mut state.nodes[node];
    let facts = &event.private;
    if run.status() != NodeStatus::Running || run.call.is_none() || run.reply.is_some() {
        return Err("the node asks no model".to_owned());
    }
    if (run.visit, run.attempt) != (facts.visit, facts.attempt) {
        return Err("another attempt asked that".to_owned());
    }
    let reply = facts.reply.clone().ok_or("the answer is missing")?;
    run.reply = Some(Arc::from(reply));
    Ok(())
}
