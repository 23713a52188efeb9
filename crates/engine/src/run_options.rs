//! What a run says about how its models are asked, where the node that asks says nothing itself.

use std::ops::RangeInclusive;

use baton_model::{SemanticRequest, provider_options};
use serde_json::{Map, Value};

use crate::state::RunState;

/// What a run may say of `temperature`.
pub const TEMPERATURE: RangeInclusive<f64> = 0.0..=2.0;
/// What a run may say of `maxTokens`.
pub const MAX_TOKENS: RangeInclusive<u64> = 1..=1_000_000;

impl RunState {
    /// The request with what the run says laid under it. Runs that began earlier were asked without.
    pub(crate) fn with_run_options(&self, request: SemanticRequest) -> SemanticRequest {
        let Some(start) = self.start.as_ref().filter(|_| self.rule() >= 3) else { return request };
        let configurable = &start.event.private.configurable;
        // What a parent or a source that began earlier may have said was never judged: out of bounds is unsaid.
        let temperature = || match said(configurable, "temperature") {
            Some(Value::Number(number)) if number.as_f64().is_some_and(|number| TEMPERATURE.contains(&number)) => {
                Some(number.clone())
            }
            _ => None,
        };
        // What the node says of an option goes before what the run says of it.
        let options = said(configurable, "providerOptions").filter(|_| self.rule() >= 4);
        let options = options.and_then(|options| provider_options::check(options).ok());
        let provider_options = match (options, request.provider_options.clone()) {
            (None, said) => said,
            (Some(run), said) => Some(run.clone().into_iter().chain(said.into_iter().flatten()).collect()),
        };
        SemanticRequest {
            provider_options,
            temperature: request.temperature.clone().or_else(temperature),
            max_output_tokens: request.max_output_tokens.or_else(|| self.run_max_tokens()),
            ..request
        }
    }

    /// How long the run says that answers may be.
    pub(crate) fn run_max_tokens(&self) -> Option<u64> {
        let start = self.start.as_ref().filter(|_| self.rule() >= 3)?;
        let said = said(&start.event.private.configurable, "maxTokens")?;
        said.as_u64().filter(|number| MAX_TOKENS.contains(number))
    }
}

/// As with models: `ai.NAME` first, then the plain key.
fn said<'a>(configurable: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let known = |value: Option<&'a Value>| value.filter(|value| !value.is_null());
    let nested = || configurable.get("ai").and_then(|ai| ai.get(name));
    known(configurable.get(&format!("ai.{name}"))).or_else(|| known(nested())).or_else(|| known(configurable.get(name)))
}
