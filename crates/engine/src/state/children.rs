//! The children that a run has asked for.

use baton_model::{NodeId, RunId};

use super::parts::Child;
use super::run_state::RunState;

impl RunState {
    /// Every child that the run has wanted so far, with the node that wanted it, in that order.
    pub fn planned_children(&self) -> impl Iterator<Item = (&NodeId, &RunId)> {
        self.children.iter().map(|child| (&self.plan.nodes[child.node].id, &child.plan.run))
    }

    /// Those of them that were asked for before this record.
    pub fn children_before(&self, seq: u64) -> impl Iterator<Item = &RunId> {
        self.children.iter().filter(move |child| child.planned.seq < seq).map(|child| &child.plan.run)
    }

    pub(crate) fn live_children(&self) -> impl Iterator<Item = &Child> {
        self.live.iter().map(|&child| &self.children[child])
    }

    pub(crate) fn live_child(&self, run: &RunId) -> Option<&Child> {
        self.live_children().find(|child| child.plan.run == *run)
    }

    /// No child is under way. Only then does what is remembered and written belong to this log alone: children run ahead
    /// of what their parent has heard of them.
    pub fn is_alone(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether this run still waits for the end of a child.
    pub fn awaits_child(&self, run: &RunId) -> bool {
        self.live_child(run).is_some()
    }

    pub(crate) fn has_live_child(&self, node: usize) -> bool {
        self.live_children().any(|child| child.node == node)
    }
}
