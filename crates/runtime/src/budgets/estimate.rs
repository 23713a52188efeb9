//! How much a call will use, before anybody knows.

use baton_model::{ModelRequest, Usage};
use baton_provider::{Prices, estimated_input};

/// What an answer takes where nobody bounds it; most take less.
const USUAL_ANSWER: u64 = 1024;
/// A bound on an answer is often generous. What is set aside for one is not.
const LARGEST_ANSWER: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) tokens: u64,
    pub(super) nanos: u64,
}

pub(super) fn of(request: &ModelRequest, prices: &Prices) -> Estimate {
    let asked = &request.semantic;
    let usage = Usage {
        input_tokens: estimated_input(asked),
        output_tokens: asked.max_output_tokens.unwrap_or(USUAL_ANSWER).clamp(1, LARGEST_ANSWER),
        ..Usage::default()
    };
    let cost = cost(prices, &asked.provider, &asked.model, &usage).unwrap_or(0.0);
    Estimate { tokens: usage.total(), nanos: baton_model::budget::nanos(cost) }
}

/// What a call cost. A price may be that of a provider's model, or of a model wherever it is.
pub(crate) fn cost(prices: &Prices, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
    prices.estimate(&format!("{provider}/{model}"), usage).or_else(|| prices.estimate(model, usage))
}

pub(crate) fn has_price(prices: &Prices, provider: &str, model: &str) -> bool {
    cost(prices, provider, model, &Usage::default()).is_some()
}
