//! What calls cost. Vendors report tokens; what a token costs is the operator's to know.

use std::collections::BTreeMap;

use baton_model::Usage;
use serde::Deserialize;

/// Prices by model. A name may end in `*` and then stands for all that begin like it; the longest that fits counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

/// In US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// For input that came from the vendor's cache, and for input that went there; both cost what input costs, unless
    /// said otherwise.
    #[serde(default)]
    pub cache_read: Option<f64>,
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl Prices {
    pub fn new(prices: impl IntoIterator<Item = (String, Price)>) -> Self {
        Self(prices.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The models that have a price of their own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| !name.ends_with('*'))
    }

    /// What a call cost, in US dollars; nothing where the model has no price.
    pub fn estimate(&self, model: &str, usage: &Usage) -> Option<f64> {
        self.of(model).map(|price| price.of(usage))
    }

    fn of(&self, model: &str) -> Option<&Price> {
        self.0.get(model).or_else(|| {
            let fits = |name: &str| name.strip_suffix('*').is_some_and(|begin| model.starts_with(begin));
            self.0.iter().filter(|(name, _)| fits(name)).max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
        })
    }
}

impl Price {
    fn of(&self, usage: &Usage) -> f64 {
        let (read, written) = (usage.cache_read_tokens.unwrap_or(0), usage.cache_write_tokens.unwrap_or(0));
        let fresh = usage.input_tokens.saturating_sub(read).saturating_sub(written);
        let parts = [
            (fresh, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1_000_000.0).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cache_had_is_counted_once() {
        let prices: Prices = serde_json::from_str(
            r#"{"a": {"input": 2, "output": 10, "cache_read": 0.5}, "a-*": {"input": 1, "output": 1},
                "a-big*": {"input": 3, "output": 3}}"#,
        )
        .unwrap();
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cache_read_tokens: Some(400_000),
            cache_write_tokens: Some(100_000),
            ..Usage::default()
        };
        assert_eq!(prices.estimate("a", &usage), Some(0.5 * 2.0 + 0.4 * 0.5 + 0.1 * 2.0 + 1.0));
        let plain = Usage { input_tokens: 1_000_000, ..Usage::default() };
        assert_eq!(prices.estimate("a-small", &plain), Some(1.0));
        assert_eq!(prices.estimate("a-bigger", &plain), Some(3.0));
        assert_eq!(prices.estimate("b", &plain), None);
    }
}
