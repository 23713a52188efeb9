//! A model was asked and has answered. The answer is recorded first, whole and unjudged, so that a crash never pays for
//! it twice; what becomes of the node is decided from the record, and decided again by every replay.

use baton_model::event::{EnvelopeRecoveryApplied, ModelRetried, ModelRetriedFacts, ProviderUsage, ProviderUsageFacts};
use baton_model::{Draft, Event, Fault, ModelReply, NodeId, SemanticRequest, Timestamp, Usage};

use super::{answer, finish, thought};
use crate::command::Made;
use crate::conversation::model_request;
use crate::envelope::{Answered, Verdict};
use crate::nodes::Done;
use crate::plan::Kind;
use crate::state::{Phase, RunState};

/// How often a call is made again whose answer broke off. A vendor that fails four times in a row fails a fifth time.
const MOST_TIMES: u32 = 3;
/// The pause before the first of them; each further one is twice as long.
const PAUSE_MS: u64 = 1_000;
/// How many of a provider's own attempts are told of. Its settings say how many there are.
const MOST_TOLD: usize = 16;

/// The node that waits for this very call.
fn waiting(state: &RunState, node_id: &NodeId, place: (u32, u32, u32)) -> Option<usize> {
    let node = state.plan.index.get(node_id).copied().filter(|&node| state.asks_model(node))?;
    let run = &state.nodes[node];
    ((run.visit, run.attempt, run.calls) == place).then_some(node)
}

/// The model's answer to one attempt. One that nobody waits for any more changes nothing.
pub(super) fn replied(
    state: &RunState,
    node_id: &NodeId,
    place: (u32, u32, u32),
    reply: &Result<ModelReply, Fault>,
    cost_usd: Option<f64>,
    made: &Made,
    at: Timestamp,
) -> Vec<Draft> {
    let Some(node) = waiting(state, node_id, place) else { return Vec::new() };
    let Some(call) = model_request(state, node) else { return Vec::new() };
    let mut drafts = asked_again(state, node, &call, made);
    match reply {
        Ok(reply) => {
            let used = Used { usage: &reply.usage, model: reply.model.as_deref(), cost_usd, cap: made.cap };
            drafts.push(used.told(&call, node_id, place, Some(Box::new(answer::bounded(reply)))));
        }
        // A paused run goes nowhere; it asks again when it is resumed.
        Err(_) if matches!(state.phase, Phase::Paused { .. }) => return Vec::new(),
        Err(fault) => drafts.extend(finish::fail(state, node, fault.clone(), at)),
    }
    drafts
}

/// An answer that broke off.
pub(super) struct Broken<'a> {
    pub(super) fault: &'a Fault,
    pub(super) again: bool,
    pub(super) usage: Option<&'a Usage>,
    pub(super) cost_usd: Option<f64>,
}

/// The answer came to nothing. What it used is counted, and the same call is made again, a few times: whatever was
/// answered before stays. Then the attempt fails.
pub(super) fn broke(
    state: &RunState,
    node_id: &NodeId,
    place: (u32, u32, u32),
    broken: &Broken<'_>,
    made: &Made,
    at: Timestamp,
) -> Vec<Draft> {
    let Broken { fault, again, usage, cost_usd } = *broken;
    if state.rule() < 4 {
        return replied(state, node_id, place, &Err(fault.clone()), None, &Made::default(), at);
    }
    let Some(node) = waiting(state, node_id, place) else { return Vec::new() };
    let Some(call) = model_request(state, node) else { return Vec::new() };
    let paused = matches!(state.phase, Phase::Paused { .. });
    let mut drafts = asked_again(state, node, &call, made);
    drafts.extend(usage.filter(|usage| usage.total() > 0).map(|usage| {
        let used = Used { usage, model: None, cost_usd, cap: made.cap };
        used.told(&call, node_id, place, None)
    }));
    let times = state.nodes[node].broken;
    if paused {
        // It asks again when it is resumed.
        return drafts;
    }
    if !again || times >= MOST_TIMES {
        drafts.extend(finish::fail(state, node, fault.clone().with("attempts", times + 1), at));
        return drafts;
    }
    let delay_ms = PAUSE_MS << times;
    let (visit, attempt, number) = place;
    let private = ModelRetriedFacts { visit, attempt, call: number, not_before: Some(at.plus_millis(delay_ms)) };
    let (provider, model) = (call.provider.clone(), call.model.clone());
    let event = ModelRetried {
        node_id: node_id.clone(),
        provider,
        model,
        attempt: times + 2,
        begun: true,
        delay_ms: Some(delay_ms),
        error: fault.clone(),
        private,
    };
    drafts.extend(thought::closed(state, node, None));
    drafts.push(Event::from(event).into());
    drafts
}

