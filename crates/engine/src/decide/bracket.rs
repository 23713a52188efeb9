//! The end of an agent's invocation: whoever says how it ended closes the bracket that its start opened.

use baton_model::event::{AgentInvocationCompleted, InvocationOutcome};
use baton_model::{Draft, Event};

use super::node_records::place;
use super::{open_calls, thought};
use crate::state::RunState;

/// Closes the bracket of a node whose agent is still at work.
pub(super) fn close(
    state: &RunState,
    node: usize,
    outcome: InvocationOutcome,
    confidence: Option<f64>,
) -> Option<Draft> {
    let invocation = state.invocation(node)?;
    let answered =
        matches!(outcome, InvocationOutcome::Completed | InvocationOutcome::HandedOff | InvocationOutcome::Escalated);
    let validated = answered && invocation.promised(&state.plan.nodes[node].kind, state.rule());
    let event = AgentInvocationCompleted {
        invocation_id: invocation.id.clone(),
        agent_id: invocation.card().agent_id.clone(),
        outcome,
        schema_validated: validated.then_some(true),
        confidence,
        private: place(state, node),
    };
    Some(Event::from(event).into())
}

/// Something ends the attempt while its agent, or a call of its own, is under way: calls that are open end unheard, and
/// the bracket closes.
pub(super) fn stop(state: &RunState, node: usize) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = thought::closed(state, node, None).into_iter().collect();
    drafts.extend(open_calls::abandoned(state, node));
    drafts.extend(close(state, node, InvocationOutcome::Failed, None));
    drafts
}
