//! Secrets out of everything that is kept.

use baton_model::{Secret, redact_counted};
use serde_json::{Map, Value};

/// A value with every secret in it replaced, keys included, and how many there were.
pub(crate) fn scrub(value: &Value, secrets: &[Secret]) -> (Value, usize) {
    match value {
        Value::String(text) => {
            let (clean, count) = redact_counted(text, secrets);
            (Value::String(clean), count)
        }
        Value::Array(list) => {
            let mut total = 0;
            let mut clean = Vec::with_capacity(list.len());
            for entry in list {
                let (entry, count) = scrub(entry, secrets);
                total += count;
                clean.push(entry);
            }
            (Value::Array(clean), total)
        }
        Value::Object(map) => {
            let mut total = 0;
            let mut clean = Map::new();
            for (key, entry) in map {
                let (key, in_key) = redact_counted(key, secrets);
                let (entry, in_entry) = scrub(entry, secrets);
                total += in_key + in_entry;
                clean.insert(key, entry);
            }
            (Value::Object(clean), total)
        }
        other => (other.clone(), 0),
    }
}
