//! What the discovery document says in conformance mode, beside what the host can do.

use baton_server::endpoint::{ENGINE_VERSION, TEST_KEY_PREFIX};
use serde_json::{Map, Value, json};

use crate::mode::Conformance;

impl Conformance {
    /// The families of capabilities that only this mode has.
    pub fn capabilities(&self) -> Map<String, Value> {
        let families = json!({
            "fixtures": self.fixtures(),
            "testing": {
                "mockProviders": ["stream-text"],
                "testKeyPrefix": TEST_KEY_PREFIX,
                "forceEngineVersionRange": {"min": ENGINE_VERSION, "max": ENGINE_VERSION},
            },
            // `the_spans_of_a_run_are_shown_as_they_are_exported`
            "observability": {"testSeams": {"otelScrape": true}},
        });
        families.as_object().cloned().unwrap_or_default()
    }
}
