//! How much a call will use at most, before anybody knows.

use baton_model::budget::{Dimension, nanos};
use baton_model::{ModelRequest, Usage};
use baton_provider::{Prices, upper_bound_input};

/// Room for an answer where nobody bounds it. An answer that needs more is asked for again with more.
const USUAL_ROOM: u64 = 8192;
/// Less room than this says nothing, and some vendors take no less.
const LEAST_ROOM: u64 = 16;
/// Prices are for so many tokens.
const MILLION: u64 = 1_000_000;

/// What is asked, on the careful side, and the room that its answer would have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) prompt_tokens: u64,
    pub(crate) prompt_nanos: u64,
    pub(crate) room: u64,
    /// What a token of the answer costs, in billionths of a dollar.
    pub(crate) nanos_per_token: f64,
}

impl Estimate {
    /// What the call takes with so much room for its answer.
    pub(crate) fn takes(&self, dimension: Dimension, room: u64) -> u64 {
        match dimension {
            Dimension::Cost => self.prompt_nanos.saturating_add((room as f64 * self.nanos_per_token).ceil() as u64),
            _ => self.prompt_tokens.saturating_add(room),
        }
    }

    /// The room that is left for the answer where this much is.
    pub(crate) fn room_in(&self, dimension: Dimension, left: u64) -> u64 {
        match dimension {
            Dimension::Cost if self.nanos_per_token <= 0.0 => self.room,
            Dimension::Cost => (left.saturating_sub(self.prompt_nanos) as f64 / self.nanos_per_token).floor() as u64,
            _ => left.saturating_sub(self.prompt_tokens),
        }
    }

    /// The least room that is worth asking for.
    pub(crate) fn least_room(&self) -> u64 {
        self.room.min(LEAST_ROOM)
    }
}

/// `room` is what the provider would let the answer take.
pub(crate) fn of(request: &ModelRequest, room: Option<u64>, prices: &Prices) -> Estimate {
    let asked = &request.semantic;
    let dollars = |usage: &Usage| cost(prices, &asked.provider, &asked.model, usage).unwrap_or(0.0);
    let prompt_tokens = upper_bound_input(asked);
    // Whether the vendor reads it from its cache, puts it there or neither: whatever costs most.
    let plain = Usage { input_tokens: prompt_tokens, ..Usage::default() };
    let read = Usage { cache_read_tokens: Some(prompt_tokens), ..plain };
    let written = Usage { cache_write_tokens: Some(prompt_tokens), ..plain };
    let dearest = [plain, read, written].iter().map(dollars).fold(0.0, f64::max);
    let said = dollars(&Usage { output_tokens: MILLION, ..Usage::default() });
    Estimate {
        prompt_tokens,
        prompt_nanos: nanos(dearest),
        room: room.unwrap_or(USUAL_ROOM).max(1),
        nanos_per_token: nanos(said) as f64 / MILLION as f64,
    }
}

/// What a call cost. A price may be that of a provider's model, or of a model wherever it is.
pub(crate) fn cost(prices: &Prices, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
    prices.estimate(&format!("{provider}/{model}"), usage).or_else(|| prices.estimate(model, usage))
}

pub(crate) fn has_price(prices: &Prices, provider: &str, model: &str) -> bool {
    cost(prices, provider, model, &Usage::default()).is_some()
}
