//! Keeping secrets out of what is stored: plain substring replacement, so that nothing depends on guessing what a
//! secret looks like.

use serde_json::{Map, Value};

/// Shorter values are not treated as secrets: replacing them would shred ordinary text.
pub const MIN_SECRET_BYTES: usize = 8;

/// A value that must never be stored or shown, and the id that stands for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub id: String,
    value: String,
}

impl Secret {
    pub fn new(id: impl Into<String>, value: impl Into<String>) -> Self {
        Self { id: id.into(), value: value.into() }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.id)
    }
}

/// The text with every secret replaced by `[REDACTED:<id>]`, longest first, so that a secret inside a longer one
/// does not leave the rest of it behind.
pub fn redact(text: &str, secrets: &[Secret]) -> String {
    redact_counted(text, secrets).0
}

/// The same, with how many occurrences were replaced.
pub fn redact_counted(text: &str, secrets: &[Secret]) -> (String, usize) {
    let mut found: Vec<&Secret> =
        secrets.iter().filter(|s| s.value.len() >= MIN_SECRET_BYTES && text.contains(&s.value)).collect();
    found.sort_by(|a, b| b.value.len().cmp(&a.value.len()).then_with(|| a.id.cmp(&b.id)));
    let (mut clean, mut count) = (text.to_owned(), 0);
    for secret in found {
        count += clean.matches(&secret.value).count();
        clean = clean.replace(&secret.value, &format!("[REDACTED:{}]", secret.id));
    }
    (clean, count)
}

/// How much of a text may be looked at by itself while more of it is still to come: no secret begins before that point
/// and ends, or could end, after it.
pub fn settled(text: &str, secrets: &[Secret]) -> usize {
    let secrets: Vec<&str> =
        secrets.iter().map(|secret| secret.value.as_str()).filter(|value| value.len() >= MIN_SECRET_BYTES).collect();
    let begun = |value: &str| {
        let from = text.len().saturating_sub(value.len() - 1);
        (from..text.len()).find(|&start| text.is_char_boundary(start) && value.starts_with(&text[start..]))
    };
    let mut end = secrets.iter().filter_map(|value| begun(value)).min().unwrap_or(text.len());
    loop {
        let cut_through = secrets
            .iter()
            .flat_map(|value| text.match_indices(value))
            .find_map(|(start, value)| (start < end && end < start + value.len()).then_some(start));
        match cut_through {
            Some(start) => end = start,
            None => return end,
        }
    }
}

/// A value with every secret in it replaced, keys included, and how many there were.
pub fn redact_value_counted(value: &Value, secrets: &[Secret]) -> (Value, usize) {
    match value {
        Value::String(text) => {
            let (clean, count) = redact_counted(text, secrets);
            (Value::String(clean), count)
        }
        Value::Array(list) => {
            let mut total = 0;
            let mut clean = Vec::with_capacity(list.len());
            for entry in list {
                let (entry, count) = redact_value_counted(entry, secrets);
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
                let (entry, in_entry) = redact_value_counted(entry, secrets);
                total += in_key + in_entry;
                clean.insert(key, entry);
            }
            (Value::Object(clean), total)
        }
        other => (other.clone(), 0),
    }
}

/// The value with every secret replaced in every string, names of members included.
pub fn redact_value(value: &Value, secrets: &[Secret]) -> Value {
    redact_value_counted(value, secrets).0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_longest_secret_goes_first_and_short_ones_are_left_alone() {
        let secrets =
            [Secret::new("part", "sk-live-1234"), Secret::new("whole", "sk-live-1234-abcdef"), Secret::new("x", "the")];
        let clean = redact("the key sk-live-1234-abcdef, the prefix sk-live-1234", &secrets);
        assert_eq!(clean, "the key [REDACTED:whole], the prefix [REDACTED:part]");
        assert!(!format!("{secrets:?}").contains("1234"));
    }

    #[test]
    fn what_may_become_a_secret_is_not_settled() {
        let secrets = [Secret::new("a", "sk-live-1234"), Secret::new("b", "1234-sk-live"), Secret::new("x", "the")];
        for (text, settled_part) in [
            ("nothing th", "nothing th"),
            ("key sk-live-123", "key "),
            ("key sk-live-1234", "key "),
            ("key sk-live-1234 ", "key sk-live-1234 "),
            ("sk-lively", "sk-lively"),
            ("é s", "é "),
            ("", ""),
        ] {
            assert_eq!(&text[..settled(text, &secrets)], settled_part, "{text}");
        }
        assert_eq!(settled("anything sk-live", &[]), 16);
    }

    #[test]
    fn eight_bytes_make_a_secret_and_every_occurrence_goes() {
        let secrets = [Secret::new("seven", "1234567"), Secret::new("eight", "abcdefgh"), Secret::new("ä", "ääää")];
        assert_eq!(redact("1234567 abcdefghabcdefgh", &secrets), "1234567 [REDACTED:eight][REDACTED:eight]");
        assert_eq!(redact_counted("1234567 abcdefghabcdefgh ääää", &secrets).1, 3);
        assert_eq!(redact("ääää", &secrets), "[REDACTED:ä]", "bytes count, not letters");
        assert_eq!(redact("nothing here", &secrets), "nothing here");
        assert_eq!(redact("abcdefgh", &[]), "abcdefgh");
    }

    #[test]
    fn every_leaf_is_cleaned() {
        let secrets = [Secret::new("key", "sk-live-1234")];
        let dirty = json!({"a": ["x sk-live-1234", 1, null], "sk-live-1234": {"b": "sk-live-1234"}});
        let clean = json!({"a": ["x [REDACTED:key]", 1, null], "[REDACTED:key]": {"b": "[REDACTED:key]"}});
        assert_eq!(redact_value(&dirty, &secrets), clean);
    }
}
