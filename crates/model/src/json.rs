//! Canonical JSON (RFC 8785) and digests over it. Nothing is ever hashed from `to_string()` output.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// SHA-256, lowercase hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    pub fn of_bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self(hex(&Sha256::digest(bytes.as_ref())))
    }

    /// Digest of the canonical form: equal values have equal digests, whatever their key order or spacing.
    pub fn of_json(value: &serde_json::Value) -> Self {
        Self::of_bytes(canonical(value))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let ok = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        ok.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// RFC 8785 bytes of a value.
pub fn canonical(value: &serde_json::Value) -> Vec<u8> {
    // A `Value` holds no non-finite number and no non-string key, the only things canonicalisation refuses; the plain
    // form is still deterministic (maps are sorted) should that ever change.
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}

pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// About how many bytes `value` has when it is written down. It is counted, not written: escapes and long numbers are
/// left out, so that it is the same for a value however it came to be.
pub fn size(value: &serde_json::Value) -> u64 {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<u64>() + 2,
        Value::Object(map) => map.iter().map(|(name, value)| named_size(name, value)).sum::<u64>() + 2,
    }
}

/// The same for a value with its name.
pub fn named_size(name: &str, value: &serde_json::Value) -> u64 {
    name.len() as u64 + NAME_BYTES + size(value)
}

/// What stands around a name: quotes, a colon and a comma.
const NAME_BYTES: u64 = 4;

/// How deeply arrays and objects nest in `value`; a scalar is 0.
pub fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_change_a_digest() {
        let a: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":[1.0,"x"]}"#).unwrap_or_default();
        let b: serde_json::Value = serde_json::from_str(r#"{ "a":[1,"x"], "b":1 }"#).unwrap_or_default();
        assert_eq!(Digest::of_json(&a), Digest::of_json(&b));
        assert_ne!(Digest::of_json(&a), Digest::of_json(&json!({"a": [1, "y"], "b": 1})));
    }

    #[test]
    fn depth_counts_containers() {
        assert_eq!(depth(&json!(1)), 0);
        assert_eq!(depth(&json!({"a": [{}]})), 3);
    }
}
