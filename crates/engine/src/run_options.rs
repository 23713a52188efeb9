//! What a run says about how its models are asked, where the node that asks says nothing itself.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// What a run may say of `temperature`.
pub const TEMPERATURE: RangeInclusive<f64> = 0.0..=2.0;
/// What a run may say of `maxTokens`.
pub const MAX_TOKENS: RangeInclusive<u64> = 1..=1_000_000;

/// As with models: `ai.NAME` first, then the plain key.
pub(crate) fn setting<'a>(configurable: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let known = |value: Option<&'a Value>| value.filter(|value| !value.is_null());
    let nested = || configurable.get("ai").and_then(|ai| ai.get(name));
    known(configurable.get(&format!("ai.{name}"))).or_else(|| known(nested())).or_else(|| known(configurable.get(name)))
}
