//! A model was asked and has answered. The answer is recorded first, whole and unjudged, so that a crash never pays for
//! it twice; what becomes of the node is decided from the record, and decided again by every replay.

use baton_model::event::{Ending, EnvelopeRecoveryApplied, ProviderUsage, ProviderUsageFacts};
use baton_model::{Draft, Event, Fault, ModelReply, NodeId, Timestamp};

use super::{answer, visit};
use crate::envelope::{Answered, Verdict};
use crate::nodes::{Done, Kind};
use crate::state::{Phase, RunState};

/// The model's answer to one attempt. One that nobody waits for any more changes nothing.
pub(super) fn replied(
    state: &RunState,
    node_id: &NodeId,
    (visit, attempt, number): (u32, u32, u32),
    reply: &Result<ModelReply, Fault>,
    cost_estimate_usd: Option<f64>,
    at: Timestamp,
) -> Vec<Draft> {
    let Some(node) = state.plan.index.get(node_id).copied().filter(|&node| state.asks_model(node)) else {
        return Vec::new();
    };
    let run = &state.nodes[node];
    if (run.visit, run.attempt, run.calls) != (visit, attempt, number) {
        return Vec::new();
    }
    let Some(call) = state.question(node) else { return Vec::new() };
    let reply = match reply {
        Ok(reply) => reply,
        // A paused run goes nowhere; it asks again when it is resumed.
        Err(_) if matches!(state.phase, Phase::Paused { .. }) => return Vec::new(),
        Err(fault) => return visit::fail(state, node, fault.clone(), at),
    };
    let usage = ProviderUsage {
        provider: call.provider.clone(),
        model: reply.model.clone().unwrap_or_else(|| call.model.clone()),
        input_tokens: reply.usage.input_tokens,
        output_tokens: reply.usage.output_tokens,
        total_tokens: reply.usage.total(),
        cost_estimate_usd,
        cache_hit: None,
        cache_read_tokens: reply.usage.cache_read_tokens,
        cache_write_tokens: reply.usage.cache_write_tokens,
        node_id: node_id.clone(),
        private: ProviderUsageFacts {
            visit,
            attempt,
            call: number,
            cache_key: Some(call.cache_key()),
            reply: Some(Box::new(answer::bounded(reply))),
        },
    };
    vec![Event::from(usage).into()]
}

/// What becomes of a node whose model has answered.
pub(super) fn judged(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    if let Some(invocation) = state.invocation(node) {
        return answer::judged(state, node, invocation, at);
    }
    let (plan, run) = (&state.plan.nodes[node], &state.nodes[node]);
    let (Kind::StructuredOutput(call), Some(reply)) = (&plan.kind, &run.reply) else { return Vec::new() };
    let Some(request) = state.question(node) else { return Vec::new() };
    let answered = Answered {
        node: &plan.id,
        request: &request,
        reply,
        asked: &run.asked,
        shape: call.shape(),
        rule: state.rule(),
    };
    match call.judge(reply) {
        Verdict::Fits { value, recovered } => {
            let recovered = recovered.map(|path| EnvelopeRecoveryApplied { node_id: plan.id.clone(), path });
            let mut drafts: Vec<Draft> = recovered.map(|event| Event::from(event).into()).into_iter().collect();
            let outputs = [("data".to_owned(), value)].into_iter().collect();
            drafts.extend(visit::complete(state, node, Done::with(outputs), at));
            drafts
        }
        Verdict::Unfit(unfit) => {
            let (mut drafts, fault) = answered.again(&unfit);
            drafts.extend(fault.into_iter().flat_map(|fault| visit::fail(state, node, fault, at)));
            drafts
        }
        Verdict::Refused => {
            let (refusal, fault) = answered.refused();
            let mut drafts = vec![refusal];
            drafts.extend(visit::failed_for_good(state, node, run.attempt, fault));
            drafts
        }
    }
}

impl RunState {
    /// Whether the node waits for a model.
    pub(crate) fn asks_model(&self, node: usize) -> bool {
        let over = match &self.phase {
            Phase::New | Phase::Ended { .. } => true,
            Phase::Ending(ending) => !matches!(ending, Ending::Paused(_)),
            Phase::Active | Phase::Paused { .. } => false,
        };
        let run = &self.nodes[node];
        let asks = run.call.is_some() || self.invocation(node).is_some_and(|invocation| invocation.asks_model());
        !over && self.active.contains(&node) && asks && run.reply.is_none() && run.is_running()
    }
}
