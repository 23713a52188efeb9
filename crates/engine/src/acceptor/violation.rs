//! What is wrong with an envelope, told without a word of it.

use baton_model::{Secret, redact};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::Judge;

/// Which rule a value breaks, and where. Says nothing of the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// A JSON pointer into the value.
    pub instance_path: String,
    /// A JSON pointer into the schema.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema_path: String,
    pub message: String,
}

impl Violation {
    pub(super) fn new(instance_path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { instance_path: instance_path.into(), schema_path: String::new(), message: message.into() }
    }

    /// Keys are part of a path, and a model may have written a secret into one.
    pub(super) fn scrubbed(&self, secrets: &[Secret]) -> Self {
        let clean = |text: &str| redact(text, secrets);
        Self {
            instance_path: clean(&self.instance_path),
            schema_path: clean(&self.schema_path),
            message: clean(&self.message),
        }
    }
}

/// A shape that things are held against. One that does not compile lets nothing through.
pub(super) struct Shape(Result<Judge, String>);

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shape")
    }
}

impl Shape {
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        Judge::compile(schema).map(|judge| Self(Ok(judge)))
    }

    /// One that ships with the binary.
    pub(super) fn shipped(text: &str) -> Self {
        let read = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
        read.and_then(|schema| Self::compile(&schema)).unwrap_or_else(|why| Self(Err(why)))
    }

    /// Every rule that the value breaks, at most sixteen.
    pub(super) fn violations(&self, value: &Value) -> Vec<Violation> {
        match &self.0 {
            Err(why) => vec![Violation::new("", format!("This host's own schema is broken: {why}."))],
            Ok(judge) => match judge.errors(value) {
                Ok(errors) => errors.take(16).map(|error| violation(&error)).collect(),
                Err(bound) => vec![Violation::new("", format!("This is too large: {bound}."))],
            },
        }
    }
}

fn violation(error: &jsonschema::ValidationError<'_>) -> Violation {
    let schema_path = error.schema_path().to_string();
    let rule = schema_path.rsplit('/').next().unwrap_or_default();
    Violation {
        instance_path: error.instance_path().to_string(),
        message: format!("This breaks the rule `{rule}` of its schema."),
        schema_path,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_violation_names_the_rule_and_never_the_value() {
        let schema = Shape::compile(&json!({
            "properties": {"n": {"type": "integer"}}, "additionalProperties": false, "required": ["m"],
        }))
        .unwrap();
        let told = schema.violations(&json!({"n": "sk-live-secret", "sk-live-other": 1}));
        let text = serde_json::to_string(&told).unwrap();
        assert!(!text.contains("sk-live"), "{text}");
        assert!(told.iter().any(|v| v.instance_path == "/n" && v.message.contains("`type`")), "{told:?}");
        assert!(told.iter().any(|v| v.schema_path == "/required"), "{told:?}");
    }

    #[test]
    fn a_broken_schema_of_our_own_lets_nothing_through() {
        assert!(!Shape::shipped("{").violations(&json!({})).is_empty());
    }
}
