//! Text that comes in pieces: those that are due, and the end of the visit after the last.

use baton_model::event::OutputChunk;
use baton_model::{Draft, Event, Timestamp};
use serde_json::json;

use super::chunks::{Chunks, chunks};
use crate::decide::finish::finish;
use crate::nodes::outcome::Done;
use crate::state::RunState;

/// Emits the chunks that are due, and completes after the last.
pub(crate) fn stream(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    let run = &state.nodes[node];
    let Some(plan) = chunks(state.configurable().get("mockProvider")) else { return Vec::new() };
    let since = at.millis_since(run.started_at);
    let due = since.checked_div(plan.delay_ms).map_or(plan.tokens.len(), |n| n as usize).min(plan.tokens.len());
    emit(state, node, run.attempt, &plan, run.chunks..due, at)
}

/// All of a stream in one step.
pub(crate) fn all_chunks(state: &RunState, node: usize, attempt: u32, chunks: &Chunks, at: Timestamp) -> Vec<Draft> {
    emit(state, node, attempt, chunks, 0..chunks.tokens.len(), at)
}

/// These chunks of a stream as drafts, and its completion after the last.
fn emit(
    state: &RunState,
    node: usize,
    attempt: u32,
    plan: &Chunks,
    range: std::ops::Range<usize>,
    at: Timestamp,
) -> Vec<Draft> {
    let count = plan.tokens.len();
    let end = range.end;
    let mut drafts: Vec<Draft> = range
        .map(|i| {
            let is_last = i + 1 == count;
            let event = OutputChunk {
                node_id: state.plan.nodes[node].id.clone(),
                run_id: state.run.clone(),
                chunk: plan.tokens[i].clone(),
                is_last,
                meta: is_last.then(|| plan.meta.clone()),
            };
            Event::from(event).into()
        })
        .collect();
    if end >= count {
        let outputs = [("text".to_owned(), json!(plan.tokens.concat()))].into_iter().collect();
        drafts.extend(finish(state, node, attempt, Done::with(outputs), at));
    }
    drafts
}
