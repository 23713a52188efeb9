//! The part of JSONPath that names one place: `$.user.names[0]`.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A way into a value. It leads to one place or nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Path {
    /// Reads a path, or says what it cannot be.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > 512 {
            return Err("has more than 512 bytes");
        }
        let mut rest = text.strip_prefix('$').ok_or("begins with `$`")?;
        if !rest.starts_with(['.', '[']) {
            return Err("names a member after its `$`");
        }
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = step(rest)?;
            steps.push(step);
            rest = after;
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    /// The member that the way begins at.
    pub fn root(&self) -> Option<&str> {
        match self.steps.first()? {
            Step::Key(key) => Some(key),
            Step::Index(_) => None,
        }
    }

    /// The place in an object, if it has it.
    pub fn find<'v>(&self, root: &'v Map<String, Value>) -> Option<&'v Value> {
        let (first, rest) = self.steps.split_first()?;
        let Step::Key(first) = first else { return None };
        rest.iter().try_fold(root.get(first)?, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

fn step(text: &str) -> Result<(Step, &str), &'static str> {
    const SHAPE: &str = "has only `.name`, `[0]` and `['name']` in it";
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        return if plain { Ok((Step::Key(name.to_owned()), &rest[end..])) } else { Err(SHAPE) };
    }
    let rest = text.strip_prefix('[').ok_or(SHAPE)?;
    for quote in ['\'', '"'] {
        if let Some(inner) = rest.strip_prefix(quote) {
            let end = inner.find(quote).ok_or(SHAPE)?;
            let after = inner[end + 1..].strip_prefix(']').ok_or(SHAPE)?;
            return Ok((Step::Key(inner[..end].to_owned()), after));
        }
    }
    let (digits, after) = rest.split_once(']').ok_or(SHAPE)?;
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    number.map(|index| (Step::Index(index), after)).ok_or(SHAPE)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_leads_to_one_place_or_nowhere() {
        let root = json!({"a": {"b": [10, {"c-d": "x"}], "e f": 1}});
        let root = root.as_object().unwrap();
        for (path, expected) in [
            ("$.a.b[0]", Some(json!(10))),
            ("$.a.b[1].c-d", Some(json!("x"))),
            ("$['a']['e f']", Some(json!(1))),
            ("$.a[\"b\"][0]", Some(json!(10))),
            ("$.a.b[9]", None),
            ("$.a.b.c", None),
            ("$.nothing", None),
        ] {
            assert_eq!(Path::read(path).unwrap().find(root).cloned(), expected, "{path}");
        }
        for bad in [
            "",
            "$",
            "$a",
            "a.b",
            "$.",
            "$..a",
            "$.*",
            "$[*]",
            "$[-1]",
            "$[?(@.a)]",
            "$['a",
            "$.a[",
            "$.a[99999999999999999999]",
        ] {
            assert!(Path::read(bad).is_err(), "{bad}");
        }
    }
}
