//! What the program that has a step in hand asked and kept, folded. The node itself asks nobody meanwhile.

use baton_model::Record;
use baton_model::event::{StepAnswer, StepMemo};

use super::invocation::open_call;
use super::lookup::active_node;
use crate::state::RunState;
use crate::step_work::Answered;

pub(super) fn answered(state: &mut RunState, record: &Record, node: usize, answer: &StepAnswer) -> Result<(), String> {
    let StepAnswer { call_id, request, dispatch } = answer.clone();
    let call = open_call(&mut state.nodes[node], &call_id)?;
    call.work.answers.push(Answered { request, dispatch, seq: record.seq });
    Ok(())
}

pub(super) fn kept(state: &mut RunState, record: &Record, event: &StepMemo) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let work = &mut open_call(&mut state.nodes[node], &event.call_id)?.work;
    if work.memo.insert(event.real_key().to_owned(), record.seq).is_some() {
        return Err("there is a value under this key".to_owned());
    }
    work.memo_bytes = work.memo_bytes.saturating_add(event.bytes);
    Ok(())
}
