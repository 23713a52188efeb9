//! JSON Schema behind one small door. Each schema is compiled on its own: nothing is fetched, and two packs may use
//! the same `$id` for different things.

use baton_model::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How deeply a schema may nest; compiling one is recursive.
const MAX_DEPTH: usize = 64;

pub(crate) struct Schema(Result<jsonschema::Validator, String>);

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

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
    pub(crate) fn new(instance_path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { instance_path: instance_path.into(), schema_path: String::new(), message: message.into() }
    }

    /// Keys are part of a path, and a model may have written a secret into one.
    pub(crate) fn scrubbed(&self, secrets: &[Secret]) -> Self {
        let clean = |text: &str| baton_model::redact(text, secrets);
        Self {
            instance_path: clean(&self.instance_path),
            schema_path: clean(&self.schema_path),
            message: clean(&self.message),
        }
    }
}

impl Schema {
    /// Compiles a schema as 2020-12, or says why it cannot be.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("a schema is an object".to_owned());
        }
        if baton_model::json::depth(schema) > MAX_DEPTH {
            return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
        }
        match schema.get("$schema").map(|dialect| dialect.as_str().map(|text| text.trim_end_matches('#'))) {
            None | Some(Some(DIALECT)) => {}
            Some(_) => return Err(format!("its `$schema` is not `{DIALECT}`")),
        }
        jsonschema::draft202012::new(schema).map(|compiled| Self(Ok(compiled))).map_err(|error| error.to_string())
    }

    /// A schema that ships with the binary. Should one not compile, nothing fits it.
    pub(crate) fn shipped(text: &str) -> Self {
        let read = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
        read.and_then(|schema| Self::compile(&schema)).unwrap_or_else(|why| Self(Err(why)))
    }

    /// Every rule that the value breaks, at most sixteen.
    pub(crate) fn violations(&self, value: &Value) -> Vec<Violation> {
        match &self.0 {
            Err(why) => vec![Violation::new("", format!("This host's own schema is broken: {why}."))],
            Ok(schema) => schema.iter_errors(value).take(16).map(|error| violation(&error)).collect(),
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
    fn schemas_that_cannot_be_used() {
        for bad in [
            json!([]),
            json!({"type": 12}),
            json!({"$ref": "https://example.com/other.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "other.schema.json"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"$schema": 5}),
            json!({"pattern": "("}),
        ] {
            assert!(Schema::compile(&bad).is_err(), "{bad}");
        }
        let deep = (0..200).fold(json!(true), |inner, _| json!({ "not": inner }));
        assert!(Schema::compile(&deep).unwrap_err().contains("nests deeper"));
        assert!(Schema::compile(&json!({"$schema": DIALECT, "$defs": {"a": {}}, "$ref": "#/$defs/a"})).is_ok());
    }

    #[test]
    fn a_violation_names_the_rule_and_never_the_value() {
        let schema = Schema::compile(&json!({
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
        assert!(!Schema::shipped("{").violations(&json!({})).is_empty());
    }
}
