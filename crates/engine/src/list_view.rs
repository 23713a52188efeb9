//! What lists say of a run, without making its whole view.

use baton_model::event::RunPaused;
use baton_model::{Cost, MapProgress, NodeId, RunId};

use crate::state::{Interrupt, MapRun, Phase, RunState};

/// A run at a glance.
#[derive(Clone, Copy, Debug)]
pub struct ListView<'a> {
    /// The newest turn of the supervisor, and how many it may take.
    pub turn: Option<(u64, u64)>,
    /// The question that has been open longest, and how many are.
    pub question: Option<&'a Interrupt>,
    pub open: usize,
    /// The node and its child that waits, where the run itself asks nothing.
    pub waits_below: Option<(&'a NodeId, &'a RunId)>,
    pub cost: Option<&'a Cost>,
    pub pause: Option<&'a RunPaused>,
    /// Runs that this one started.
    pub children: usize,
    /// How far the first of its maps has come, while any is under way.
    pub progress: Option<MapProgress>,
}

pub fn list_view(state: &RunState) -> ListView<'_> {
    let bound = || state.start.as_ref().map(|start| start.event.private.max_loop_iterations);
    let waits = || state.live_children().find(|child| child.status.is_waiting());
    let question = state.interrupts.values().min_by_key(|interrupt| interrupt.requested_at);
    ListView {
        turn: Some(state.turns).filter(|turns| *turns > 0).and_then(|turns| Some((turns, bound()?))),
        question,
        open: state.interrupts.len(),
        waits_below: match question {
            Some(_) => None,
            None => waits().map(|child| (&state.plan.nodes[child.node].id, &child.plan.run)),
        },
        cost: state.cost.as_ref(),
        pause: match &state.phase {
            Phase::Paused { request, .. } => Some(request),
            _ => None,
        },
        children: state.children.len(),
        progress: state.active.iter().find_map(|&node| state.nodes[node].map.as_deref().map(MapRun::progress)),
    }
}
