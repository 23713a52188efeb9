//! Registered secrets are in no file, and none comes in with one. Memory and workspace never hold any; a log may, if
//! somebody started a run with one.

use std::borrow::Cow;

use baton_model::{Secret, redact};
use serde_json::Value;

/// The line without secrets. It is looked at as JSON, because a secret with a quote in it is spelt otherwise there.
pub(super) fn without<'a>(line: &'a str, secrets: &[Secret]) -> Cow<'a, str> {
    if secrets.is_empty() {
        return line.into();
    }
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        // Whoever parses it says what is wrong with it.
        return line.into();
    };
    if clean(&mut value, secrets) { value.to_string().into() } else { line.into() }
}

/// Takes secrets out of every text. Says whether there was one.
pub(crate) fn clean(value: &mut Value, secrets: &[Secret]) -> bool {
    match value {
        Value::String(text) => {
            let clean = redact(text, secrets);
            let dirty = clean != *text;
            *text = clean;
            dirty
        }
        Value::Array(items) => items.iter_mut().filter_map(|item| clean(item, secrets).then_some(())).count() > 0,
        Value::Object(map) => {
            let mut dirty = map.values_mut().filter_map(|item| clean(item, secrets).then_some(())).count() > 0;
            if map.keys().any(|key| redact(key, secrets) != *key) {
                *map = std::mem::take(map).into_iter().map(|(key, item)| (redact(&key, secrets), item)).collect();
                dirty = true;
            }
            dirty
        }
        // A number is its text, too.
        Value::Number(number) => {
            let text = number.to_string();
            let clean = redact(&text, secrets);
            let dirty = clean != text;
            if dirty {
                *value = Value::String(clean);
            }
            dirty
        }
        Value::Null | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_wherever_they_are_and_clean_lines_stay_as_they_were() {
        let secrets = [Secret::new("key", "sk-\"live\"-1234"), Secret::new("pin", "12345678")];
        let clean = r#"{"b":1, "a":["x"]}"#;
        assert_eq!(without(clean, &secrets), clean);
        let dirty = r#"{"a":"is sk-\"live\"-1234","b":{"sk-\"live\"-1234":12345678}}"#;
        let expected = r#"{"a":"is [REDACTED:key]","b":{"[REDACTED:key]":"[REDACTED:pin]"}}"#;
        assert_eq!(without(dirty, &secrets), expected);
        assert_eq!(without("{", &secrets), "{");
    }
}
