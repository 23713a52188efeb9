//! A model was asked and has answered. The answer is recorded first, whole and unjudged, so that a crash never pays for
//! it twice; what becomes of the node is decided from the record, and decided again by every replay.

use baton_model::event::{Ending, EnvelopeRefusal, ProviderUsage, ProviderUsageFacts};
use baton_model::{Draft, Event, Fault, ModelReply, NodeId, Timestamp, code};

use super::visit;
use crate::nodes::{Done, Judged, Kind};
use crate::state::{Phase, RunState};

/// The model's answer to one attempt. One that nobody waits for any more changes nothing.
pub(super) fn replied(
    state: &RunState,
    node_id: &NodeId,
    (visit, attempt): (u32, u32),
    reply: &Result<ModelReply, Fault>,
    at: Timestamp,
) -> Vec<Draft> {
    let Some(node) = state.plan.index.get(node_id).copied().filter(|&node| state.asks_model(node)) else {
        return Vec::new();
    };
    let run = &state.nodes[node];
    let Some(call) = run.call.as_ref().filter(|_| (run.visit, run.attempt) == (visit, attempt)) else {
        return Vec::new();
    };
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
        total_tokens: reply.usage.input_tokens.saturating_add(reply.usage.output_tokens),
        node_id: node_id.clone(),
        private: ProviderUsageFacts {
            visit,
            attempt,
            cache_key: Some(call.cache_key()),
            reply: Some(Box::new(reply.clone())),
        },
    };
    vec![Event::from(usage).into()]
}

/// What becomes of a node whose model has answered.
pub(super) fn judged(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let (Kind::StructuredOutput(call), Some(reply)) = (&plan.kind, &state.nodes[node].reply) else { return Vec::new() };
    match call.judge(reply) {
        Judged::Valid(data) => {
            visit::complete(state, node, Done::with([("data".to_owned(), data)].into_iter().collect()), at)
        }
        Judged::Unfit(fault) => visit::fail(state, node, fault, at),
        Judged::Refused => {
            let fault = call.blame(Fault::new(code::ENVELOPE_REFUSAL, "The model refused to answer."));
            let asked = state.nodes[node].call.as_ref();
            let refusal = EnvelopeRefusal {
                node_id: plan.id.clone(),
                provider: asked.map(|asked| asked.provider.clone()).unwrap_or_default(),
                model: asked
                    .map(|asked| reply.model.clone().unwrap_or_else(|| asked.model.clone()))
                    .unwrap_or_default(),
                safety_category: reply.safety_category.clone(),
            };
            let mut drafts = vec![Event::from(refusal).into()];
            drafts.extend(visit::fail(state, node, fault, at));
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
        !over && self.active.contains(&node) && run.call.is_some() && run.reply.is_none() && run.is_running()
    }
}
