//! Expected values held against found ones: of an object the names that are given, of a list every item in its order, and
//! everything else as it is. `{$contains: text}`, `{$any: true}`, `{$min: n, $max: n}` and `{$exactly: value}` stand for
//! values that are not known so exactly, or must be known more exactly.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use similar::{Algorithm, capture_diff_slices_deadline, group_diff_ops};

/// Lines around a difference.
const CONTEXT: usize = 3;
/// The search takes time that grows with the square of the difference. After this long, what is left is shown as
/// replaced.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);

/// Whether `found` is what was expected.
pub(crate) fn holds(expected: &Value, found: &Value) -> bool {
    if let Some(matcher) = Matcher::read(expected) {
        return matcher.holds(found);
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().all(|(name, value)| found.get(name).is_some_and(|there| holds(value, there)))
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(expected, found)| holds(expected, found))
        }
        (Value::Number(expected), Value::Number(found)) => {
            expected == found || expected.as_f64().is_some_and(|expected| found.as_f64() == Some(expected))
        }
        (expected, found) => expected == found,
    }
}

/// What was expected and what was found in lines, as far as that was asked about.
pub(crate) fn difference(expected: &Value, found: &Value) -> String {
    let (expected, found) = (settled(expected, found), asked_about(expected, found));
    let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    diff_lines(&text(&expected), &text(&found))
}

/// A unified difference without its header, which lines of JSON do not need.
pub(crate) fn diff_lines(expected: &str, found: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + LONGEST_SEARCH));
    let mut lines = vec!["- expected".to_owned(), "+ found".to_owned()];
    for group in group_diff_ops(ops, CONTEXT) {
        for change in group.iter().flat_map(|op| op.iter_changes(&old, &new)) {
            lines.push(format!("{} {}", change.tag(), change.value()));
        }
    }
    lines.join("\n")
}

/// The expected value with whatever was found where that is right, so that only what is wrong differs.
fn settled(expected: &Value, found: &Value) -> Value {
    if let Some(matcher) = Matcher::read(expected) {
        return if matcher.holds(found) { found.clone() } else { expected.clone() };
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let value = |(name, value): (&String, &Value)| {
                (name.clone(), found.get(name).map_or_else(|| value.clone(), |found| settled(value, found)))
            };
            Value::Object(expected.iter().map(value).collect())
        }
        (Value::Array(expected), Value::Array(found)) => {
            let item =
                |(i, value): (usize, &Value)| found.get(i).map_or_else(|| value.clone(), |found| settled(value, found));
            Value::Array(expected.iter().enumerate().map(item).collect())
        }
        (expected, found) if holds(expected, found) => found.clone(),
        (expected, _) => expected.clone(),
    }
}

/// What was found without the names that nobody asked about.
fn asked_about(expected: &Value, found: &Value) -> Value {
    if Matcher::read(expected).is_some() {
        return found.clone();
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let named =
                found.iter().filter_map(|(name, value)| Some((name.clone(), asked_about(expected.get(name)?, value))));
            Value::Object(named.collect::<Map<_, _>>())
        }
        (Value::Array(expected), Value::Array(found)) => {
            let item = |(i, value): (usize, &Value)| {
                expected.get(i).map_or_else(|| value.clone(), |expected| asked_about(expected, value))
            };
            Value::Array(found.iter().enumerate().map(item).collect())
        }
        (_, found) => found.clone(),
    }
}

/// What stands for a value that is not known exactly.
enum Matcher<'a> {
    Any,
    Contains(&'a Value),
    Exactly(&'a Value),
    Between(Option<f64>, Option<f64>),
}

impl<'a> Matcher<'a> {
    fn read(expected: &'a Value) -> Option<Self> {
        let map = expected.as_object().filter(|map| !map.is_empty() && map.keys().all(|name| name.starts_with('$')))?;
        let number = |name: &str| map.get(name).and_then(Value::as_f64);
        if map.len() == 1 {
            if map.get("$any") == Some(&Value::Bool(true)) {
                return Some(Self::Any);
            }
            if let Some(part) = map.get("$contains") {
                return Some(Self::Contains(part));
            }
            if let Some(value) = map.get("$exactly") {
                return Some(Self::Exactly(value));
            }
        }
        let bounds = map.keys().all(|name| ["$min", "$max"].contains(&name.as_str()));
        bounds.then(|| Self::Between(number("$min"), number("$max")))
    }

    fn holds(&self, found: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(value) => *value == found,
            Self::Contains(Value::String(part)) if found.is_string() => {
                found.as_str().is_some_and(|found| found.contains(part.as_str()))
            }
            Self::Contains(part) => found.as_array().is_some_and(|items| items.iter().any(|item| holds(part, item))),
            Self::Between(min, max) => found
                .as_f64()
                .is_some_and(|found| min.is_none_or(|min| found >= min) && max.is_none_or(|max| found <= max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_may_have_more_and_a_list_may_not() {
        let found = json!({"a": 1, "b": {"c": [1, {"d": "x", "e": null}], "f": "some text"}});
        for expected in [
            json!({}),
            json!({"a": 1.0}),
            json!({"b": {"c": [1, {"d": "x"}]}}),
            json!({"b": {"f": {"$contains": "me te"}}}),
            json!({"b": {"c": {"$contains": {"d": "x"}}}}),
            json!({"b": {"$any": true}}),
            json!({"a": {"$min": 1, "$max": 2}}),
            json!({"b": {"c": [{"$exactly": 1}, {"$any": true}]}}),
            json!({"b": {"c": [1, {"e": null}]}}),
        ] {
            assert!(holds(&expected, &found), "{expected}");
        }
        for expected in [
            json!({"a": "1"}),
            json!({"z": null}),
            json!({"b": {"c": [1]}}),
            json!({"b": {"c": [{"$any": true}, {"$exactly": {"d": "x"}}]}}),
            json!({"a": {"$min": 2}}),
            json!({"a": {"$contains": "1"}}),
            json!([]),
        ] {
            assert!(!holds(&expected, &found), "{expected}");
        }
    }

    #[test]
    fn a_difference_shows_only_what_was_asked_about() {
        let found = json!({"verdict": "deny", "score": 3, "noise": [1, 2, 3]});
        let expected = json!({"verdict": "approve", "score": {"$min": 1}});
        let shown = difference(&expected, &found);
        assert_eq!(
            shown,
            "- expected\n+ found\n  {\n    \"score\": 3,\n-   \"verdict\": \"approve\"\n+   \"verdict\": \"deny\"\n  }"
        );
    }
}
