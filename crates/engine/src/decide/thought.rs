//! What an agent's model thinks. Pieces are told while it thinks, and recorded as the world's words; the whole comes with
//! its answer and is what counts. A block of pieces is always closed by a whole, whatever becomes of the answer.

use baton_model::event::{AgentReasoned, AgentReasoningDelta, REDACTED};
use baton_model::{Draft, Event, ModelReply, NodeId};
use serde_json::Value;

use super::node_records::spoken;
use crate::invocation::{Invocation, TOLD_PIECES, thought, told as most};
use crate::state::{Phase, RunState};

/// These pieces, if they go on where the last ones ended. Whoever missed one hears no more until the whole is there.
pub(super) fn told(
    state: &RunState,
    node_id: &NodeId,
    (visit, attempt, call): (u32, u32, u32),
    sequence: u32,
    pieces: &[String],
) -> Vec<Draft> {
    let Some(node) = state.plan.index.get(node_id).copied().filter(|&node| state.asks_model(node)) else {
        return Vec::new();
    };
    let run = &state.nodes[node];
    let Some(invocation) = state.invocation(node).filter(|one| one.thinking.pieces == sequence) else {
        return Vec::new();
    };
    let paused = matches!(state.phase, Phase::Paused { .. });
    if (run.visit, run.attempt, run.calls) != (visit, attempt, call) || paused || state.plan.nodes[node].sensitive {
        return Vec::new();
    }
    let verbosity = state.verbosity();
    let mut room = most(verbosity).saturating_sub(invocation.thinking.text.chars().count());
    let mut drafts: Vec<Draft> = Vec::new();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let next = sequence + u32::try_from(drafts.len()).unwrap_or(u32::MAX);
        let delta: String = piece.chars().take(room).collect();
        if delta.is_empty() || next >= TOLD_PIECES {
            break;
        }
        room -= delta.chars().count();
        let event = AgentReasoningDelta {
            agent_id: invocation.card().agent_id.clone(),
            delta,
            sequence: next,
            verbosity: Some(verbosity),
            private: spoken(state, node),
        };
        drafts.push(Event::from(event).into());
    }
    drafts
}

/// What it thought, as far as the run wants to know. Nothing where it gave no reasons, except that an agent which calls
/// something or decides has said something before.
pub(super) fn reasoned(
    state: &RunState,
    node: usize,
    invocation: &Invocation,
    reply: &ModelReply,
    decides: Option<&Value>,
) -> Option<Draft> {
    let told = decides.and_then(|value| value.get("reasoning")).and_then(Value::as_str);
    let pieces = Some(invocation.thinking.text.as_str()).filter(|_| invocation.thinking.is_open());
    let aside = Some(reply.content.as_str()).filter(|_| !reply.tools.is_empty());
    let text = reply.reasoning.as_deref().or(told).or(pieces).or(aside).unwrap_or_default();
    let silent = text.is_empty() && !invocation.thinking.is_open();
    let first_words = !invocation.reasoned && (decides.is_some() || state.rule() >= 3);
    if silent && !first_words && state.rule() >= 2 {
        return None;
    }
    whole(state, node, invocation, text)
}

/// Closes the block that is open: its answer does not count, or will never come.
pub(super) fn closed(state: &RunState, node: usize, reply: Option<&ModelReply>) -> Option<Draft> {
    let invocation = state.invocation(node).filter(|one| one.thinking.is_open())?;
    let text = reply.and_then(|reply| reply.reasoning.as_deref()).unwrap_or(&invocation.thinking.text);
    whole(state, node, invocation, text)
}

fn whole(state: &RunState, node: usize, invocation: &Invocation, text: &str) -> Option<Draft> {
    let verbosity = state.verbosity();
    let reasoning = thought(text, verbosity)?;
    let event = AgentReasoned {
        agent_id: invocation.card().agent_id.clone(),
        reasoning: if state.plan.nodes[node].sensitive { REDACTED.to_owned() } else { reasoning },
        verbosity: Some(verbosity),
        private: spoken(state, node),
    };
    Some(Event::from(event).into())
}
