//! What the program that has a step in hand tells of it before it returns: the answers of models it asked, and the values it
//! keeps. Whoever asks too late is refused, so that nothing is answered that the log does not have.

use baton_model::event::{ProviderUsage, ProviderUsageFacts, REDACTED, StepAnswer, StepMemo, StepMemoFacts};
use baton_model::{Draft, Event, NodeId, code, json};
use serde_json::Value;

use super::answer;
use crate::command::{Refusal, RefusalKind};
use crate::depth;
use crate::invocation::OpenCall;
use crate::state::{Phase, RunState};
use crate::step_work::{MOST_CALLS, MOST_KEY_CHARS, MOST_KEYS, MOST_MEMO_BYTES, MOST_MEMO_BYTES_OF_STEP, StepAsked};

/// A model has answered the step. It is recorded even if nobody knows by now what became of the step: it has been paid for.
pub(super) fn asked(
    state: &RunState,
    node_id: &NodeId,
    call_id: &str,
    asked: &StepAsked,
) -> Result<Vec<Draft>, Refusal> {
    let (node, open) = open_step(state, node_id, call_id)?;
    if open.call.work.is_full() {
        let message = format!("This step has asked models {MOST_CALLS} times; that is all that one step may.");
        return Err(too_many(message, MOST_CALLS));
    }
    let run = &state.nodes[node];
    let StepAsked { request, dispatch, provider, model, reply, usage, cost_usd, cap } = asked;
    let answered = reply.as_ref().and_then(|reply| reply.model.as_ref());
    let event = ProviderUsage {
        provider: provider.clone(),
        model: answered.unwrap_or(model).clone(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        total_tokens: usage.total(),
        cost_estimate_usd: *cost_usd,
        cache_hit: None,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        node_id: node_id.clone(),
        private: ProviderUsageFacts {
            visit: run.visit,
            attempt: run.attempt,
            call: u32::try_from(open.call.work.answers.len()).unwrap_or(u32::MAX),
            cache_key: None,
            reply: reply.as_ref().map(|reply| Box::new(answer::bounded(reply))),
            cap: *cap,
            step: Some(Box::new(StepAnswer {
                call_id: call_id.to_owned(),
                request: request.clone(),
                dispatch: dispatch.clone(),
            })),
        },
    };
    Ok(vec![Draft { causation: open.call.seq, ..Event::from(event).into() }])
}

/// A value is kept, unless there is one under this key.
pub(super) fn kept(
    state: &RunState,
    node_id: &NodeId,
    call_id: &str,
    key: &str,
    value: &Value,
) -> Result<Vec<Draft>, Refusal> {
    let (node, open) = open_step(state, node_id, call_id)?;
    if !(1..=MOST_KEY_CHARS).contains(&key.chars().count()) {
        return Err(Refusal::invalid(format!("A key has 1 to {MOST_KEY_CHARS} characters.")));
    }
    let work = &open.call.work;
    if work.memo(key).is_some() {
        return Ok(Vec::new());
    }
    depth::check("value", value).map_err(|fault| Refusal { kind: RefusalKind::Invalid, fault })?;
    let bytes = json::size(value);
    if bytes > MOST_MEMO_BYTES as u64 {
        let message = format!("The value has {bytes} bytes, more than the {MOST_MEMO_BYTES} that are kept.");
        return Err(Refusal::new(RefusalKind::Unprocessable, code::PAYLOAD_TOO_LARGE, message)
            .with("limitBytes", MOST_MEMO_BYTES));
    }
    if work.memo.len() >= MOST_KEYS {
        return Err(too_many(format!("This step keeps {MOST_KEYS} values; that is all that one step may."), MOST_KEYS));
    }
    if work.memo_bytes.saturating_add(bytes) > MOST_MEMO_BYTES_OF_STEP {
        let message = format!("The values of a step may have {MOST_MEMO_BYTES_OF_STEP} bytes together.");
        return Err(Refusal::new(RefusalKind::Unprocessable, code::PAYLOAD_TOO_LARGE, message)
            .with("limitBytes", MOST_MEMO_BYTES_OF_STEP));
    }
    let hides = state.plan.nodes[node].sensitive;
    let event = StepMemo {
        node_id: node_id.clone(),
        call_id: call_id.to_owned(),
        tool_name: open.tool.id.clone(),
        key: if hides { REDACTED.to_owned() } else { key.to_owned() },
        bytes,
        private: StepMemoFacts { key: hides.then(|| key.to_owned()), value: value.clone() },
    };
    Ok(vec![Draft { causation: open.call.seq, ..Event::from(event).into() }])
}

fn too_many(message: String, limit: usize) -> Refusal {
    Refusal::new(RefusalKind::Unprocessable, code::CAP_BREACHED, message).with("limit", limit)
}

/// The call that is the step, as long as it has not returned.
fn open_step<'a>(state: &'a RunState, node_id: &NodeId, call_id: &str) -> Result<(usize, OpenCall<'a>), Refusal> {
    let over = matches!(state.phase, Phase::New | Phase::Ended { .. });
    let node = state.plan.index.get(node_id).copied().filter(|node| !over && state.active.contains(node));
    let open = node.and_then(|node| Some((node, state.open_call(node, call_id)?)));
    open.filter(|(_, open)| open.is_external()).ok_or_else(|| {
        let message = "The run does not wait for this step any more.";
        Refusal::new(RefusalKind::Conflict, code::STEP_NOT_LEASED, message)
    })
}
