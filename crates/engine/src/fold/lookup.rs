//! The node that a record is about.

use baton_model::NodeId;

use crate::state::RunState;

pub(super) fn known_node(state: &RunState, node: &NodeId) -> Result<usize, String> {
    state.plan.index.get(node).copied().ok_or_else(|| format!("there is no node `{node}`"))
}

pub(super) fn active_node(state: &RunState, node: &NodeId) -> Result<usize, String> {
    let index = known_node(state, node)?;
    state.active.contains(&index).then_some(index).ok_or_else(|| format!("node `{node}` is not active"))
}
