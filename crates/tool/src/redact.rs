use baton_model::{Secret, redact};
use serde_json::{Map, Value};

/// The value with every secret replaced in every string, names of members included.
pub fn redact_value(value: &Value, secrets: &[Secret]) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text, secrets)),
        Value::Array(items) => items.iter().map(|item| redact_value(item, secrets)).collect(),
        Value::Object(members) => {
            let clean = members.iter().map(|(name, item)| (redact(name, secrets), redact_value(item, secrets)));
            Value::Object(clean.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_is_cleaned() {
        let secrets = [Secret::new("key", "sk-live-1234")];
        let dirty = json!({"a": ["x sk-live-1234", 1, null], "sk-live-1234": {"b": "sk-live-1234"}});
        let clean = json!({"a": ["x [REDACTED:key]", 1, null], "[REDACTED:key]": {"b": "[REDACTED:key]"}});
        assert_eq!(redact_value(&dirty, &secrets), clean);
    }
}
