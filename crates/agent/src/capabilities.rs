//! What this host can do, by the dotted keys that packs ask for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::range::Range;

/// Keys that a host offers, with the words a pack may ask for under each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeMap<String, BTreeSet<String>>);

impl Capabilities {
    pub fn new() -> Self {
        Self::default()
    }

    /// With a key that is simply there.
    #[must_use]
    pub fn with(self, key: &str) -> Self {
        self.with_values(key, [])
    }

    /// With a key and what it can be, `agents.memoryBackends` and `long-term` say.
    #[must_use]
    pub fn with_values<'a>(mut self, key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.entry(plain(key).to_owned()).or_default().extend(values.into_iter().map(str::to_owned));
        self
    }

    /// Reads them off a discovery document: what is advertised is what a pack may rely on. A block counts unless what
    /// it says under `supported` is no or nothing, a list unless it is empty.
    pub fn from_discovery(document: &Value) -> Self {
        let mut found = Self::new();
        if let Value::Object(root) = document {
            for (key, value) in root.iter().filter(|(key, _)| *key != "capabilities") {
                found.collect(key, value);
            }
        }
        found
    }

    fn collect(&mut self, key: &str, value: &Value) {
        let entry = match value {
            Value::Null | Value::Bool(false) => return,
            Value::Bool(true) => BTreeSet::new(),
            Value::String(text) => BTreeSet::from([text.clone()]),
            Value::Number(number) => BTreeSet::from([number.to_string()]),
            Value::Array(list) if list.is_empty() => return,
            Value::Array(list) => list.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect(),
            Value::Object(members) => {
                if members.get("supported").is_some_and(|flag| *flag == json!(false) || *flag == json!([])) {
                    return;
                }
                for (name, member) in members {
                    self.collect(&format!("{key}.{name}"), member);
                }
                BTreeSet::new()
            }
        };
        self.0.entry(key.to_owned()).or_default().extend(entry);
    }

    /// Whether the key is offered at all.
    pub fn has(&self, key: &str) -> bool {
        self.values(key).is_some()
    }

    /// Whether what is offered under the key is what is wanted: `supported`, a word, or a range of versions.
    pub fn meets(&self, key: &str, wanted: &str) -> bool {
        let Some(values) = self.values(key) else { return false };
        let wanted = wanted.trim();
        if matches!(wanted, "" | "*" | "supported" | "true") {
            return true;
        }
        let word = wanted.trim_start_matches(['>', '=', '^', '~']).trim();
        if values.iter().any(|value| same_word(value, word)) {
            return true;
        }
        let versions = values.iter().filter_map(|value| version(value));
        Range::read(wanted).is_some_and(|range| versions.into_iter().any(|version| range.admits(&version)))
    }

    fn values(&self, key: &str) -> Option<&BTreeSet<String>> {
        let key = plain(key);
        self.0.get(key).or_else(|| match key {
            // A host that runs agents in the older sense of the word runs manifests too.
            "agents.manifestRuntime" => self.0.get("host.agentRuntime"),
            _ => None,
        })
    }

    /// Memory that outlives a run.
    pub(crate) fn remembers(&self) -> bool {
        self.meets("agents.memoryBackends", "long-term")
    }

    /// Memory at all.
    pub(crate) fn has_memory(&self) -> bool {
        self.has("memory") || self.remembers()
    }
}

/// Some packs write the protocol's name before a key.
fn plain(key: &str) -> &str {
    let key = key.strip_prefix("openwop.").unwrap_or(key);
    key.strip_prefix("capabilities.").unwrap_or(key)
}

/// `longTerm` and `long-term` are one thing.
fn same_word(a: &str, b: &str) -> bool {
    let letters = |text: &str| {
        text.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect::<String>()
    };
    !b.is_empty() && letters(a) == letters(b)
}

/// A version, `1.0` read as `1.0.0`.
fn version(text: &str) -> Option<semver::Version> {
    let missing = 2usize.saturating_sub(text.split('.').count().saturating_sub(1));
    semver::Version::parse(text).or_else(|_| semver::Version::parse(&format!("{text}{}", ".0".repeat(missing)))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_words() {
        let host = Capabilities::new()
            .with("aiProviders")
            .with_values("agents.memoryBackends", ["long-term"])
            .with_values("protocolVersion", ["1.0"]);
        for (key, wanted, met) in [
            ("aiProviders", "supported", true),
            ("aiProviders", "toolCalling", false),
            ("aiProviders.toolCalling", "supported", false),
            ("openwop.agents.memoryBackends", ">=longTerm", true),
            ("agents.memoryBackends", "conversation", false),
            ("protocolVersion", ">=1.0 <2", true),
            ("protocolVersion", ">=2", false),
            ("host.agentRuntime", "supported", false),
            ("agents.manifestRuntime", "supported", false),
        ] {
            assert_eq!(host.meets(key, wanted), met, "{key} {wanted}");
        }
        assert!(Capabilities::new().with("host.agentRuntime").meets("agents.manifestRuntime", "supported"));
    }

    #[test]
    fn a_discovery_document_says_it_all() {
        let host = Capabilities::from_discovery(&json!({
            "protocolVersion": "1.0",
            "agents": {"supported": true, "memoryBackends": ["long-term"], "manifestRuntime": {"supported": true}},
            "memory": {"supported": false, "ttlSupported": true},
            "fixtures": [],
            "voice": {"supported": []},
            "aiProviders": {"supported": ["mock"], "toolCalling": true},
        }));
        for there in
            ["agents.manifestRuntime", "aiProviders", "aiProviders.toolCalling", "agents.manifestRuntime.supported"]
        {
            assert!(host.has(there), "{there}");
        }
        for absent in ["memory", "memory.ttlSupported", "fixtures", "voice", "workspace"] {
            assert!(!host.has(absent), "{absent}");
        }
        assert!(host.remembers() && host.meets("aiProviders.supported", "mock"));
    }
}
