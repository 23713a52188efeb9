//! Budgets, folded.

use baton_model::event::BudgetExhausted;
use baton_model::{NodeStatus, Record, RunStatus};

use super::lookup::active_node;
use super::node::end_child;
use crate::state::RunState;

/// The node keeps what it would have done. Whoever is asked gets the time it takes.
pub(super) fn exhausted(state: &mut RunState, event: &BudgetExhausted) -> Result<(), String> {
    let held = &event.private;
    let node = active_node(state, &held.node_id)?;
    let run = &mut state.nodes[node];
    run.deadline = None;
    run.over_budget = Some(Box::new(held.clone()));
    if let Some(retry) = &held.retry {
        // The attempt is over, as it is when another one follows.
        run.reply = None;
        run.effect = None;
        run.error = Some(retry.last_error.clone());
        end_child(state, node, RunStatus::Failed);
    }
    Ok(())
}

/// The question is decided: a node that goes on has its time again.
pub(super) fn decided(state: &mut RunState, node: usize, record: &Record) {
    let run = &mut state.nodes[node];
    if run.over_budget.take().is_some() && run.status() == NodeStatus::Running {
        run.deadline = state.plan.nodes[node].timeout_ms.map(|ms| record.at.plus_millis(ms));
    }
}