/// What the provider did before an answer began.
fn asked_again(state: &RunState, node: usize, call: &SemanticRequest, made: &Made) -> Vec<Draft> {
    if state.rule() < 4 {
        return Vec::new();
    }
    let run = &state.nodes[node];
    let told = made.retried.iter().take(MOST_TOLD).zip(2..).map(|(error, attempt)| {
        let private = ModelRetriedFacts { visit: run.visit, attempt: run.attempt, call: run.calls, not_before: None };
        let event = ModelRetried {
            node_id: state.plan.nodes[node].id.clone(),
            provider: call.provider.clone(),
            model: call.model.clone(),
            attempt,
            begun: false,
            delay_ms: None,
            error: error.clone(),
            private,
        };
        Event::from(event).into()
    });
    told.collect()
}

/// What a call took.
struct Used<'a> {
    usage: &'a Usage,
    /// Who really answered, where it is not who was asked.
    model: Option<&'a str>,
    cost_usd: Option<f64>,
    cap: Option<u64>,
}

impl Used<'_> {
    fn told(
        &self,
        call: &SemanticRequest,
        node_id: &NodeId,
        (visit, attempt, number): (u32, u32, u32),
        reply: Option<Box<ModelReply>>,
    ) -> Draft {
        let Self { usage, model, cost_usd, cap } = *self;
        let event = ProviderUsage {
            provider: call.provider.clone(),
            model: model.unwrap_or(&call.model).to_owned(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total(),
            cost_estimate_usd: cost_usd,
            cache_hit: None,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            node_id: node_id.clone(),
            private: ProviderUsageFacts {
                visit,
                attempt,
                call: number,
                cache_key: Some(call.capped(cap).cache_key()),
                reply,
                cap,
                step: None,
            },
        };
        Event::from(event).into()
    }
}

/// What becomes of a node whose model has answered.
pub(super) fn judged(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    if let Some(invocation) = state.invocation(node) {
        return answer::judged(state, node, invocation, at);
    }
    let (plan, run) = (&state.plan.nodes[node], &state.nodes[node]);
    let (Kind::StructuredOutput(call), Some(reply)) = (&plan.kind, &run.reply) else { return Vec::new() };
    let Some(request) = model_request(state, node) else { return Vec::new() };
    let answered = Answered {
        node: &plan.id,
        request: &request,
        reply,
        asked: &run.asked,
        shape: call.shape(),
        rule: state.rule(),
    };
    match call.judge(reply, state.rule()) {
        Verdict::Fits { value, recovered } => {
            let recovered = recovered.map(|path| EnvelopeRecoveryApplied { node_id: plan.id.clone(), path });
            let mut drafts: Vec<Draft> = recovered.map(|event| Event::from(event).into()).into_iter().collect();
            let outputs = [("data".to_owned(), value)].into_iter().collect();
            drafts.extend(finish::complete(state, node, Done::with(outputs), at));
            drafts
        }
        Verdict::Unfit(unfit) => {
            let (mut drafts, fault) = answered.again(&unfit);
            drafts.extend(fault.into_iter().flat_map(|fault| finish::fail(state, node, fault, at)));
            drafts
        }
        Verdict::Refused => {
            let (refusal, fault) = answered.refused();
            let mut drafts = vec![refusal];
            drafts.extend(finish::failed_for_good(state, node, run.attempt, fault));
            drafts
        }
    }
}
